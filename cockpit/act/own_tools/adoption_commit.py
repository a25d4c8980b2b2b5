"""The commit of an adopted tool: exactly its files, with who wrote them and how they were approved.

What else is staged or changed stays as it is. See ``docs/reference/evolve.md``, version control.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.confined_paths import Confined
from cockpit.access.git_folders import describe_missing_checkout
from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.act.adapters.adapter import Found
from cockpit.act.adapters.git_commit import CommitAdapter
from cockpit.act.commit_hooks import COMMIT_HOOKS, find_hooks
from cockpit.act.text_edits import bytes_digest
from cockpit.act.workspace import Workspace

_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


class AdoptionCommit(Struct, frozen=True):
    """What becomes of adopted files in version control."""

    payload: Mapping[str, Any] | None
    """The commit, as :class:`CommitAdapter` performs it; None where there is none."""
    problem: str
    """Why there is none, in words for the user; empty with a commit."""
    notes: tuple[str, ...] = ()
    hooks: str = ""
    """The hooks that run with it; empty without any."""

    @property
    def branch(self) -> str:
        return str(self.payload["branch"]) if self.payload else ""


def place_at(ground: Workspace, home: Path) -> Workspace:
    """Return the workspace in the main checkout, where the project's tools are."""
    home = home.resolve()
    return ground if ground.root == home else replace(ground, confined=Confined(home))


async def plan_commit(ground: Workspace, files: Mapping[str, str], message: str) -> AdoptionCommit:
    """Plan the commit of ``files`` (text by path), which need not be written yet.

    ``ground`` is the main checkout. Nothing is changed.
    """
    root, paths = ground.root, list(files)
    problem = await find_problem(root, paths)
    if problem:
        return AdoptionCommit(None, problem)
    branch = await run_git("symbolic-ref", "--short", "-q", "HEAD", cwd=root)
    hooks = await find_hooks(root, COMMIT_HOOKS)
    notes = []
    if hooks.names:
        where = "in the sandbox" if ground.sandbox.works else "with all of your rights"
        notes.append(f"The repository's hooks run {where}: {', '.join(hooks.names)}.")
    payload = {
        "message": message,
        "branch": branch.text.strip(),
        "files": [
            {"path": path, "sha256": bytes_digest(text.encode())} for path, text in files.items()
        ],
        "hooks": [pin.payload() for pin in hooks.pins],
        "sandboxed": bool(hooks.names) and ground.sandbox.works,
    }
    return AdoptionCommit(payload, "", tuple(notes), hooks.words() if hooks.names else "")


async def find_problem(root: Path, paths: list[str]) -> str:
    """Return why git cannot take ``paths`` into a commit here; empty when it can."""
    try:
        inside = await run_git("rev-parse", "--show-prefix", cwd=root)
    except ProgramMissing:
        return "git is not installed here."
    if not inside.ok:
        return describe_missing_checkout(
            root, "only a repository keeps versions of its tools", "Run `git init` for that."
        )
    if inside.text.strip():
        return "The project is only a part of a git repository: commit the files there yourself."
    # git refuses this question with literal paths; these are names of tools, without magic.
    ignored = await run_git(
        "check-ignore", "--verbose", "--", *paths, cwd=root, env={"GIT_LITERAL_PATHSPECS": "0"}
    )
    if ignored.code not in (0, 1):
        return f"git cannot say whether it ignores the files: {ignored.error_text[:200]}"
    rules = [line.partition("\t")[0] for line in ignored.text.splitlines()]
    # A rule that begins with an exclamation mark is an exception: the file is not ignored.
    ignoring = [rule for rule in rules if not rule.split(":", 2)[-1].startswith("!")]
    if ignoring:
        return (
            f"git ignores the files ({ignoring[0]}), so they are not committed. Change that rule, or commit"
            f" them with `git add --force -- {shlex.join(paths)}`."
        )
    for name, what in _IN_PROGRESS.items():
        place = await run_git("rev-parse", "--git-path", name, cwd=root)
        if place.ok and (root / place.text.rstrip("\n")).exists():
            return f"{what[0].upper()}{what[1:]} is in progress: commit the files once it ended."
    return ""


async def commit_adoption(payload: Mapping[str, Any], key: str, ground: Workspace) -> str:
    """Commit written files as they were shown; returns what came of it, in a sentence.

    The files stay where git refuses: an adoption does not fail by its commit.
    """
    paths = [str(file["path"]) for file in payload["files"]]
    by_hand = f"Commit them: `git add -- {shlex.join(paths)} && git commit`."
    problem = await find_problem(ground.root, paths)
    if problem:
        return f"Not committed: {problem}"
    if await is_committed(payload, ground):
        return "They are committed already."
    outcome = await CommitAdapter().perform(payload, key, ground)
    if outcome.failure is None:
        return outcome.summary
    return f"Not committed: {outcome.summary} {by_hand}"


async def find_commit(payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
    """Look for the commit of an adoption that was cut off; where there can be none, it counts as done."""
    paths = [str(file["path"]) for file in payload["files"]]
    if await find_problem(ground.root, paths) or await is_committed(payload, ground):
        return "done"
    return await CommitAdapter().probe(payload, key, ground)


async def is_committed(payload: Mapping[str, Any], ground: Workspace) -> bool:
    """Whether the last commit has all the files with this content."""
    for file in payload["files"]:
        blob = await run_git("cat-file", "blob", f"HEAD:{file['path']}", cwd=ground.root)
        if not blob.ok or bytes_digest(blob.stdout) != file["sha256"]:
            return False
    return True
