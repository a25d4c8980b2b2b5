"""Previews of writing and editing files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import PurePosixPath

from cockpit.access.commands.command_table import file_risk
from cockpit.act.proposed_action import ActionPreview, draw_diff
from cockpit.act.text_edits import (
    MAX_BYTES,
    ActionRefused,
    TextNow,
    as_now,
    fit_edit,
    read_now,
    replace_text,
    to_crlf,
)
from cockpit.act.tool_payloads import EditFile, WriteFile
from cockpit.act.workspace import Workspace
from cockpit.core.text import pluralize

_MASK = "[masked:"

MASKED_WORDS = (
    "the text contains '[masked:…]' in place of a possible secret. Written like that it would "
    "replace the secret itself. Leave such lines out and edit the text around them; if what you wrote is "
    "no secret, write it as plain words, like 'not-a-secret'."
)
"""What a model is told that would write the sign for a secret."""


def preview_write(payload: WriteFile, ground: Workspace) -> ActionPreview:
    """Preview a whole file, new or replaced."""
    path = ground.confined.relative(payload.path)
    now = read_now(ground.confined, path)
    content = to_crlf(payload.content) if now is not None and now.crlf else payload.content
    if "\0" in content:
        raise ActionRefused(f"{path}: the content contains a NUL character; only text is written.")
    if len(content.encode()) > MAX_BYTES:
        raise ActionRefused(f"{path}: the content is larger than {MAX_BYTES} bytes.")
    # A new piece of prose replaces no secret: a review may say that one stands in the change.
    tells = now is None and file_risk(path) == "low"
    if content.count(_MASK) > (now.text.count(_MASK) if now else 0) and not tells:
        raise ActionRefused(f"{path}: {MASKED_WORDS}")
    notes = []
    if now is not None and now.text == content:
        notes.append("The file has exactly this content already; nothing changes.")
    if content != payload.content:
        notes.append("The file's CRLF line ends are kept.")
    if now is None:
        parent = str(PurePosixPath(path).parent)
        if parent != "." and not ground.confined.inside(parent).exists():
            notes.append(f"The directory {parent} is made.")
    return _shown("write_file", path, now, as_now(content), notes, {"content": content})


def preview_edit(payload: EditFile, ground: Workspace) -> ActionPreview:
    """Preview an exact replacement in a file."""
    path = ground.confined.relative(payload.path)
    now = read_now(ground.confined, path)
    if now is None:
        raise ActionRefused(f"{path}: there is no such file. Use write_file to make it.")
    if payload.new.count(_MASK) > payload.old.count(_MASK) or (
        _MASK in payload.old and payload.old not in now.text
    ):
        raise ActionRefused(f"{path}: {MASKED_WORDS}")
    old, new = fit_edit(now, path, payload.old, payload.new, replace_all=payload.replace_all)
    after = as_now(replace_text(now.text, old, new, replace_all=payload.replace_all))
    count = now.text.count(old) if payload.replace_all else 1
    notes = [f"{count} occurrences are replaced."] if count > 1 else []
    extra = {"old": old, "new": new, "replace_all": payload.replace_all}
    return _shown("edit_file", path, now, after, notes, extra)


def _shown(
    kind: str,
    path: str,
    now: TextNow | None,
    after: TextNow,
    notes: list[str],
    extra: Mapping[str, object],
) -> ActionPreview:
    diff, note = draw_diff(path, None if now is None else now.text, after.text)
    added, removed = changed_lines(now.text if now else "", after.text)
    verb = "Create" if now is None else "Replace" if kind == "write_file" else "Edit"
    if len(after.text) and not after.text.endswith("\n"):
        notes = [*notes, "The file will not end in a newline."]
    return ActionPreview(
        type=kind,
        title=f"{verb.lower()} {path} (+{added} −{removed})",
        risk=file_risk(path),
        summary=f"{verb} {path}: {pluralize(added, 'line')} added, {removed} removed.",
        fields=(("path", path), ("lines", f"+{added} −{removed}")),
        diffs=(diff,),
        notes=tuple([*notes, note] if note else notes),
        payload={
            "path": path,
            **extra,
            "before_sha256": now.sha256 if now else None,
            "after_sha256": after.sha256,
        },
    )


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Count the lines added and removed, as a diff counts them."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) * len(new) > 4_000_000:
        return len(new), len(old)
    same = sum(
        block.size
        for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    )
    return len(new) - same, len(old) - same
