"""The facts of one band of the meter, and why each was kept, shortened or dropped.

Specified in ``docs/reference/screen.md`` and ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from cockpit.app.dialogs.file_view import FileView
from cockpit.app.dialogs.small_dialogs import Dialog, without_blinking
from cockpit.core.errors import CockpitError
from widgets.bands.fact_list import SIGNS, FactList
from widgets.text.clean import clean
from widgets.text.style_names import DIM, STRONG, WARN, block, line
from widgets.views import FactView, Fate

if TYPE_CHECKING:
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.views.packet_inspection import Explanation, Words

READ_MOST = 20_000
"""Characters of a fact that are shown; the dialog counts the rest."""

_NO_FACTS = "No facts in this band yet. Later waves may add some."
_NEVER_READ = (
    "No fact here matches; esc clears the filter. Text that is in no band was never read:\n"
    "name it in a message, and the agent asks to read it."
)
_DIGEST_CELLS = 8
_DIGEST_LEAST = 16


def band_rows(explanation: Explanation) -> list[FactView]:
    """Return one row a fact, in order of time."""
    return [
        FactView(
            fact.fact_id,
            fact.verdict,
            fact.source_ref,
            fact.tokens,
            fact.level,
            fact.reason.replace("_", " "),
            fact.utility,
            pinned=fact.fact_id in explanation.pinned,
        )
        for fact in explanation.facts
    ]


def provenance_text(provenance: str) -> str:
    """Return the provenance of a fact (JSON) as text: names and values, digests cut short."""
    fields = json.loads(provenance)
    if not isinstance(fields, dict):
        return provenance
    return " · ".join(f"{name} {_value(value)}" for name, value in fields.items())


def find_place(provenance: str) -> tuple[str, int, int] | None:
    """Return the file of a provenance, its first and its last line (0: none); None without a file."""
    fields = json.loads(provenance)
    path = fields.get("path") if isinstance(fields, dict) else None
    if not isinstance(path, str) or not path:
        return None
    lines = fields.get("lines")
    if isinstance(lines, list) and len(lines) == 2 and all(isinstance(each, int) for each in lines):
        return path, lines[0], lines[1]
    return path, 1, 0


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        return f"{value[0]}–{value[1]}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    digest = len(text) >= _DIGEST_LEAST and all(letter in "0123456789abcdef" for letter in text)
    return text[:_DIGEST_CELLS] if digest else text


async def read_fact_texts(engine: Runtime, keys: Sequence[str]) -> Mapping[str, Words]:
    """Return the texts of facts by id. Raises the store's typed errors."""
    from cockpit.loop.views.packet_inspection import words

    return await engine.store.read(lambda connection: words(connection, keys))


class FactDialog(Dialog[None]):
    """A list of facts over the whole screen: filter, sort, read and pin them."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("slash", "filter", "filter", show=False),
        Binding("f", "open_file", "open the file", show=False),
    ]

    FATES: tuple[Fate, ...] = ()
    KEYS = ""

    def __init__(
        self,
        engine: Runtime,
        session_id: str,
        rows: Sequence[FactView] = (),
        *,
        title: str = "",
        empty: str = "",
    ) -> None:
        super().__init__()
        self.engine, self.session_id, self.title = engine, session_id, title
        self.list = FactList(rows, empty=empty)
        self.head = Static(id="facts-head")
        self.field = without_blinking(Input(placeholder="type to filter", select_on_focus=False))
        self.box = Vertical(self.head, self.list, self.field, id="facts", classes="box")

    def compose(self) -> ComposeResult:
        yield self.box

    def on_mount(self) -> None:
        self.box.border_subtitle = Content(self.KEYS)
        self.field.display = False
        self.list.focus()
        self.update_head()

    def update_head(self) -> None:
        """Show the title, and how many facts have which verdict."""
        self.box.border_title = Content(clean(self.title or "", newlines=False))
        counts = Counter(row.fate for row in self.list.rows)
        parts: list[tuple[str, str]] = []
        for fate in self.FATES:
            sign, style = SIGNS[fate]
            parts += [(f"{sign} ", style), (f"{counts[fate]:,} ", STRONG), (f"{fate}   ", DIM)]
        parts.append(("◆ pinned", DIM))
        if self.list.count != len(self.list.rows):
            parts.append((f"   {self.list.count:,} of {len(self.list.rows):,} listed", WARN))
        self.head.update(line(*parts))

    def action_leave(self) -> None:
        """Leave the filter, else the dialog."""
        if self.field.display:
            self.field.value = ""
            self._leave_field()
        else:
            self.dismiss(None)

    def action_filter(self) -> None:
        """Show the filter."""
        self.field.display = True
        self.field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        self.list.filter(event.value)
        self.update_head()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the list; the filter stays."""
        event.stop()
        self._leave_field()

    def _leave_field(self) -> None:
        self.field.display = bool(self.field.value)
        self.list.focus()

    async def on_fact_list_provenance_requested(self, event: FactList.ProvenanceRequested) -> None:
        """Read the provenance of the visible rows."""
        try:
            texts = await read_fact_texts(self.engine, event.keys)
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        self.list.provide({key: provenance_text(fact.provenance) for key, fact in texts.items()})

    async def on_fact_list_opened(self, event: FactList.Opened) -> None:
        """Read one fact."""
        try:
            texts = await read_fact_texts(self.engine, [event.key])
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        if event.key in texts:
            self.app.push_screen(FactTextDialog(texts[event.key]))

    async def action_open_file(self) -> None:
        """Open the file of the fact under the cursor at its lines."""
        row = self.list.at_cursor
        if row is None:
            return
        try:
            texts = await read_fact_texts(self.engine, [row.key])
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        place = find_place(texts[row.key].provenance) if row.key in texts else None
        if place is None:
            self.app.notify("This fact is of no file. ⏎ reads it.", markup=False)
            return
        self.app.push_screen(FileView(self.engine.place.root, *place))

    async def on_fact_list_pin_toggled(self, event: FactList.PinToggled) -> None:
        """Pin or unpin, from the next wave on."""
        change = self.engine.pin if event.pinned else self.engine.unpin
        try:
            pin = await change(self.session_id, event.key)
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        self.list.set_pinned(event.key, pin.pinned)
        word = "pinned" if pin.pinned else "unpinned"
        self.box.border_subtitle = Content(f"{word} from wave {pin.ordinal} · {self.KEYS}")


class BandFacts(FactDialog):
    """The facts of one band of a wave's packet."""

    FATES = ("kept", "shortened", "dropped")
    KEYS = "⏎ read · f file · p pin · / filter · u t o sort · esc back"

    def __init__(self, engine: Runtime, session_id: str, band: str) -> None:
        super().__init__(engine, session_id, title=band or "all bands", empty="Reading the facts…")
        self._band = band

    def show_facts(self, explanation: Explanation, rows: Sequence[FactView]) -> None:
        """List the facts of the band; a filter that was typed meanwhile applies."""
        wave, digest = explanation.ordinal, explanation.digest
        self.title = f"{self._band or 'all bands'} · wave {wave} · packet {digest[:8]}"
        self.list.show(rows, empty=_NO_FACTS, unmatched=_NEVER_READ)
        self.update_head()


class FactTextDialog(Dialog[None]):
    """The text of one fact."""

    BINDINGS = [Binding("enter,q", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, fact: Words) -> None:
        super().__init__()
        self._fact = fact

    def compose(self) -> ComposeResult:
        fact = self._fact
        with VerticalScroll(id="read", classes="box") as box:
            box.border_title = Content(clean(fact.source_ref, newlines=False))
            box.border_subtitle = Content("esc back")
            yield Static(line((provenance_text(fact.provenance), DIM)), classes="words")
            yield Static(block(fact.text[:READ_MOST]))
            more = len(fact.text) - READ_MOST
            if more > 0:
                yield Static(line((f"! {more:,} more characters are not shown.", WARN)))
