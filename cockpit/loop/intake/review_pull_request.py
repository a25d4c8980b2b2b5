"""The context of a pull request's review, fetched with ``gh``.

It is the metadata, the diff with a file summary, and the titles and URLs of linked issues: all of it, or a
clear error. See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cockpit.access.run_program import Finished, ProgramMissing, run_gh
from cockpit.core.parse_diff import FileDiff, parse_diff
from cockpit.core.read_record import decode_json
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.review_template import ChangedFile, OpeningFailed, ReviewContext
from cockpit.observe.sources.github import explain_gh_failure

FIELDS = "title,body,state,author,closingIssuesReferences,files"

_ISSUES_AT_ONCE = 4


class _Login(msgspec.Struct):
    login: str = ""
    name: str | None = None


class _Repository(msgspec.Struct):
    name: str = ""
    owner: _Login | None = None


class _Reference(msgspec.Struct):
    number: int
    url: str = ""
    repository: _Repository | None = None


class _File(msgspec.Struct):
    path: str
    additions: int = 0
    deletions: int = 0


class _PullRequest(msgspec.Struct):
    title: str
    state: str
    body: str | None = ""
    author: _Login | None = None
    closing: list[_Reference | int] | None = msgspec.field(
        name="closingIssuesReferences", default=None
    )
    files: list[_File] | None = None


class _Issue(msgspec.Struct):
    title: str
    url: str


class _Head(msgspec.Struct):
    oid: str = msgspec.field(name="headRefOid")


async def pull_request(number: int, repo: str | None, root: Path) -> ReviewContext:
    """Pull request ``number`` of ``repo`` (``[host/]owner/name``; None: the project's own).

    Raises :class:`OpeningFailed` for every failure of gh; nothing partial is returned.
    """
    ours = frozenset({repo.lower()}) if repo else await Repository(root).repositories()
    gh = _Gh(number, ("--repo", repo) if repo else (), ours, root)
    pull = await gh.json(_PullRequest, "pr", "view", str(number), "--json", FIELDS)
    references = [
        _Reference(item) if isinstance(item, int) else item for item in pull.closing or []
    ]
    try:
        async with asyncio.TaskGroup() as group:
            diff = group.create_task(gh.text("pr", "diff", str(number)))
            head = group.create_task(gh.head())
            room = asyncio.Semaphore(_ISSUES_AT_ONCE)
            issues = [group.create_task(gh.issue(item, room)) for item in references]
    except ExceptionGroup as errors:
        failed = [item for item in errors.exceptions if isinstance(item, OpeningFailed)]
        raise (failed or errors.exceptions)[0] from None
    rev, notice = head.result()
    return ReviewContext(
        title=pull.title,
        author=(pull.author.login or pull.author.name or "") if pull.author else "",
        state=pull.state,
        body=pull.body or "",
        diff=diff.result(),
        files=_files(parse_diff(diff.result()), pull.files or []),
        linked=tuple(issue.result() for issue in issues),
        rev=rev,
        notice=notice,
    )


class _Gh:
    """Calls gh about one pull request."""

    def __init__(
        self, number: int, repo: tuple[str, ...], ours: frozenset[str], root: Path
    ) -> None:
        self._number = number
        self._repo = repo
        self._ours = ours
        self._root = root

    async def text(self, *args: str) -> str:
        done = await self._run(*args, *self._repo)
        if done.truncated or done.ok:
            return done.text
        raise self._failed(done, args[0])

    async def json(self, kind: Any, *args: str) -> Any:
        done = await self._run(*args, *self._repo)
        if not done.ok:
            raise self._failed(done, args[0])
        try:
            return decode_json(done.stdout, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise OpeningFailed(
                f"gh {' '.join(args[:2])} answered something other than the JSON it was asked for: "
                f"{error}. `gh --version` may be unlike any this was written for."
            ) from error

    async def issue(self, reference: _Reference, room: asyncio.Semaphore) -> tuple[str, str, str]:
        # An issue of another repository would be looked up here by its number: ask by URL.
        query = reference.url if _elsewhere(reference, self._ours) else ""
        query = query or str(reference.number)
        async with room:
            issue = await self.json(_Issue, "issue", "view", query, "--json", "title,url")
        return f"#{reference.number}", issue.title, issue.url

    async def head(self) -> tuple[str | None, str]:
        """The head commit if this clone has it: files are then read there. Not having it, or not
        learning it, is not a failure; the working tree is read instead, and the notice says so."""
        notice = (
            f"The head of PR #{self._number} is not in this clone, so files are read from your "
            f"worktree. `gh pr checkout {self._number}` brings it."
        )
        done = await self._run("pr", "view", str(self._number), "--json", "headRefOid", *self._repo)
        try:
            oid = decode_json(done.stdout, _Head).oid if done.ok else ""
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None, notice
        if not re.fullmatch(r"[0-9a-f]{40,64}", oid):
            return None, notice
        commit = await Repository(self._root).commit(oid)
        return (commit, "") if commit else (None, notice)

    async def _run(self, *args: str) -> Finished:
        try:
            return await run_gh(args, cwd=self._root)
        except ProgramMissing as error:
            raise OpeningFailed(
                "gh, GitHub's command line, is not installed: install it from "
                "https://cli.github.com, or review a local range such as /review-pr topic."
            ) from error

    def _failed(self, done: Finished, area: str) -> OpeningFailed:
        subject = f"Pull request {self._number}"
        if area == "issue":
            subject = f"An issue that pull request {self._number} closes"
        return OpeningFailed(f"{explain_gh_failure(subject, done)}.")


def _elsewhere(reference: _Reference, ours: frozenset[str]) -> bool:
    theirs = reference.repository
    if theirs is None or theirs.owner is None:
        return False
    named = f"{theirs.owner.login}/{theirs.name}".lower()
    return bool(ours) and not any(own == named or own.endswith(f"/{named}") for own in ours)


def _files(parsed: Sequence[FileDiff], listed: Sequence[_File]) -> tuple[ChangedFile, ...]:
    """The diff tells all files; GitHub's own list ends at 100, but knows those that a diff cut off
    at the output limit does not."""
    paths = {file.path for file in parsed}
    counts = {file.path: file for file in listed}
    changed = [_changed(file, counts.get(file.path)) for file in parsed]
    changed += [
        ChangedFile(file.path, file.additions, file.deletions)
        for file in listed
        if file.path not in paths
    ]
    return tuple(changed)


def _changed(file: FileDiff, listed: _File | None) -> ChangedFile:
    notes = ["binary"] if file.binary else []
    notes += [file.status] if file.status in {"added", "removed"} else []
    notes += [f"mode {file.mode[0]} → {file.mode[1]}"] if file.mode else []
    return ChangedFile(
        path=file.path,
        insertions=listed.additions if listed else len(file.added),
        deletions=listed.deletions if listed else len(file.removed),
        was=file.old_path if file.status == "renamed" else "",
        note="; ".join(notes),
    )
