"""Knowledge: what the librarian has indexed and how fresh it is, and the passages that answer a question.

Specified in ``docs/reference/knowledge.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from textual.widget import Widget
from textual.widgets import Input

from cockpit.app.dialogs.file_view import FileView
from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.knowledge.librarian import IndexState
from cockpit.observe.knowledge.passage import FILE_KINDS, KINDS, Passage
from widgets.text.detail import DetailRow, entries, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG, WARN, Part
from widgets.work.task_views import QueuedView

_EXPLAINED = {
    "docs": "Markdown, reStructuredText, AsciiDoc and text files",
    "docstring": "docstrings of Python, comments above functions of shell scripts",
    "note": "notes that you keep, and work in progress of tasks",
    "handoff": "handoffs of tasks",
}


class Source(Struct, frozen=True):
    """The documents of one kind."""

    kind: str
    documents: int


class KnowledgeScreen(ListScreen[Source | Passage]):
    """The sources of the index; with a question, the passages that answer it."""

    NAME = "Knowledge"
    PANE = "knowledge"
    EMPTY = "Nothing is indexed yet. / asks, and r looks at the project's documents."
    ENTER = ("open",)
    PLACEHOLDER = "what do you want to know about this project? ⏎ searches"
    FILTER = "ask"
    SHOWS_FIELD = True

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._question_asked = ""
        self._state: IndexState | None = None

    @property
    def first_focus(self) -> Widget:
        return self._list if self._question_asked else self._field

    def revision(self) -> object:
        return self._question_asked

    async def read_rows(self) -> tuple[Sequence[Source | Passage], Sequence[str]]:
        service = await self.host.engine.knowledge()
        question = self._question_asked
        rows: list[Source | Passage] = []
        if question:
            rows += await service.search(question)
        self._state = await service.read_state()
        counts = self._state.counts.documents
        if not question:
            rows += [Source(kind, counts[kind]) for kind in KINDS if counts.get(kind)]
        problems = [each for each in (self._state.notice, self._state.problem) if each]
        return rows, problems

    async def read_detail(self, row: Source | Passage) -> Any:
        if isinstance(row, Passage):
            return ()
        return await (await self.host.engine.knowledge()).list_documents(row.kind)

    def describe(self) -> Sequence[Part]:
        state = self._state
        if state is None:
            return ()
        counts = state.counts
        documents = pluralize(sum(counts.documents.values()), "document")
        parts: list[Part] = [(f"{documents}, {counts.chunks:,} chunks", DIM)]
        if not state.has_vectors:
            parts.append((" · by keyword", DIM))
        else:
            parts.append((f" · {counts.vectors:,} with vectors", DIM))
        if state.looked_at:
            parts.append((f" · compared {state.looked_at[11:16]}", DIM))
        if state.is_following:
            parts.append((" · follows files", DIM))
        if counts.is_full:
            parts.append((" · full", WARN))
        return parts

    def verbs(self, row: Source | Passage) -> Mapping[str, str]:
        if isinstance(row, Source):
            return {}
        opened = {"open": "open the file"} if row.kind in FILE_KINDS else {}
        added = {"add": "add to the next packet"} if self.host.session_id else {}
        return {**opened, **added}

    def general_verbs(self) -> Mapping[str, str]:
        return {"refresh": "index again"}

    async def do(self, verb: str, row: Source | Passage) -> None:
        if isinstance(row, Source):
            return
        if verb == "open":
            root = self.host.engine.place.root
            await self.host.open_screen(FileView(root, row.ref, row.start, row.end))
            return
        service = await self.host.engine.knowledge()
        item = await service.add(self.host.session_id, row)
        self.host.show_notice(f"{item} enters the next packet.")

    def start(self, verb: str) -> None:
        """Look at every document again."""

        async def refresh() -> None:
            await (await self.host.engine.knowledge()).refresh()
            self.read_again()

        self.host.request(refresh)

    # The field asks and stays; it filters nothing.

    def _leave_field(self) -> None:
        self._list.focus()
        self._after_rows()

    def find_rows(self, text: str) -> None:
        self._list.show(self._views)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Do nothing: the question is not whole yet."""
        event.stop()
        event.prevent_default()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search; an empty question shows the sources. The base class gives the focus back."""
        self.ask(event.value)

    def ask(self, question: str) -> None:
        """Show the passages that answer a question; without one the sources."""
        self._question_asked = self._field.value = question.strip()
        self._list.empty = "Searching…"
        if self.is_attached:
            self.paint()

    def action_leave(self) -> None:
        """Leave the field, the question, then this screen."""
        if self._field.has_focus:
            self._field.value = self._question_asked
            self._leave_field()
        elif self._question_asked:
            self.ask("")
        else:
            self.dismiss(None)

    def draw_row(self, row: Source | Passage) -> QueuedView:
        if isinstance(row, Source):
            count = pluralize(row.documents, "document")
            about = _EXPLAINED.get(row.kind, "")
            return QueuedView(row.kind, count, "◇", "plain", "", about, row.kind)
        place = f"{row.ref}:{row.start}-{row.end}"
        words = " ".join(row.text.split())
        about = row.title or words
        key = f"{row.kind}\0{place}"
        return QueuedView(
            key, f"{place}  {words}", "◆", "good", f"{row.score:.2f}", about, row.kind
        )

    def draw_detail(self, row: Source | Passage, detail: Any) -> Sequence[DetailRow]:
        if isinstance(row, Source):
            names = [(pluralize(chunks, "chunk").rjust(11), ref) for ref, chunks in detail or ()]
            more = row.documents - len(names)
            rows = [sentence((_EXPLAINED.get(row.kind, row.kind), STRONG))]
            rows += entries("documents", names)
            if names and more > 0:
                rows.append(sentence((f"{more:,} more are not listed.", DIM)))
            return rows
        facts = [
            ("where", f"{row.ref}:{row.start}-{row.end}"),
            ("headings", row.title),
            ("score", f"{row.score:.2f} of 1"),
            ("kind", f"{row.kind}: {_EXPLAINED.get(row.kind, '')}"),
        ]
        return [*fields(facts), sentence(), *quoted("the passage", row.text)]
