"""The list of a collection: its rows, their details and its verbs by key, made from the description.

Specified in ``docs/reference/collections.md``, verbs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.collections.collection import Collection, Doing, Listed, Part, Verb, View
from cockpit.core.text import pluralize
from cockpit.loop.decisions.decide_proposal import find_holder
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.db.transaction import Tx
from widgets.text.detail import DetailRow, entries, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG
from widgets.text.style_names import Part as Words
from widgets.work.task_views import QueuedView

T = TypeVar("T")


class CollectionScreen(ListScreen[Any]):
    """A list of one collection; a subclass says what it does beyond the description."""

    def __init__(self, host: Host, collection: Collection[Any]) -> None:
        self.collection = collection
        self._verbs: Mapping[str, Verb[Any]] = {verb.name: verb for verb in collection.verbs}
        self.NAME = collection.title
        self.PANE = collection.name.replace("-", "_")
        self.EMPTY = collection.none if isinstance(collection.none, str) else collection.none()
        self.ENTER = tuple(verb.name for verb in collection.verbs if verb.is_enter)
        self.QUESTIONS = {verb.name: verb.question for verb in collection.verbs if verb.question}
        self.READ_FIRST = {verb.name for verb in collection.verbs if verb.risk == "high"}
        self.READS_FILES = collection.reads_files
        self._flags = {each.name: each for each in collection.filters if each.key}
        self._given = dict.fromkeys(self._flags, False)
        super().__init__(host)

    async def read_rows(self) -> tuple[Sequence[Any], Sequence[str]]:
        listed: Listed[Any] = await self.read_view(self.list_rows)
        return listed.rows, listed.remarks

    def list_rows(self, view: View) -> Listed[Any]:
        """Return the rows, on a reader's thread."""
        return self.collection.list_rows(view, **self._given)

    def general_verbs(self) -> Mapping[str, str]:
        return {name: "current" if self._given[name] else "all" for name in self._flags}

    def start(self, verb: str) -> None:
        """Switch a filter."""
        self._given[verb] = not self._given[verb]
        self.read_again()

    async def read_view(self, read: Callable[[View], T]) -> T:
        """Read the project as a collection does."""
        return await self.host.engine.store.read(lambda connection: read(self._view(connection)))

    def _view(self, connection: sqlite3.Connection) -> View:
        engine = self.host.engine
        return View(
            engine.place,
            connection,
            engine.store.clock,
            lambda: engine.engine.settings,
            engine.engine.settings.user_dir,
            self.host.session_id,
        )

    async def read_detail(self, row: Any) -> Sequence[Part]:
        name = self.collection.name_of(row)

        def read(view: View) -> Sequence[Part]:
            return self.collection.describe(self.collection.find_row(view, name))

        return await self.read_view(read)

    def describe(self) -> Sequence[Words]:
        headline = self.collection.headline
        text = headline(self.rows) if headline else pluralize(len(self.rows), "row")
        return [(text, DIM)]

    def verbs(self, row: Any) -> Mapping[str, str]:
        return {
            verb.name: verb.words(row)
            for verb in self._verbs.values()
            if verb.takes(row) and (self.host.session_id or not verb.needs_session)
        }

    async def do(self, verb: str, row: Any) -> None:
        chosen = self._verbs[verb]
        if chosen.needs is None:
            await self._carry_out(chosen, row, "")
        elif chosen.needs.choices is not None:
            self._pick(chosen, row)
        elif "\n" in (before := chosen.needs.value(row)):
            text = await self.host.edit_in_editor(before, ".md")
            if text is not None and text.strip() != before:
                await self._carry_out(chosen, row, text)
        else:
            title = f"{chosen.title}: {self.collection.name_of(row)}"
            ask = Ask(title, chosen.needs.question, value=before)
            self.host.open_screen(ask, self._answer(chosen, row, before))

    def _pick(self, verb: Verb[Any], row: Any) -> None:
        needs = verb.needs
        if needs is None or needs.choices is None:
            return
        title = f"{needs.question} {self.collection.name_of(row)}"
        empty = "There is nothing to choose. esc goes back."
        pick = PickOne(title, needs.choices(row, self.rows), empty=empty)
        self.host.open_screen(pick, self._answer(verb, row, ""))

    def _answer(self, verb: Verb[Any], row: Any, before: str) -> Callable[[str | None], None]:
        def answer(text: str | None) -> None:
            if text and text != before:
                self.request_step(lambda: self._carry_out(verb, row, text))

        return answer

    def request_step(self, step: Callable[[], Awaitable[object]]) -> None:
        """Do something in the background, show its error, and read the rows again."""

        async def run() -> None:
            await step()
            self.read_again()

        self.host.request(run)

    async def _carry_out(self, verb: Verb[Any], row: Any, text: str) -> None:
        await self.write(lambda doing: verb.carry_out(doing, row), text)

    async def write(self, step: Callable[[Doing], object], text: str = "") -> None:
        """Write in one transaction, as whoever this screen acts for. Raises ``CockpitError``."""

        def write(tx: Tx) -> None:
            caller = find_holder(tx, self.host.engine.engine.settings)
            step(Doing(tx, self._view(tx.connection), caller, text))

        await self.host.engine.store.write(write)

    def words(self, row: Any) -> str:
        return self.collection.words(row) if self.collection.words is not None else ""

    def draw_row(self, row: Any) -> QueuedView:
        name, *middle, last = (cell(row) for cell in self.collection.cells_of([row]).values())
        listed = self.collection
        word, rest = "", middle
        for place, heading in enumerate([*listed.cells_of([row])][1:-1]):
            if heading in ("STATE", "STATUS"):
                word, rest = middle[place], [*middle[:place], *middle[place + 1 :]]
        look = state_sign("offer", listed.state(row) if listed.state is not None else word)
        line = listed.line(row) if listed.line is not None else last
        shown = [each for each in rest if each not in ("", "–")]
        about = listed.about(row) if listed.about is not None else " · ".join(shown)
        return QueuedView(name, line, look.sign, look.tone, word, about, name)

    def draw_detail(self, row: Any, detail: Any) -> Sequence[DetailRow]:
        return draw_parts(self.collection.describe(row) if detail is None else detail)


def draw_parts(parts: Sequence[Part]) -> list[DetailRow]:
    """Return what is said of a row as lines of the detail."""
    rows: list[DetailRow] = []
    for part in parts:
        if part.heading:
            rows += entries(part.heading, [each for each in part.fields if each[1]])
            rows += quoted(part.heading, part.text)
        else:
            rows += [sentence((part.text, STRONG if not rows else ""))] if part.text else []
            rows += fields(part.fields)
    return rows
