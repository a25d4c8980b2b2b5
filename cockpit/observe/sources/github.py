"""``pr:N [in GLOB]`` and ``issue:N``: pull requests and issues, read through the ``gh`` program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.access.gh_command import GhCommand, parse_gh
from cockpit.access.run_program import Finished, run_gh
from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.fenced_text import make_visible
from cockpit.core.json_fields import get_count, get_objects, get_text
from cockpit.core.project.own_programs import find_program
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.preview_cost import Preview, estimate_remote
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.diff import MAX_DIFF_BYTES, patch_facts
from cockpit.observe.split_patch import split_patch
from cockpit.store.context.facts import Fact

_PR = (
    "number", "title", "body", "state", "author", "baseRefName", "headRefName",
    "closingIssuesReferences", "files", "additions", "deletions", "labels", "url",
)  # fmt: skip
_ISSUE = ("number", "title", "body", "state", "author", "labels", "url", "comments")
GH_NEEDED = "2.72.0"
"""The first gh whose ``pr view`` knows ``closingIssuesReferences`` (April 2025)."""
_UNKNOWN_FIELD = re.compile(r'unknown (?:JSON field|flag): "?([\w-]+)"?', re.IGNORECASE)
_MAX_COMMENTS = 50

_LOGIN = ("gh_login", "gh is not logged in to GitHub: run `gh auth login` once")
# Messages of gh and ours in their place. The first match applies.
_FAILURES: tuple[tuple[str, str, str], ...] = (
    (r"gh auth login|not logged in|GH_TOKEN|HTTP 401|bad credentials|authentication", *_LOGIN),
    (
        r"HTTP 406|too_large|diff exceeded|maximum number of (?:lines|files)",
        "gh_too_large",
        "GitHub gives no diff of more than 300 files or 20,000 lines (HTTP 406); fetch the branch, as"
        " `gh pr checkout` does, and use its range: diff:BASE...HEAD, or /review-pr main...HEAD",
    ),
    (r"rate limit|HTTP 429", "gh_rate_limit", "GitHub's rate limit is reached; try again later"),
    (
        r"could not resolve to a repository",
        "gh_not_found",
        "GitHub knows no such repository; check the remote's URL and that your account may read it",
    ),
    (
        r"could not resolve to an? (?:pull ?request|issue)|no pull requests? found|HTTP 404"
        r"|could not find (?:pull request|issue)|not found",
        "gh_not_found",
        "GitHub knows no such number in this repository, or not for your account",
    ),
    (
        r"HTTP 403|forbidden|SAML",
        "gh_forbidden",
        "GitHub does not let this account read it (HTTP 403)",
    ),
    (
        r"error connecting|dial tcp|no such host|timeout|timed out|connection re|network is|TLS|EOF"
        r"|certificate|HTTP 5\d\d|temporary failure",
        "gh_network",
        "GitHub could not be reached; check the network",
    ),
    (
        r"no git remotes|not a git repository|none of the git remotes|known GitHub host",
        "gh_no_repository",
        "the project has no GitHub repository among its remotes",
    ),
)


class GhFailed(SourceFailed):
    """``gh`` failed; ``code`` says why: ``gh_missing``, ``gh_login``, ``gh_not_found``,
    ``gh_too_large``, ``gh_network``, …"""

    code = "gh_failed"


class PullRequestSource(Struct, frozen=True):
    """Reads a pull request: its description, then its diff file by file."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """Ask nothing of GitHub."""
        check_gh_read(ground, f"pr:{item.ref}", ("pr", "view", item.ref))
        return await estimate_remote(item, ground)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """Its description (without a glob), and one fact for each changed file."""
        seen = await _view(ground, "pr", item.ref, _PR)
        done = await _gh(ground, ("pr", "diff", item.ref), most=MAX_DIFF_BYTES)
        patches = split_patch(done.stdout.decode("utf-8", "replace"))
        shown = [patch for patch in patches if matches_glob(patch.path, item.glob)]
        if not shown and item.glob is not None:
            raise SourceFailed(f"nothing changed in {item.glob} in pull request {item.ref}")
        marks = {"pr": item.ref, "repo": ground.repo}
        described = [] if item.glob is not None else [_description(item, seen, ground)]
        return [*described, *patch_facts(item, shown, marks)]


class IssueSource(Struct, frozen=True):
    """Reads an issue with its comments."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """Ask nothing of GitHub."""
        check_gh_read(ground, f"issue:{item.ref}", ("issue", "view", item.ref))
        return await estimate_remote(item, ground)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact."""
        return [_description(item, await _view(ground, "issue", item.ref, _ISSUE), ground)]


def _description(item: ScopeItem, seen: Mapping[str, Any], ground: ProjectSnapshot) -> Fact:
    head = (
        f"{'Pull request' if item.kind == 'pr' else 'Issue'} {item.ref}: {get_text(seen, 'title')}"
    )
    lines = [head, f"state: {get_text(seen, 'state')}, author: {_login(seen)}"]
    if item.kind == "pr":
        lines.append(
            f"branch: {get_text(seen, 'headRefName')} into {get_text(seen, 'baseRefName')}"
        )
        files = get_objects(seen, "files")
        added, removed = get_count(seen, "additions"), get_count(seen, "deletions")
        lines.append(f"changes: {pluralize(len(files), 'file')}, +{added} −{removed}")
        issues = get_objects(seen, "closingIssuesReferences")
        if issues:
            closes = ", ".join(f"#{get_count(issue, 'number')}" for issue in issues)
            lines.append(f"closes: {closes}")
    labels = ", ".join(sorted(get_text(label, "name") for label in get_objects(seen, "labels")))
    if labels:
        lines.append(f"labels: {labels}")
    body = get_text(seen, "body").replace("\r\n", "\n").strip() or "(no description)"
    parts = ["\n".join(lines), body]
    if item.kind == "pr":
        parts.append(
            "\n".join(
                f"{get_text(f, 'path')} +{get_count(f, 'additions')} −{get_count(f, 'deletions')}"
                for f in get_objects(seen, "files")
            )
        )
    for comment in get_objects(seen, "comments")[:_MAX_COMMENTS]:
        comment_body = get_text(comment, "body").replace("\r\n", "\n").strip()
        parts.append(f"{_login(comment)} wrote:\n{comment_body}")
    text = "\n\n".join(part for part in parts if part)
    return make_fact(
        item,
        text,
        outline="\n".join(lines),
        reference=head,
        provenance={
            item.kind: item.ref,
            "repo": ground.repo,
            "url": get_text(seen, "url"),
            "sha256": text_digest(canonical_json(seen)),
        },
        key=item.ref,
    )


async def _view(
    ground: ProjectSnapshot, area: str, number: str, fields: Sequence[str]
) -> Mapping[str, Any]:
    """``gh AREA view`` as JSON; fields that an older gh does not know are left out."""
    known_fields = list(fields)
    while True:
        try:
            done = await _gh(ground, (area, "view", number, "--json", ",".join(known_fields)))
        except _UnknownField as unknown:
            if unknown.field not in known_fields or len(known_fields) == 1:
                raise
            known_fields.remove(unknown.field)
            continue
        try:
            seen = json.loads(done.stdout)
        except ValueError as error:
            raise GhFailed(f"gh gave no JSON for {area} {number}") from error
        if not isinstance(seen, dict):
            raise GhFailed(f"gh gave no JSON object for {area} {number}")
        return seen


class _UnknownField(GhFailed):
    """This gh does not know a JSON field."""

    def __init__(self, subject: str, field: str) -> None:
        super().__init__(
            f"{subject} cannot be read: gh is too old; it does not know {field}, which needs gh"
            f" {GH_NEEDED} or newer. Update gh"
        )
        self.field = field


async def _gh(
    ground: ProjectSnapshot, command_words: Sequence[str], most: int = 8_000_000
) -> Finished:
    subject = f"{command_words[0]}:{command_words[2]}"
    arguments = [*command_words, "--repo", ground.repo] if ground.repo else list(command_words)
    return await run_gh_read(ground, subject, arguments, most)


def check_gh_read(ground: ProjectSnapshot, subject: str, arguments: Sequence[str]) -> GhCommand:
    """Parse a ``gh`` command that reads; nothing is run, and GitHub is not asked.

    ``subject`` is the scope item, for errors. Raises :class:`GhFailed` where it could not run here, and
    ``GhRefused``.
    """
    if not ground.gh:
        raise GhFailed(f"{subject} cannot be read: GitHub is switched off here", code="gh_off")
    command = parse_gh(arguments, project_repo=ground.repo)
    if command.access != "read":
        raise GhFailed(f"{subject} cannot be read: this gh command writes")
    if find_program("gh") is None:
        raise GhFailed(
            f"{subject} cannot be read: the gh program is not installed (https://cli.github.com)",
            code="gh_missing",
        )
    return command


async def run_gh_read(
    ground: ProjectSnapshot, subject: str, arguments: Sequence[str], most: int
) -> Finished:
    """Run a ``gh`` command that reads, and return its output of at most ``most`` bytes.

    Raises as :func:`check_gh_read` does, and :class:`GhFailed` where it fails.
    """
    command = check_gh_read(ground, subject, arguments)
    done = await run_gh(command.argv, cwd=ground.root, max_bytes=most)
    # `gh pr checks` ends with an error when a check has failed: its output is the answer.
    if done.ok or (command.verb == "checks" and done.stdout.strip() and not done.truncated):
        return done
    raise explain_gh_failure(subject, done)


def explain_gh_failure(subject: str, done: Finished) -> GhFailed:
    """Explain a failed ``gh`` run in one sentence; ``subject`` names what was read."""
    if done.timed_out:
        return GhFailed(f"{subject} cannot be read: gh took too long", code="gh_network")
    if done.truncated:
        return GhFailed(f"{subject} cannot be read: it is too large", code="gh_too_large")
    output = done.error_text or done.text
    if unknown := _UNKNOWN_FIELD.search(output):
        return _UnknownField(subject, unknown[1])
    for pattern, code, explanation in _FAILURES:
        if re.search(pattern, output, re.IGNORECASE):
            return GhFailed(f"{subject} cannot be read: {explanation}", code=code)
    if done.code == 4:  # gh's exit status for "authentication required"
        return GhFailed(f"{subject} cannot be read: {_LOGIN[1]}", code=_LOGIN[0])
    first = next((line.strip() for line in output.splitlines() if line.strip()), "")
    words = mask(make_visible(first))[:300]
    return GhFailed(f"{subject} cannot be read: gh ended with {done.code}: {words}")


def _login(seen: Mapping[str, Any]) -> str:
    author = seen.get("author")
    return get_text(author, "login") if isinstance(author, dict) else "unknown"
