"""The list of notes, where the user writes one too. Specified in ``docs/reference/notes.md``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.collections.notes import write_note
from cockpit.store.notes.notes import KINDS


class NotesScreen(CollectionScreen):
    """Proposed notes, then kept ones."""

    def general_verbs(self) -> Mapping[str, str]:
        return {"write": "new", **super().general_verbs()}

    def start(self, verb: str) -> None:
        """Write a note, or switch a filter."""
        if verb != "write":
            super().start(verb)
            return

        def write(text: str | None) -> None:
            kind, _, rest = (text or "").partition(":")
            if kind.strip() not in KINDS:
                kind, rest = "decision", text or ""
            if rest.strip():
                step = partial(write_note, kind=kind.strip())
                self.request_step(lambda: self.write(step, rest))

        question = f"What should later sessions know? Begin with its kind ({', '.join(KINDS)}) and a colon."
        self.host.open_screen(Ask("New note", question, value="decision: "), write)
