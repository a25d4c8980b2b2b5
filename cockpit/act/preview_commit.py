"""Previews of commits: the named files, the message and the hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cockpit.access.commands.judge_command import is_own_worktree
from cockpit.access.git_folders import describe_missing_checkout
from cockpit.access.run_program import run_git
from cockpit.act.commit_hooks import COMMIT_HOOKS, Hooks, find_hooks
from cockpit.act.preview_files import changed_lines
from cockpit.act.proposed_action import ActionPreview, FileDiff, draw_diff
from cockpit.act.text_edits import ActionRefused, digest_now
from cockpit.act.tool_payloads import GitCommit
from cockpit.act.workspace import Workspace
from cockpit.core.fenced_text import fence_text
from cockpit.core.text import pluralize

_DRAWN = 2 * 1024 * 1024
_LONGEST_MESSAGE = 64 * 1024


async def preview_commit(payload: GitCommit, ground: Workspace) -> ActionPreview:
    """Preview a commit: the named files against the last commit, the message, and the hooks that will run."""
    root = ground.root
    top = await run_git("rev-parse", "--show-prefix", cwd=root)
    if not top.ok:
        raise ActionRefused(
            describe_missing_checkout(root, "a commit needs one", "Run `git init` for that.")
        )
    if top.text.strip():
        raise ActionRefused("The project is only a part of a git repository; commit there.")
    if "\0" in payload.message or len(payload.message.encode()) > _LONGEST_MESSAGE:
        raise ActionRefused(
            f"The message is longer than {_LONGEST_MESSAGE // 1024} KiB or contains a NUL character; use "
            "a shorter message in plain text."
        )
    branch = await run_git("symbolic-ref", "--short", "-q", "HEAD", cwd=root)
    paths = list(dict.fromkeys(ground.confined.relative(path) for path in payload.paths))
    diffs: list[FileDiff] = []
    notes: list[str] = []
    fields: list[tuple[str, str]] = [("branch", branch.text.strip() or "(detached)")]
    files: list[dict[str, Any]] = []
    total = [0, 0]
    for path in paths:
        if ground.confined.inside(path).is_dir():
            raise ActionRefused(f"{path} is a directory. Name the files to commit, one by one.")
        now = digest_now(ground.confined, path)
        before, after = await _committed(root, path), _working(ground, path)
        _check(path, now, before, after)
        added, removed = changed_lines(_text(before) or "", _text(after) or "")
        total[0] += added
        total[1] += removed
        fields.append((path, _stat(before, after, added, removed)))
        files.append({"path": path, "sha256": now})
        if any(side is not None and _text(side) is None for side in (before, after)):
            notes.append(f"{path} is not text; its content is not shown.")
            continue
        diff, note = draw_diff(path, _text(before), _text(after))
        diffs.append(diff)
        notes += [note] if note else []
    hooks = await find_hooks(root, COMMIT_HOOKS)
    notes += await _manners(ground, hooks)
    if hooks.names:
        fields.append(("hooks", hooks.words()))
    subject = payload.message.strip().splitlines()[0]
    count = pluralize(len(paths), "file")
    return ActionPreview(
        type="git_commit",
        title=f"commit {count} (+{total[0]} −{total[1]}): {subject[:80]}",
        risk="low" if is_own_worktree(str(root)) else "medium",
        summary=f"Commit {count} and nothing else that is staged.",
        fields=tuple(fields),
        body=fence_text(payload.message),  # git keeps its lines: Markdown would join them
        diffs=tuple(diffs),
        notes=tuple(notes),
        payload={
            "message": payload.message,
            "branch": branch.text.strip(),
            "files": files,
            "hooks": [pin.payload() for pin in hooks.pins],
            "sandboxed": bool(hooks.names) and ground.sandbox.works,
        },
    )


def _working(ground: Workspace, path: str) -> bytes | None:
    if not ground.confined.inside(path, write=True).exists():
        return None
    with ground.confined.open_read(path) as file:
        return file.read(_DRAWN + 1)


async def _committed(root: Path, path: str) -> bytes | None:
    blob = await run_git("cat-file", "blob", f"HEAD:{path}", cwd=root, max_bytes=_DRAWN + 1)
    return blob.stdout if blob.code == 0 or blob.truncated else None


def _check(path: str, now: str | None, before: bytes | None, after: bytes | None) -> None:
    if now is None and before is None:
        raise ActionRefused(f"{path}: there is no such file, neither here nor in the last commit.")
    if before == after:
        raise ActionRefused(f"{path} has not changed since the last commit; leave it out.")


def _text(data: bytes | None) -> str | None:
    if data is None or b"\0" in data or len(data) > _DRAWN:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _stat(before: bytes | None, after: bytes | None, added: int, removed: int) -> str:
    kind = "new, " if before is None else "removed, " if after is None else ""
    return f"{kind}+{added} −{removed}"


async def _manners(ground: Workspace, hooks: Hooks) -> list[str]:
    """Return notes on what git itself will do: run hooks, not sign."""
    root = ground.root
    notes = ["A trailer Cockpit-Key with this action's key is added to the message."]
    if hooks.names:
        names = ", ".join(hooks.names)
        notes.append(
            f"The repository's hooks run in the sandbox, without network: {names}."
            if ground.sandbox.works
            else f"The repository's hooks run with all of your rights, there is no sandbox: {names}."
        )
    signs = await run_git("config", "--type=bool", "--get", "commit.gpgSign", cwd=root)
    if signs.text.strip() == "true":
        notes.append(
            "Your git signs commits. This one is not signed, since signing may ask for a passphrase; "
            "sign it later with `git commit --amend --no-edit -S`."
        )
    return notes
