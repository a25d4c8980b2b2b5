"""What stands behind one band of the meter: its facts, and why each was kept, shortened or dropped."""

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

from cockpit.app.dialogs.question import Dialog, calm
from cockpit.core.errors import CockpitError
from widgets.bands.fact_list import SIGNS, FactList
from widgets.text.clean import clean
from widgets.text.tone import DIM, STRONG, WARN, block, line
from widgets.views import FactView, Fate

if TYPE_CHECKING:
    from cockpit.app.engine_client import Engine
    from cockpit.loop.views.packet_inspection import Explanation, Words

READ_MOST = 20_000
"""Characters of a fact that are shown; what is more is said."""

_DIGEST_CELLS = 8
_DIGEST_LEAST = 16


def band_rows(told: Explanation) -> list[FactView]:
    """The facts that were asked about, in order of time."""
    return [
        FactView(
            fact.fact_id,
            fact.verdict,
            fact.source_ref,
            fact.tokens,
            fact.level,
            fact.reason.replace("_", " "),
            fact.utility,
            pinned=fact.fact_id in told.pinned,
        )
        for fact in told.facts
    ]


def origin(provenance: str) -> str:
    """A fact's provenance (JSON) in words: names and values, digests cut short."""
    found = json.loads(provenance)
    if not isinstance(found, dict):
        return provenance
    return " · ".join(f"{name} {_value(value)}" for name, value in found.items())


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value):
        return f"{value[0]}–{value[1]}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    digest = len(text) >= _DIGEST_LEAST and all(letter in "0123456789abcdef" for letter in text)
    return text[:_DIGEST_CELLS] if digest else text


async def read_words(engine: Engine, keys: Sequence[str]) -> Mapping[str, Words]:
    """The words of facts by id. Raises the store's typed errors."""
    from cockpit.loop.views.packet_inspection import words

    return await engine.store.read(lambda connection: words(connection, keys))


class FactDialog(Dialog[None]):
    """A list of facts over the whole screen: filter, sort, read and pin."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("slash", "filter", "filter", show=False),
    ]

    FATES: tuple[Fate, ...] = ()
    KEYS = ""

    def __init__(
        self,
        engine: Engine,
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
        self.field = calm(Input(placeholder="words that a row must have", select_on_focus=False))
        self.box = Vertical(self.head, self.list, self.field, id="facts", classes="box")

    def compose(self) -> ComposeResult:
        yield self.box

    def on_mount(self) -> None:
        self.box.border_subtitle = Content(self.KEYS)
        self.field.display = False
        self.list.focus()
        self.tell_head()

    def tell_head(self) -> None:
        """Say what is listed, and how many of which fate."""
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
        """Out of the filter, else out of the list."""
        if self.field.display:
            self.field.value = ""
            self._filtered()
        else:
            self.dismiss(None)

    def action_filter(self) -> None:
        """Ask for words."""
        self.field.display = True
        self.field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the person types."""
        event.stop()
        self.list.filter(event.value)
        self.tell_head()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the list; what was typed goes on filtering."""
        event.stop()
        self._filtered()

    def _filtered(self) -> None:
        self.field.display = bool(self.field.value)
        self.list.focus()

    async def on_fact_list_wanted(self, event: FactList.Wanted) -> None:
        """The rows that are seen tell where their facts came from."""
        try:
            found = await read_words(self.engine, event.keys)
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        self.list.provide({key: origin(words.provenance) for key, words in found.items()})

    async def on_fact_list_opened(self, event: FactList.Opened) -> None:
        """Read one fact."""
        try:
            found = await read_words(self.engine, [event.key])
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        if event.key in found:
            self.app.push_screen(ReadFact(found[event.key]))

    async def on_fact_list_pin_wanted(self, event: FactList.PinWanted) -> None:
        """Pin or unpin, from the next wave on."""
        do = self.engine.pin if event.pinned else self.engine.unpin
        try:
            done = await do(self.session_id, event.key)
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        self.list.set_pinned(event.key, done.pinned)
        word = "pinned" if done.pinned else "unpinned"
        self.box.border_subtitle = Content(f"{word} from wave {done.ordinal} · {self.KEYS}")


class BandFacts(FactDialog):
    """The facts of one band of a wave's packet."""

    FATES = ("kept", "shortened", "dropped")
    KEYS = "⏎ read · p pin · / filter · u t o sort · esc back"

    def __init__(self, engine: Engine, session_id: str, band: str) -> None:
        super().__init__(engine, session_id, title=band, empty="The facts are being read.")
        self._band = band

    def tell(self, told: Explanation, rows: Sequence[FactView]) -> None:
        """List the band's facts; what was typed meanwhile filters them."""
        self.title = f"{self._band} · wave {told.ordinal} · packet {told.digest[:8]}"
        self.list.show(rows, empty="No fact has come for this band.")
        self.tell_head()


class ReadFact(Dialog[None]):
    """The words of one fact."""

    BINDINGS = [Binding("enter,q", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        words = self._words
        with VerticalScroll(id="read", classes="box") as box:
            box.border_title = Content(clean(words.source_ref, newlines=False))
            box.border_subtitle = Content("esc back")
            yield Static(line((origin(words.provenance), DIM)), classes="words")
            yield Static(block(words.text[:READ_MOST]))
            more = len(words.text) - READ_MOST
            if more > 0:
                yield Static(line((f"! {more:,} more characters are not shown here.", WARN)))
