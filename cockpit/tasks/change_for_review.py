"""The change that a reviewer gets, and what it looked at, from its prompt and its packets.

What a reviewer says about itself is a claim; its packets are not. See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.core.fenced_text import fence_text
from cockpit.core.text import pluralize
from cockpit.store.context import facts, packets
from cockpit.tasks.git import compare_commits

MAX_DIFF_BYTES = 50 * 1024
"""Bytes of the change in a role's prompt; the role can ask for the rest."""
_READ_SOURCES = frozenset(("file", "diff", "search", "symbol", "tree", "log"))
_MAX_NAMES = 12


class Change(Struct, frozen=True):
    """The change since a commit. ``text`` is the prompt's, ``shown`` the files that are whole in it."""

    text: str
    files: tuple[str, ...]
    shown: tuple[str, ...]


async def read_change(root: Path, base: str) -> Change:
    """Return the change of the worktree ``root`` since ``base``, cut at :data:`MAX_DIFF_BYTES`."""
    difference = await compare_commits(root, base)
    files, data = difference.paths, difference.patch
    if not data.strip():
        return Change("(No change.)", files, ())
    if len(data) <= MAX_DIFF_BYTES:
        return Change(fence_text(data.decode("utf-8", "replace").strip()), files, files)
    whole_lines = data[:MAX_DIFF_BYTES].rpartition(b"\n")[0]
    # A file is whole where the next one begins; git lists both in the same order.
    begun = whole_lines.count(b"\ndiff --git ") + whole_lines.startswith(b"diff --git ")
    text = (
        f"{fence_text(whole_lines.decode('utf-8', 'replace').strip())}\n\nThe change is longer than"
        f" {MAX_DIFF_BYTES // 1024} KiB and was cut here. Ask for the rest as diff:{base[:10]}..HEAD, or"
        " ask for single files."
    )
    return Change(text, files, files[: max(0, begun - 1)])


def describe_evidence(connection: sqlite3.Connection, session_id: str, change: Change) -> str:
    """Return what the reviewer's session looked at: of the change, and what it read besides."""
    read = _read_refs(connection, session_id)
    seen = {*change.shown, *(path for path in change.files if any(path in ref for ref in read))}
    missed = [path for path in change.files if path not in seen]
    parts = [f"the change of {_names(change.files)}" if change.files else "a change of no file"]
    if missed:
        count = len(change.files)
        parts = [
            f"{count - len(missed)} of {pluralize(count, 'changed file')}, not {_names(missed)}"
        ]
    if read:
        parts.append(f"read {_names(read)}")
    return "; ".join(parts)


def _read_refs(connection: sqlite3.Connection, session_id: str) -> list[str]:
    """Return what the session's packets had in full or in outline, by name, sorted."""
    identities = {
        entry.fact_id
        for stored in packets.select_for_session(connection, session_id)
        for _, entry in stored.packet.rendered()
        if entry.level != "reference"
    }
    texts = facts.load_texts(connection, sorted(identities))
    return sorted({text.source_ref for text in texts.values() if text.source_type in _READ_SOURCES})


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
