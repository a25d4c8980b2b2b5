"""The target of a review: a pull request, or a range of commits in this repository.

Numbers, URLs, ranges, branches and single commits become a target with full commit ids, so that a branch
that moves later does not change the review. See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.run_program import Finished, ProgramMissing, read_git_settings, run_git
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import make_visible


class IntentUnclear(CockpitError):
    """The user's text names something that does not exist. The message says what would work."""

    code = "intent_unclear"


class Repository:
    """What resolving needs to know of the git repository around ``root``. Where there is none, or no git,
    every question is answered with None or nothing."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def commit(self, ref: str) -> str | None:
        if not ref or ref.startswith("-") or "\0" in ref:
            return None
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return await self._line(*arguments)

    async def merge_base(self, first: str, second: str) -> str | None:
        return await self._line("merge-base", first, second)

    async def is_branch(self, name: str) -> bool:
        return await self._has(name, "heads", "remotes")

    async def is_tag(self, name: str) -> bool:
        return await self._has(name, "tags")

    async def _has(self, name: str, *spaces: str) -> bool:
        if _NO_REF.search(name):
            return False
        refs = [f"refs/{space}/{name}" for space in spaces]
        finished = await self._git("for-each-ref", "--format=%(refname)", *refs)
        return finished is not None and not set(refs).isdisjoint(finished.text.splitlines())

    async def default_branch(self) -> str | None:
        remote = await self._line("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        configured = await self._line("config", "--get", "init.defaultBranch")
        local = remote.removeprefix("origin/") if remote else None
        for name in (local, remote, "main", "master", "trunk", "develop", configured):
            if name and await self.is_branch(name):
                return name
        return None

    async def branches(self) -> Sequence[str]:
        form = ("--count=500", "--sort=-committerdate", "--format=%(refname:short)")
        finished = await self._git("for-each-ref", *form, "refs/heads")
        return finished.text.split() if finished else ()

    async def repositories(self) -> frozenset[str]:
        try:
            settings = await read_git_settings(self._root)
        except ProgramMissing:
            return frozenset()
        urls = (setting.value for setting in settings if _REMOTE_URL.fullmatch(setting.name))
        return frozenset(name for url in urls if (name := _owner_and_name(url)))

    async def _line(self, *args: str) -> str | None:
        finished = await self._git(*args)
        text = finished.text.strip() if finished else ""
        return text.splitlines()[0] if text else None

    async def _git(self, *args: str) -> Finished | None:
        try:
            finished = await run_git(*args, cwd=self._root)
        except ProgramMissing:
            return None
        return finished if finished.ok else None


_NUMBER = re.compile(
    r"(?:(?:pr|pull(?:\s+request)?)\s*)?#?\s*([1-9]\d{0,8})(?=[\s.,;:!?)]*(?:\s|\Z))",
    re.IGNORECASE,
)
_ID = re.compile(r"[0-9a-f]{7,64}\Z")
_NO_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|\A(?:HEAD|-.*)?\Z", re.DOTALL)
"""What no branch and no tag is called: git is not asked about ``HEAD~1``."""
_ANCESTOR = re.compile(r"(.+?)(?:[~^]\d*)+\Z")
_URL = re.compile(
    r"https?://(?P<host>[\w.-]+(?::\d+)?)/(?P<repo>[\w.-]+/[\w.-]+)/pull/(?P<pr>[1-9]\d{0,8})"
    r"(?:[/?#]\S*)?\Z"
)
_RANGE = re.compile(r"(?P<base>[^\s.](?:(?!\.\.)\S)*)?(?P<dots>\.\.\.?)(?P<tip>[^\s.]\S*)?\Z")
_SPACED = re.compile(r"(\S+)\s+(\.\.\.?)\s+(\S+)")
_REMOTE_URL = re.compile(r"remote\..*\.url", re.DOTALL)
_REMOTE = re.compile(r"(?:[/:])([\w.-]+/[\w.-]+?)(?:\.git)?/?\Z")
_ISSUE_NUMBER = re.compile(
    r"(?:issue\s*+)?+#?\s*+([1-9]\d{0,8})(?=[\s.,;:!?)]*(?:\s|\Z))", re.IGNORECASE
)
_ISSUE_URL = re.compile(
    r"https?://[\w.-]+(?::\d+)?/(?P<repo>[\w.-]+/[\w.-]+)/issues/(?P<issue>[1-9]\d{0,8})"
)
_OF_TARGET = re.compile(
    r"(?:the\s+|this\s+|my\s+|our\s+)?(?:branch|range|commits?|changes?(?:\s+(?:in|on|of))?|diff)\s+"
    r"(?:of\s+|in\s+)?",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"(?:the|this|my|our|current|these)(?:\s+current)?\s+"
    r"(?:branch|changes?|work|commits?|diff)[.!?]*\Z",
    re.IGNORECASE,
)


class FoundTarget(Struct, frozen=True):
    """A target at the start of a text, and the text that follows it."""

    target: dict[str, Any]
    rest: str = ""


async def find_target(text: str, git: Repository, *, named: bool) -> FoundTarget | None:
    """Return the target that ``text`` starts with; more text may follow it.

    With ``named`` the user said that it is one (``/review-pr …``): text that is not a target raises
    :class:`IntentUnclear` then, and otherwise returns None.
    """
    line, _, below = text.partition("\n")
    line = line.strip()
    if _HERE.match(line):
        return FoundTarget(await _since_default("HEAD", git), below)
    head = _OF_TARGET.sub("", line, count=1)
    if named and (spaced := _SPACED.match(head)) and await git.commit(spaced[3]):
        head = "".join(spaced.groups()) + head[spaced.end() :]
    if match := _NUMBER.match(head):
        return FoundTarget({"pr": int(match[1])}, f"{head[match.end() :]}\n{below}")
    word, *more = head.split(maxsplit=1) or [""]
    rest = "\n".join((*more, below))
    word = re.sub(r"(?<!\.)\.\Z", "", word.strip("`'\",;:!?()<>"))
    if match := _URL.match(word):
        return FoundTarget(await _pull_request(match, git), rest)
    if (match := _RANGE.match(word)) and (
        named or match["tip"] or await git.commit(match["base"] or "")
    ):
        return FoundTarget(await _range(word, match, git), rest)
    if target := await _branch_or_commit(word, git, alone=named or not more):
        return FoundTarget(target, rest)
    if not named:
        return None
    raise IntentUnclear(
        f"{word!r} is not a pull request number or URL, branch, commit or range in this repository. "
        f"Write 24, https://github.com/owner/name/pull/24, topic, or main..topic."
    )


async def find_issue(text: str, git: Repository) -> int | None:
    """Return the number of the issue that ``text`` starts with: ``7``, ``#7`` or its address.

    Raises :class:`IntentUnclear` for an issue of another repository.
    """
    head = text.strip()
    if match := _ISSUE_URL.match(head):
        repo, ours = match["repo"], await git.repositories()
        if ours and repo.lower() not in ours:
            raise IntentUnclear(
                f"Issue {match['issue']} belongs to {repo}, and this project is "
                f"{' or '.join(sorted(ours))}. Open cockpit in a checkout of {repo}."
            )
        return int(match["issue"])
    number = _ISSUE_NUMBER.match(head)
    return int(number[1]) if number else None


async def _branch_or_commit(word: str, git: Repository, *, alone: bool) -> dict[str, Any] | None:
    # A branch named like a plain word is meant only where nothing follows: "review main for typos".
    if not alone and not re.search(r"[-/_\d]", word):
        return None
    if await git.commit(word) is None:
        only_remote = f"origin/{word}"
        return await _since_default(only_remote, git) if await git.is_branch(only_remote) else None
    if _ID.match(word) and not await git.is_branch(word):
        return await _one_commit(word, git)
    return await _since_default(word, git)


async def _pull_request(match: re.Match[str], git: Repository) -> dict[str, Any]:
    repo = match["repo"]
    ours = await git.repositories()
    if ours and repo.lower() not in ours:
        raise IntentUnclear(
            f"Pull request {match['pr']} belongs to {repo}, and this project is "
            f"{' or '.join(sorted(ours))}. Open cockpit in a checkout of {repo}."
        )
    host = "" if match["host"].lower() in {"github.com", "www.github.com"} else match["host"] + "/"
    return {"pr": int(match["pr"]), "repo": host + repo}


async def resolve_range(spelled: str, git: Repository) -> dict[str, Any]:
    """``{"range", "base", "tip"}`` of a range as it is spelled. Raises :class:`IntentUnclear`."""
    match = _RANGE.match(spelled)
    if match is None:
        raise IntentUnclear(f"{spelled!r} is not a range of commits such as main..topic.")
    return await _range(spelled, match, git)


async def _range(spelled: str, match: re.Match[str], git: Repository) -> dict[str, Any]:
    """Return the range between two commits; between two branches it begins where they part.

    With two dots, git's own difference would show what the first has gained since as removed.
    """
    first, second = match["base"] or "HEAD", match["tip"] or "HEAD"
    base, tip = await _resolve(first, git), await _resolve(second, git)
    if match["dots"] == "..." or (await _moves(first, git) and await _moves(second, git)):
        base = await _common(base, tip, spelled, git)
    return {"range": spelled, "base": base, "tip": tip}


async def _moves(name: str, git: Repository) -> bool:
    """Whether a name is that of a branch, so that it stands for what is on it."""
    return name == "HEAD" or await git.is_branch(name)


async def _one_commit(commit: str, git: Repository) -> dict[str, Any]:
    tip = await _resolve(commit, git)
    base = await git.commit(f"{commit}^")
    if base is None:
        raise IntentUnclear(
            f"Commit {commit} has no parent here, so there is nothing to compare it with. Name a "
            f"range, such as {commit}..HEAD."
        )
    return {"range": f"{commit}^..{commit}", "base": base, "tip": tip}


async def _since_default(bare: str, git: Repository) -> dict[str, Any]:
    tip = await _resolve(bare, git)
    default = await git.default_branch()
    if default is None:
        raise IntentUnclear(
            f"There is no main or master branch to compare {bare} with. Name a range, such as "
            f"BASE..{bare}."
        )
    spelled = f"{default}...{bare}"
    base = await _common(await _resolve(default, git), tip, spelled, git)
    if base == tip:
        raise IntentUnclear(
            f"{bare} has no commit that {default} lacks, so there is nothing to review. Name a "
            f"range, such as {bare}~1..{bare}."
        )
    return {"range": spelled, "base": base, "tip": tip}


async def _resolve(ref: str, git: Repository) -> str:
    commit = await git.commit(ref)
    if commit is not None and await git.is_branch(ref) and await git.is_tag(ref):
        raise IntentUnclear(
            f"{ref} is a branch and a tag. Write heads/{ref} for the branch, or tags/{ref} for the tag."
        )
    if commit is None:
        if await git.commit("HEAD") is None:
            raise IntentUnclear(
                f"{ref} names no commit: this is not a git repository or it is a bare one, it has no commits"
                " yet, or git is not installed. `cockpit doctor` says which."
            )
        if (older := _ANCESTOR.match(ref)) and await git.commit(older[1]):
            raise IntentUnclear(
                f"{ref} names no commit: the history of {older[1]} begins after it. In a shallow clone "
                "`git fetch --unshallow` brings the rest."
            )
        near = get_close_matches(ref, await git.branches(), n=1)
        meant = f" Did you mean {make_visible(near[0])}?" if near else ""
        raise IntentUnclear(
            f"{ref} names no commit here.{meant} `git fetch` may bring it, in a shallow clone "
            "`git fetch --unshallow`."
        )
    return commit


async def _common(base: str, tip: str, spelled: str, git: Repository) -> str:
    common = await git.merge_base(base, tip)
    if common is None:
        raise IntentUnclear(f"{spelled}: the two have no common history. Use two dots: a..b.")
    return common


def _owner_and_name(url: str) -> str | None:
    match = _REMOTE.search(url.strip()) if "://" in url or "@" in url else None
    return match[1].lower() if match else None
