"""Commit exactly the named files, whatever else is staged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.run_program import MAX_BYTES, Finished, prepare_git, run_git, run_program
from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded, tail
from cockpit.act.commit_hooks import COMMIT_HOOKS, find_hooks
from cockpit.act.pinned_files import PinnedFile, describe_change
from cockpit.act.sandbox.git_view import ViewRefused, run_in_view
from cockpit.act.text_edits import digest_now
from cockpit.act.workspace import Workspace
from cockpit.core.errors import read_machine_fault
from cockpit.core.read_record import convert

TRAILER = "Cockpit-Key"
"""The trailer whose value is the action's key."""

_TIMEOUT_S = 300.0
_TRAILER_LINE = re.compile(r"[A-Za-z][A-Za-z0-9-]*: \S")
_IDENTITY = ("tell me who you are", "unable to auto-detect email", "empty ident name")


class _File(Struct, frozen=True):
    path: str
    sha256: str | None


class _Payload(Struct, frozen=True):
    message: str
    branch: str
    files: tuple[_File, ...]
    hooks: tuple[PinnedFile, ...] = ()
    sandboxed: bool = False


class CommitAdapter:
    """Performs ``git_commit``."""

    ends_when_cancelled = False

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Commit if branch and files are those of the preview (else conflict)."""
        request = convert(payload, _Payload)
        root = ground.root
        branch = await run_git("symbolic-ref", "--short", "-q", "HEAD", cwd=root)
        if branch.text.strip() != request.branch:
            return failed(
                "conflict",
                f"The branch is {branch.text.strip() or 'detached'}, not {request.branch or 'detached'} "
                "as shown; nothing was committed.",
            )
        for file in request.files:
            now = await asyncio.to_thread(digest_now, ground.confined, file.path)
            if now != file.sha256:
                return failed(
                    "conflict", f"{file.path} changed since it was shown; nothing was committed."
                )
        hooks = await find_hooks(root, COMMIT_HOOKS)
        if changed := describe_change(request.hooks, hooks.pins):
            return failed("conflict", f"Of its hooks, {changed}; nothing was committed.")
        if request.sandboxed and not ground.sandbox.works:
            return failed(
                "conflict",
                f"Its hooks were shown as running in a sandbox, but {ground.sandbox.missing}; nothing was "
                "committed.",
            )
        paths = [file.path for file in request.files]
        added = await _announce(root, paths)
        argv, environment = await prepare_git(
            "commit",
            "--only",
            "--no-gpg-sign",
            "--cleanup=verbatim",
            # Not by a pipe: git reads it after its hooks, when the writing process may be gone.
            f"--message={keyed(request.message, key)}",
            "--",
            *paths,
            cwd=root,
            hooks=bool(hooks.names),
        )
        left: tuple[str, ...] = ()
        try:
            if request.sandboxed:
                finished, left = await _commit_confined(ground, request.branch, argv, environment)
            else:
                finished = await run_program(
                    ground.sandbox.limited(argv), cwd=root, timeout_s=_TIMEOUT_S, env=environment
                )
        except ViewRefused as error:
            if added:
                await run_git("reset", "--quiet", "--", *added, cwd=root)
            return failed("permanent", f"git commit failed: {error}")
        if not finished.ok and added:
            # Their mere names were put into the index for this commit; take them out again.
            await run_git("reset", "--quiet", "--", *added, cwd=root)
        return await _outcome(root, request, finished, left)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Search the key in the trailers of all branches; unknown while git has locked the index."""
        commits = await run_git(
            "log",
            "--all",
            "HEAD",
            "--max-count=1",
            "--fixed-strings",
            f"--grep={TRAILER}: {key}",
            "--format=%H",
            cwd=ground.root,
        )
        if commits.ok and commits.text.strip():
            return "done"
        unborn = await run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=ground.root)
        if not commits.ok and unborn.ok:
            return "unknown"
        lock = await run_git("rev-parse", "--git-path", "index.lock", cwd=ground.root)
        locked = await asyncio.to_thread((ground.root / lock.text.rstrip("\n")).exists)
        # A hook of the commit that was cut off may still run, and finish the commit.
        return "unknown" if locked or not lock.ok else "not_done"


def keyed(message: str, key: str) -> str:
    """Return ``message`` with the key as its last trailer, after trailers that are there.

    Done here because git's own ``--trailer`` drops lines that begin with ``#``.
    """
    text = message.strip()
    _, _, rest = text.partition("\n\n")
    last = rest.rpartition("\n\n")[2]
    joins = bool(last) and all(_TRAILER_LINE.match(line) for line in last.splitlines())
    between = "\n" if joins else "\n\n"
    return f"{text}{between}{TRAILER}: {key}\n"


async def _commit_confined(
    ground: Workspace, branch: str, argv: Sequence[str], variables: Mapping[str, str]
) -> tuple[Finished, tuple[str, ...]]:
    """Commit in the sandbox, in a view of the repository; returns also what was not taken over."""
    given = {
        name: value
        for name, value in variables.items()
        if name in ("LC_ALL", "LANGUAGE", "PAGER")
        or (name.startswith("GIT_") and name not in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"))
    }
    ended, taken = await run_in_view(
        ground.sandbox,
        argv,
        ground.root,
        {**ground.environment, **given},
        timeout_s=_TIMEOUT_S,
        max_bytes=MAX_BYTES,
        may_move=lambda ref: ref == f"refs/heads/{branch}",
    )
    return ended.finished, taken.left


async def _announce(root: Path, paths: list[str]) -> list[str]:
    """Add new files to the index (``commit --only`` takes no others); returns them."""
    untracked = await run_git("ls-files", "-z", "--others", "--", *paths, cwd=root)
    new = [path for path in untracked.text.split("\0") if path]
    if new:
        await run_git("add", "--intent-to-add", "--force", "--", *new, cwd=root)
    return new


async def _outcome(
    root: Path, request: _Payload, finished: Finished, left: tuple[str, ...]
) -> Outcome:
    output: dict[str, Any] = {"stdout": tail(finished.stdout), "stderr": tail(finished.stderr)}
    if left:
        output["left"] = list(left)
    if finished.timed_out:
        return Outcome(
            "timeout", f"git commit was ended after {_TIMEOUT_S:.0f} s.", "permanent", output, True
        )
    error = finished.error_text
    if not finished.ok:
        if read_machine_fault(error):
            return failed("machine", f"git commit failed: {finished.reason}.", maybe=True, **output)
        if "index.lock" in error or "cannot lock ref" in error:
            return failed("transient", "Another git has locked the repository.", **output)
        if any(words in error for words in _IDENTITY):
            return failed(
                "permanent",
                "git does not know who you are. Set it with `git config user.name` and `git config "
                "user.email`; nothing was committed.",
                **output,
            )
        if any(
            w in finished.text
            for w in ("nothing to commit", "nothing added to commit", "no changes")
        ):
            return failed("permanent", "There was nothing to commit in these files.", **output)
        return failed("permanent", f"git commit failed: {finished.reason}", **output)
    head = await run_git("rev-parse", "HEAD", cwd=root)
    commit = head.text.strip()
    return succeeded(
        f"Committed {commit[:10]} on {request.branch or 'a detached HEAD'}.",
        commit=commit,
        **output,
    )
