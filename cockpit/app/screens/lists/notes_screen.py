"""Notes: what sessions taught, kept, edited, merged and forgotten by the user.

Specified in ``docs/reference/notes.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.notes.note_service import NoteListing
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.notes.notes import KINDS, Note
from widgets.text.detail import DetailRow, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG, WARN, Part
from widgets.work.task_views import QueuedView

_EXPLAINED = {
    "decision": "what you decided",
    "pitfall": "what went wrong, and why",
    "command": "a command that works",
    "question": "a question that is open",
}


class NotesScreen(ListScreen[Note]):
    """Proposed notes, then kept ones; ``a`` lists those that were forgotten too."""

    NAME = "Notes"
    PANE = "notes"
    EMPTY = "No notes yet. Sessions propose them when they end; n writes one of your own."
    ENTER = ("keep", "edit")
    QUESTIONS = {"forget": "forgets it: later sessions do not find it"}  # noqa: RUF012 -- read only

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._with_forgotten = False
        self._listing = NoteListing((), 0, 0, 0)

    async def read_rows(self) -> tuple[Sequence[Note], Sequence[str]]:
        service = await self.host.engine.notes()
        self._listing = await service.read_notes(with_forgotten=self._with_forgotten)
        return self._listing.notes, ()

    def describe(self) -> Sequence[Part]:
        listing = self._listing
        parts: list[Part] = [
            (f"{listing.proposed:,} proposed", STRONG if listing.proposed else DIM),
            (f", {listing.kept:,} kept, {listing.forgotten:,} forgotten", DIM),
        ]
        every = listing.proposed + listing.kept
        every += listing.forgotten if self._with_forgotten else 0
        if len(listing.notes) < every:
            parts.append((f"   the {len(listing.notes):,} that changed last are listed", WARN))
        return parts

    def verbs(self, row: Note) -> Mapping[str, str]:
        if row.status == "forgotten":
            return {"keep": "keep again"}
        keep = {"keep": "keep"} if row.status == "proposed" else {}
        return {**keep, "edit": "edit", "merge": "merge", "forget": "forget"}

    def general_verbs(self) -> Mapping[str, str]:
        return {"write": "new", "forgotten": "current" if self._with_forgotten else "all"}

    async def do(self, verb: str, row: Note) -> None:
        service = await self.host.engine.notes()
        if verb == "keep":
            await service.keep(row)
        elif verb == "forget":
            await service.forget(row)
        elif verb == "merge":
            self._ask_where(row)
        else:
            await self._edit(row)

    async def _edit(self, row: Note) -> None:
        if "\n" in row.text:
            text = await self.host.edit_in_editor(row.text, ".md")
            if text is not None and text.strip() != row.text:
                await (await self.host.engine.notes()).edit(row, text)
            return

        def save(text: str | None) -> None:
            if text and text != row.text:
                self._decide(lambda service: service.edit(row, text))

        about = f"A {row.kind}: {_EXPLAINED.get(row.kind, '')}. Saving keeps it."
        self.host.open_screen(Ask(f"Edit {row.note_id}", about, value=row.text), save)

    def _ask_where(self, row: Note) -> None:
        others = {
            note.note_id: note
            for note in self.rows
            if note.kind == row.kind and note.status != "forgotten" and note != row
        }
        choices = [(key, _first_line(note.text), key) for key, note in others.items()]

        def merge(key: str | None) -> None:
            if key is not None:
                self._decide(lambda service: service.merge(row, others[key]))

        empty = f"There is no other {row.kind} to merge it into. esc goes back."
        title = f"Merge {row.note_id} into the note that stays"
        self.host.open_screen(PickOne(title, choices, empty=empty), merge)

    def start(self, verb: str) -> None:
        """Write a note, or list those that were forgotten."""
        if verb == "forgotten":
            self._with_forgotten = not self._with_forgotten
            self.read_again()
            return

        def write(text: str | None) -> None:
            kind, _, rest = (text or "").partition(":")
            if kind.strip() not in KINDS:
                kind, rest = "decision", text or ""
            if rest.strip():
                self._decide(lambda service: service.write(kind.strip(), rest))

        question = f"What should later sessions know? Begin with its kind ({', '.join(KINDS)}) and a colon."
        self.host.open_screen(Ask("New note", question, value="decision: "), write)

    def _decide(self, step: Any) -> None:
        async def decide() -> None:
            await step(await self.host.engine.notes())
            self.read_again()

        self.host.request(decide)

    def words(self, row: Note) -> str:
        return f"{row.text}\n{row.source}\n{row.session_id}\n{row.task_id or ''}\n{row.task_type}"

    def draw_row(self, row: Note) -> QueuedView:
        look = state_sign("offer", row.status)
        origin = f"session {row.session_id}" if row.session_id else "yours"
        about = f"{row.note_id} · {origin} · {_count_teaching(row)}"
        return QueuedView(
            row.note_id, _first_line(row.text), look.sign, look.tone, row.status, about, row.kind
        )

    def draw_detail(self, row: Note, detail: Any) -> Sequence[DetailRow]:
        facts = [
            ("note", row.note_id),
            ("kind", f"{row.kind}: {_EXPLAINED.get(row.kind, '')}"),
            ("state", row.status),
            ("from", row.source),
            ("session", row.session_id),
            ("task", " · ".join(filter(None, (row.task_id, row.task_type)))),
            ("taught", _count_teaching(row)),
            ("against", f"{row.contradicted} showed the opposite" if row.contradicted else ""),
            ("forgotten", row.reason if row.status == "forgotten" else ""),
            ("first", row.created_at[:16].replace("T", " ")),
            ("changed", row.updated_at[:16].replace("T", " ")),
        ]
        return [*quoted("the note", row.text), sentence(), *fields(facts)]


def _count_teaching(row: Note) -> str:
    return f"taught by {pluralize(row.seen, 'session')}" if row.session_id else "written by you"


def _first_line(text: str) -> str:
    return " ".join(text.split())
