"""The prompt on disk, which survives a restart: its draft, drafts put aside, texts of dialogs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from cockpit.app import prompt_history
from cockpit.core.project_paths import ProjectPaths

_NAME = "draft.txt"
_UNSENT = "unsent.txt"
_STASH = "stash.json"
_MOST = 1_000_000


def load(place: ProjectPaths) -> str:
    """Return the saved draft; empty when there is none or it cannot be read."""
    try:
        return (place.state / _NAME).read_text(encoding="utf-8", errors="replace")[:_MOST]
    except OSError:
        return ""  # a draft that cannot be read must not keep the screen from opening


def save(place: ProjectPaths, text: str) -> None:
    """Save ``text``; an empty text removes the file. Raises OSError."""
    _save(place.state / _NAME, text)


def save_unsent(place: ProjectPaths, texts: Sequence[str]) -> Path:
    """Add texts of dialogs that were open at the end to a file of the project's state. Raises OSError."""
    path = place.state / _UNSENT
    earlier = path.read_text("utf-8", "replace")[-_MOST:] if path.is_file() else ""
    _save(path, "\n\n".join([earlier, *texts] if earlier else texts))
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


def _save(path: Path, text: str) -> None:
    if not text:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_suffix(".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


class Draft:
    """The text of the prompt, and what of it is on disk."""

    def __init__(self, place: ProjectPaths) -> None:
        self._place = place
        self.text = self._saved = load(place)

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
        _save(self._place.state / _STASH, json.dumps(list(drafts)) if drafts else "")

    def load_history(self) -> list[str]:
        """Return the messages that were sent in this project, the oldest first."""
        return prompt_history.load(self._place)

    def add_to_history(self, text: str) -> None:
        """Add a message that was sent. Raises OSError."""
        prompt_history.append(self._place, text)

    @property
    def is_saved(self) -> bool:
        """True while the file has the text."""
        return self.text == self._saved

    def save(self) -> None:
        """Save the text, unless it is saved. May be called in another thread. Raises OSError."""
        text = self.text
        if text != self._saved:
            save(self._place, text)
            self._saved = text
