"""The prompt on disk: its draft, drafts put aside, what was sent, and texts of dialogs that were open.

A draft belongs to the process of one screen. What a screen left at its end is put aside for the next one.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from cockpit.core.processes import current_process, is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask

_UNSENT = "unsent.txt"
_STASH = "stash.json"
_HISTORY = "prompt-history.jsonl"
_MOST = 1_000_000
_ENTRIES_MOST = 1_000
_BYTES_MOST = 2_000_000
_ENTRY_MOST = 20_000


def save_unsent(place: ProjectPaths, texts: Sequence[str]) -> Path:
    """Add texts of dialogs that were open at the end to a file of the project's state. Raises OSError."""
    path = place.state / _UNSENT
    earlier = path.read_text("utf-8", "replace")[-_MOST:] if path.is_file() else ""
    replace_file(path, "\n\n".join([earlier, *texts] if earlier else texts))
    return path


def take_unsent(place: ProjectPaths) -> Path | None:
    """Return the file with such texts once, under a name of its own; None when there is none."""
    path = place.state / _UNSENT
    kept = path.with_name("unsent-shown.txt")
    try:
        path.replace(kept)
    except OSError:
        return None
    return kept


def replace_file(path: Path, text: str) -> None:
    """Write a file that only the user may read, in one step; an empty text removes it. Raises OSError."""
    if not text:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_suffix(f".{os.getpid()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:_MOST]
    except OSError:
        return ""  # a draft that cannot be read must not keep the screen from opening


def _load_history(place: ProjectPaths) -> list[str]:
    """Return the newest messages, the oldest first; none when they cannot be read."""
    entries: deque[str] = deque(maxlen=_ENTRIES_MOST)
    try:
        with open(place.state / _HISTORY, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # the last line of a program that was cut off
                if isinstance(entry, str):
                    entries.append(entry)
    except OSError:
        return []
    return list(entries)


def _append_history(place: ProjectPaths, text: str) -> None:
    """Add a message, its secrets masked; a file that is too long keeps its newer half. Raises OSError."""
    path = place.state / _HISTORY
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(json.dumps(mask(text)[:_ENTRY_MOST]) + "\n")
        size = file.tell()
    if size > _BYTES_MOST:
        entries = _load_history(place)
        kept = "".join(json.dumps(entry) + "\n" for entry in entries[len(entries) // 2 :])
        replace_file(path, kept)


class Draft:
    """The text of the prompt, and what of it is on disk."""

    def __init__(self, place: ProjectPaths) -> None:
        self._place = place
        self._path = place.state / f"draft-{current_process().replace('/', '-')}.txt"
        self.text = self._saved = _read(self._path)

    def take_left(self) -> str:
        """Put the drafts of ended screens aside; return when the newest was written, empty without one."""
        left = []
        for path in self._place.state.glob("draft-*.txt"):
            owner = path.stem.removeprefix("draft-").replace("-", "/", 1)
            if path != self._path and not is_process_alive(owner):
                left.append((path.stat().st_mtime, _read(path), path))
        if not left:
            return ""
        left.sort()
        self.save_stash([*self.load_stash(), *(text for _, text, _ in left if text)])
        for _, _, path in left:
            path.unlink(missing_ok=True)
        return f"{datetime.fromtimestamp(left[-1][0]):%H:%M}"

    def load_stash(self) -> list[str]:
        """Return the drafts that were put aside, the newest last; none when they cannot be read."""
        try:
            drafts = json.loads((self._place.state / _STASH).read_text("utf-8"))
        except (OSError, ValueError):
            return []
        return (
            [draft for draft in drafts if isinstance(draft, str)]
            if isinstance(drafts, list)
            else []
        )

    def save_stash(self, drafts: Sequence[str]) -> None:
        """Save the drafts that are put aside. Raises OSError."""
        replace_file(self._place.state / _STASH, json.dumps(list(drafts)) if drafts else "")

    def load_history(self) -> list[str]:
        """Return the messages that were sent in this project, the oldest first."""
        return _load_history(self._place)

    def add_to_history(self, text: str) -> None:
        """Add a message that was sent. Raises OSError."""
        _append_history(self._place, text)

    @property
    def is_saved(self) -> bool:
        """True while the file has the text."""
        return self.text == self._saved

    def save(self) -> None:
        """Save the text, unless it is saved. May be called in another thread. Raises OSError."""
        text = self.text
        if text != self._saved:
            replace_file(self._path, text)
            self._saved = text
