"""``gh`` commands: parsed, checked against a table and rebuilt before they run.

Anything that is not in the table (aliases, extensions, ``auth``, ``secret``, ``api`` with a method…) is
refused with a message that a model can act on. The argv that runs is rebuilt from the parsed command,
so that what the user sees and what ``gh`` does cannot differ. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from cockpit.access.gh_flags import GhArguments, GhRefused, read_arguments, split_words
from cockpit.access.gh_table import AREAS_REFUSED, COMMANDS, Spec

MAX_BODY = 65_536
"""GitHub's own limit of a body, in characters."""

_NUMBER = re.compile(r"#?([1-9][0-9]{0,9})")
_URL = re.compile(
    r"https?://([A-Za-z0-9.-]+)/([\w.-]+)/([\w.-]+)/(pull|issues|actions/runs)/([1-9][0-9]{0,11})"
    r"(?:[/?#].*)?",
    re.ASCII,
)
_REPO = re.compile(
    r"(?:https?://)?(?:([\w-]+\.[\w.-]+)/)?([\w-]+)/([\w.-]+?)(?:\.git)?/?", re.ASCII
)
_TAG = re.compile(r"[A-Za-z0-9][\w./+-]{0,200}", re.ASCII)
_ENDPOINT = re.compile(
    r"/?repos/([\w{}.-]+)/([\w{}.-]+)((?:/[\w.:@%+-]+)*)(\?[\w=&%.,:+-]*)?", re.ASCII
)
_ELSEWHERE = re.compile(r"(?i)(?<![\w-])(?:repo|org|user):")
_URL_KIND = {"pr": "pull", "issue": "issues", "run": "actions/runs"}


class GhCommand(Struct, frozen=True):
    """A parsed ``gh`` command.

    ``argv`` begins with ``gh`` and includes the body. ``number`` is the number of the pull request, issue
    or run. ``fields`` are the flags in their order, by long name (a flag without a value is
    ``("draft", "yes")``), without the body.
    """

    argv: tuple[str, ...]
    area: str
    verb: str
    number: int | None
    access: Literal["read", "write"]
    fields: tuple[tuple[str, str], ...]
    body: str | None
    repo: str | None

    def execution_argv(self) -> tuple[tuple[str, ...], bytes | None]:
        """Return the argv to run, with ``--body-file -`` for the body, and the body as standard input."""
        if self.body is None:
            return self.argv, None
        at = self.argv.index("--body")
        argv = (*self.argv[:at], "--body-file", "-", *self.argv[at + 2 :])
        return argv, self.body.encode("utf-8", "replace")

    def with_body(self, body: str) -> GhCommand:
        """Return the same command with another body (for the marker that a later probe searches)."""
        bare = self.argv
        if self.body is not None:
            at = bare.index("--body")
            bare = bare[:at] + bare[at + 2 :]
        return GhCommand(
            argv=(*bare, "--body", body),
            area=self.area,
            verb=self.verb,
            number=self.number,
            access=self.access,
            fields=self.fields,
            body=body,
            repo=self.repo,
        )


def parse_gh(command: str | Sequence[str], *, project_repo: str | None = None) -> GhCommand:
    """Parse ``command``: a line, split as a shell splits it, or an argv; ``gh`` is optional.

    ``project_repo`` is the project's ``owner/name``: any other repository is refused. Raises
    :class:`GhRefused`.
    """
    words = split_words(command)
    if not words:
        raise GhRefused("an empty gh command: write for example `gh pr view 24 --json title,body`")
    area = words[0]
    verb = words[1] if len(words) > 1 else ""
    if area in AREAS_REFUSED:
        raise GhRefused(f"`gh {area}` is never run from here: {AREAS_REFUSED[area]}")
    if area == "api":
        return _parse_api(words[1:], project_repo)
    verbs = sorted(v for a, v in COMMANDS if a == area)
    if not verbs:
        areas = ", ".join(sorted({a for a, _ in COMMANDS}))
        raise GhRefused(f"`gh {area}` is not known here (no aliases or extensions); known: {areas}")
    spec = COMMANDS.get((area, verb))
    if spec is None:
        name = f"gh {area} {verb}".strip()
        raise GhRefused(f"`{name}` is not known here; known: {', '.join(verbs)}")
    arguments = read_arguments(words[2:], spec, f"gh {area} {verb}")
    _check_body(arguments.body)
    repo = _same_repo(arguments.value("repo"), project_repo)
    positional, number = _positional(
        area, spec, arguments.positional, project_repo, f"gh {area} {verb}"
    )
    _check_rules(area, verb, arguments)
    if area == "search" and not arguments.has("repo"):
        arguments.flags.append(("repo", repo))
    flags = [w for name, value in arguments.flags for w in _flag_words(name, value, spec)]
    tail = [] if arguments.body is None else ["--body", arguments.body]
    return GhCommand(
        argv=("gh", area, verb, *positional, *flags, *tail),
        area=area,
        verb=verb,
        number=number,
        access=spec.access,
        fields=tuple((name, value or "yes") for name, value in arguments.flags),
        body=arguments.body,
        repo=repo,
    )


def is_reading(words: Sequence[str]) -> bool:
    """Return whether ``words`` (those after ``gh``) name a command that only reads.

    Its flags are not checked; :func:`parse_gh` does that.
    """
    if words[:1] == ["api"]:
        return True  # any other method than GET is refused when it is parsed
    spec = COMMANDS.get((words[0], words[1])) if len(words) > 1 else None
    return spec is not None and spec.access == "read"


def _flag_words(name: str, value: str | None, spec: Spec) -> list[str]:
    return [f"--{name}"] if spec.kind(name) == "bool" or value is None else [f"--{name}", value]


def _positional(
    area: str, spec: Spec, words: list[str], project_repo: str | None, name: str
) -> tuple[list[str], int | None]:
    kind = spec.positional
    if kind == "query":
        if project_repo is None:
            raise GhRefused(f"`{name}` needs a project whose GitHub repository is known")
        return words, None
    if len(words) > 1 or (kind == "none" and words):
        raise GhRefused(f"`{name}` got too many words: {' '.join(words)[:80]!r}; quote values")
    if not words:
        if spec.required:
            raise GhRefused(f"`{name}` needs a {spec.required}, for example `{name} 24`")
        return [], None
    word = words[0]
    if kind == "tag":
        if not _TAG.fullmatch(word):
            raise GhRefused(f"{word[:40]!r} is not a tag")
        return [word], None
    if kind == "repo":
        return [_same_repo(word, project_repo) or word], None
    if match := _NUMBER.fullmatch(word):
        return [match[1]], int(match[1])
    if url := _URL.fullmatch(word):
        if url[4] != _URL_KIND.get(area):
            raise GhRefused(f"{word[:80]!r} is not the address of what `{name}` is about")
        _same_repo(f"{url[1]}/{url[2]}/{url[3]}", project_repo)
        return [url[5]], int(url[5])
    raise GhRefused(f"`{name}` takes a number (24), not {word[:60]!r}")


def _same_repo(name: str | None, project_repo: str | None) -> str | None:
    if name is None:
        return project_repo
    key = _repo_key(name)
    if project_repo is None:
        raise GhRefused(
            f"the project has no GitHub repository that is known: leave out {name[:80]!r}"
        )
    if key is None or key != _repo_key(project_repo):
        raise GhRefused(f"only {project_repo} may be used here, not {name[:80]!r}")
    return project_repo


def _repo_key(text: str) -> tuple[str, str, str] | None:
    match = _REPO.fullmatch(text)
    if match is None:
        return None
    return (match[1] or "github.com").casefold(), match[2].casefold(), match[3].casefold()


def _check_body(body: str | None) -> None:
    if body is None:
        return
    if len(body) > MAX_BODY:
        raise GhRefused(f"the body has {len(body)} characters; GitHub takes {MAX_BODY}")
    if any("\ud800" <= c <= "\udfff" for c in body):
        raise GhRefused("the body is not valid Unicode text")


def _check_rules(area: str, verb: str, arguments: GhArguments) -> None:
    if (area, verb) == ("pr", "review"):
        chosen = [n for n in ("approve", "request-changes", "comment") if arguments.has(n)]
        if len(chosen) != 1:
            raise GhRefused(
                "`gh pr review` needs exactly one of --approve, --request-changes and --comment"
            )
        if chosen != ["approve"] and not (arguments.body or "").strip():
            raise GhRefused(f"`gh pr review --{chosen[0]}` needs text in --body")
    if area == "search" and any(_ELSEWHERE.search(word) for word in arguments.positional):
        raise GhRefused("only the project is searched: leave out repo:, org: and user:")
    if _ELSEWHERE.search(arguments.value("search") or ""):
        raise GhRefused("only the project is listed: leave out repo:, org: and user:")
    if verb == "comment" and not (arguments.body or "").strip():
        raise GhRefused(f"`gh {area} comment` needs text in --body")
    if verb == "create" and (not arguments.value("title") or arguments.body is None):
        raise GhRefused(f"`gh {area} create` needs --title and --body")
    if (
        verb == "edit"
        and arguments.body is None
        and not {flag for flag, _ in arguments.flags} - {"repo"}
    ):
        raise GhRefused(f"`gh {area} edit` needs at least one field to change, like --title")
    ways = sum(arguments.has(name) for name in ("merge", "squash", "rebase"))
    if (area, verb) == ("pr", "merge") and ways != 1:
        raise GhRefused("`gh pr merge` needs exactly one of --merge, --squash and --rebase")


def _parse_api(words: list[str], project_repo: str | None) -> GhCommand:
    """Parse a ``gh api`` read of the project's own repository: GET, no fields, no other headers."""
    spec = COMMANDS["api", "get"]
    arguments = read_arguments(words, spec, "gh api")
    method = arguments.value("method")
    if method is not None and method.upper() != "GET":
        raise GhRefused(
            f"`gh api` with --method {method} is not supported: use `gh pr …` or `gh issue …` to write"
        )
    if len(arguments.positional) != 1:
        raise GhRefused("`gh api` takes one endpoint, like repos/{owner}/{repo}/pulls/24/files")
    endpoint = arguments.positional[0]
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or ".." in endpoint or "%2e" in endpoint.casefold():
        raise GhRefused(
            f"`gh api {endpoint[:60]}` is not supported: only reads under repos/{{owner}}/{{repo}}/"
        )
    if (match[1], match[2]) != ("{owner}", "{repo}"):
        _same_repo(f"{match[1]}/{match[2]}", project_repo)
    flags = [w for name, value in arguments.flags for w in _flag_words(name, value, spec)]
    return GhCommand(
        argv=("gh", "api", endpoint, *flags),
        area="api",
        verb="get",
        number=None,
        access="read",
        fields=tuple((name, value or "yes") for name, value in arguments.flags),
        body=None,
        repo=project_repo,
    )
