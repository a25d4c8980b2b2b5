"""The files that a request would change, as they are on disk and as they would be.

Agents name the part that they replace; what the user decides over is the file. A file outside the project,
or one that usually has secrets, is not opened: then the agent's own words are what there is to show. See
``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathMissing, PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.act.proposed_action import FileDiff, draw_diff
from cockpit.core.canonical_json import text_digest
from cockpit.core.secrets import mask
from cockpit.loop.permissions.judge_tool import locate_path
from cockpit.loop.permissions.tool_request import MOST_EDITS, FileEdit, ToolRequest

MAX_FILE = 2 * 1024 * 1024
"""The largest file that is opened for a diff, in bytes."""
MAX_DIFFS = 100
"""Files that one proposal shows; the rest are named."""
MAX_TOTAL = 1_000_000
"""Characters of all diffs of one proposal; what is beyond is cut and said so."""


class CompleteEdits(Struct, frozen=True):
    """What the user sees of a request's edits."""

    diffs: tuple[FileDiff, ...] = ()
    notes: tuple[str, ...] = ()
    on_disk: Mapping[str, str] | None = None
    """The digest of each file that was read ('' where there was none), to notice a change while it waits."""
    is_whole: bool = True
    """Whether the diffs have all of the change."""


def complete_edits(request: ToolRequest, root: Path) -> CompleteEdits:
    """Read the files that ``request`` changes below ``root`` and return whole diffs. Blocks."""
    by_path: dict[str, list[FileEdit]] = {}
    for edit in request.edits[:MOST_EDITS]:
        by_path.setdefault(edit.path, []).append(edit)
    diffs: list[FileDiff] = []
    notes: list[str] = []
    on_disk: dict[str, str] = {}
    room = MAX_TOTAL
    is_whole = len(request.edits) <= MOST_EDITS and len(by_path) <= MAX_DIFFS
    for path, edits in list(by_path.items())[:MAX_DIFFS]:
        now = _read_file(path, request.cwd, root, notes)
        if now is not None:
            on_disk[path] = text_digest(now) if now else ""
        before, after = _apply(path, edits, now, notes)
        name = _shown_path(path, request.cwd, root)
        diff, note = draw_diff(name, before, after)
        notes += [note] if note else []
        shown = _within(diff, room, notes)
        is_whole = is_whole and shown is diff
        room -= len(shown.before or "") + len(shown.after or "")
        diffs.append(shown)
    if len(request.edits) > MOST_EDITS:
        notes.append(f"It makes more than {MOST_EDITS} changes: the others are not drawn.")
    rest = list(by_path)[MAX_DIFFS:]
    if rest:
        names = ", ".join(rest[:20])
        notes.append(f"{len(rest)} more files are changed and not drawn: {names}.")
    return CompleteEdits(tuple(diffs), tuple(dict.fromkeys(notes)), on_disk, is_whole)


def list_changed_files(request: ToolRequest, root: Path, on_disk: Mapping[str, str]) -> list[str]:
    """Return the files that are no longer as ``on_disk`` says. Blocks."""
    changed = []
    for path, was in on_disk.items():
        now = _read_file(path, request.cwd, root, [])
        if now is not None and (text_digest(now) if now else "") != was:
            changed.append(_shown_path(path, request.cwd, root))
    return changed


def _read_file(path: str, cwd: str, root: Path, notes: list[str]) -> str | None:
    """Return a file's text, '' where there is none; None where it is not opened."""
    try:
        relative = _relative(path, cwd, root)
        if is_sensitive(relative):
            notes.append(f"{path}: not opened, because it usually has secrets.")
            return None
        with Confined(root).open_read(relative) as file:
            data = file.read(MAX_FILE + 1)
    except PathMissing:
        return ""
    except (PathRefused, ValueError, OSError) as error:
        notes.append(f"{path}: not opened: {getattr(error, 'reason', error)}.")
        return None
    if len(data) > MAX_FILE:
        notes.append(f"{path}: not opened: it is larger than {MAX_FILE} bytes.")
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        notes.append(f"{path}: not opened: it is not text in UTF-8.")
        return None


def _apply(
    path: str, edits: list[FileEdit], now: str | None, notes: list[str]
) -> tuple[str | None, str]:
    """Return the file before (None for a new one) and after the edits, or the parts that they name."""
    if now is None:
        return _in_parts(edits)
    text = now
    for edit in edits:
        if edit.before is None:
            text = edit.after
            continue
        before, after = edit.before, edit.after
        if before not in text and "\r\n" in text:
            before, after = (part.replace("\n", "\r\n") for part in (before, after))
        if before not in text:
            notes.append(
                f"{path} is not as the agent describes it: the text to be replaced is not there."
            )
            return _in_parts(edits)
        count = text.count(before) if edit.replace_all else 1
        if len(text) + count * (len(after) - len(before)) > 2 * MAX_FILE:
            notes.append(f"{path}: the result is too large to be shown as a whole.")
            return _in_parts(edits)
        text = text.replace(before, after, count)
    if now and edits[0].before is None:
        notes.append(f"{path} exists: its whole text is replaced.")
    return now or None, text


def _in_parts(edits: list[FileEdit]) -> tuple[str | None, str]:
    befores = [edit.before for edit in edits if edit.before is not None]
    between = "\n⋯\n"
    return between.join(befores) if befores else None, between.join(edit.after for edit in edits)


def _within(diff: FileDiff, room: int, notes: list[str]) -> FileDiff:
    """Cut a diff's two sides to ``room`` characters together."""
    if len(diff.before or "") + len(diff.after or "") <= room:
        return diff
    half = max(0, room // 2)
    notes.append(
        f"{diff.path}: only the first {half} characters of each side are shown; the whole is larger"
        f" than {MAX_TOTAL} characters."
    )
    return FileDiff(
        diff.path,
        None if diff.before is None else diff.before[:half],
        None if diff.after is None else diff.after[:half],
    )


def _relative(path: str, cwd: str, root: Path) -> str:
    return locate_path(path, root=str(root), cwd=cwd)


def _shown_path(path: str, cwd: str, root: Path) -> str:
    try:
        relative = _relative(path, cwd, root)
    except ValueError:
        return mask(path)
    return mask(path if relative.startswith("..") else relative)
