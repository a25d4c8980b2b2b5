"""The proposal pane: everything that the user needs to see before they decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from widgets.bands.profile_change import ProfileChange
from widgets.proposals.context_checklist import Checklist
from widgets.proposals.proposal_fields import Fields
from widgets.proposals.proposal_keys import ProposalKeys
from widgets.proposals.reading import Part, Reading, lines_in_view
from widgets.proposals.waiting_rows import WaitingRows
from widgets.text.clean import clean, hidden
from widgets.text.markdown import MarkdownLines
from widgets.text.numerals import duration
from widgets.text.style_names import (
    ACCENT,
    BAD,
    BADGE,
    DIM,
    GOOD,
    STRONG,
    WARN,
    block,
    line,
    spread,
)
from widgets.views import KeyHintView, ProposalView, QueueView

SPLIT_CELLS = 110
"""Width from which the two sides of a diff are next to each other."""

_DEADLINE_NEAR = 60
_TITLE_LEAST = 12
_IN_TITLES = ("path", "argv", "command")
"""Fields that are left out where the title has all of their value."""
_NOTHING_MORE = "Nothing more to show: the title is the whole proposal."
_TITLE_LINES = 2
"""Lines of a title that stand above the proposal; a longer one is a part of it, too."""


class ProposalPanel(Vertical, can_focus=True):
    """Draw the front of a :class:`QueueView`; it decides nothing and does not arm itself.

    The application sets :attr:`armed` (until then keys, title and border are dim) and
    :attr:`narrowing` (then j and k move over the items and space posts :class:`Narrowed`). It calls
    :meth:`note_frame` for each frame that it draws: :attr:`reading` then says which lines were in view. A
    warning counts characters that cannot be shown.
    """

    DEFAULT_CSS = """
    ProposalPanel { height: 1fr; width: 1fr; padding: 0 1; }
    ProposalPanel > #proposal-scroll { height: 1fr; scrollbar-size-vertical: 1; }
    ProposalPanel > #proposal-scroll > Static { height: auto; width: 1fr; margin: 0 0 1 0; }
    ProposalPanel > #proposal-scroll > Static.-none { margin: 0; }
    ProposalPanel > #proposal-scroll > Static.-next { margin: 1 0 0 0; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("space", "keep", "keep or drop", show=False),
        Binding("d", "split", "side by side", show=False),
        Binding("v", "unfold", "the fields of a short card", show=False),
    ]

    view: reactive[QueueView] = reactive(QueueView(), init=False)
    hints: reactive[tuple[KeyHintView, ...]] = reactive((), init=False)
    armed: reactive[bool] = reactive(False, init=False)
    narrowing: reactive[bool] = reactive(False, init=False)

    @dataclass
    class Narrowed(Message):
        """The user ticked or unticked an item; ``items`` are the ticked ones, in order."""

        items: tuple[str, ...]

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 -- Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._drawn: tuple[ProposalView | None, bool] = (None, False)
        self._blank = True
        self._ready = False
        self._split: bool | None = None
        self._unfolded = ""
        """The proposal whose short card was unfolded."""
        self._shown: list[Widget] = []
        """The parts of the proposal in front; others may still be on their way out."""
        self.reading = Reading()
        """Which lines of the proposal in front were on the screen."""
        self._form = ""

    def compose(self) -> ComposeResult:
        yield WaitingRows()
        yield ProposalHead()
        yield VerticalScroll(id="proposal-scroll", can_focus=False)
        yield ProposalKeys()

    def on_mount(self) -> None:
        self._ready = True
        self._redraw()

    def show(self, view: QueueView, hints: Sequence[KeyHintView] = ()) -> None:
        """Draw ``view``; the scroll position stays while only age and deadline change."""
        self.hints = tuple(hints)
        self.view = view

    @property
    def kept(self) -> tuple[str, ...]:
        """The items of a context request that are still ticked."""
        lists = list(self.query(Checklist))
        return lists[0].kept if lists else ()

    def watch_view(self) -> None:
        self._redraw()

    def watch_hints(self) -> None:
        self._redraw_frame()

    def watch_armed(self) -> None:
        self._redraw_frame()

    def watch_narrowing(self, narrowing: bool) -> None:
        for each in self.query(Checklist):
            each.narrowing = narrowing
        self._redraw_frame()

    def _redraw(self) -> None:
        if not self._ready:
            return
        self._redraw_frame()
        front = self.view.front
        ageless = _without_age(front) if front is not None else None
        has_others = front is None and bool(self.view.others)
        if (ageless, has_others) != self._drawn or self._blank:
            self._drawn, self._blank = (ageless, has_others), False
            self.narrowing = False
            if front is None or front.drawn != self.reading.drawn:
                self.reading = Reading(front.drawn if front is not None else "")
                self._form = ""
            scroll = self.query_one("#proposal-scroll", VerticalScroll)
            scroll.remove_children()
            self._shown = list(self._parts(front))
            scroll.mount_all(self._shown)
            scroll.scroll_home(animate=False)
            self._fit_title()

    def _fit_title(self) -> None:
        """Draw the whole title in the proposal where it has no room above."""
        front = self.view.front
        for title in self._shown[: front is not None]:
            width = self.query_one(ProposalHead).content_size.width or self.size.width
            lines = len(wrap_title(front, width)) if front is not None else 0
            title.display = lines > _TITLE_LINES or (front is not None and bool(front.alike))

    def _redraw_frame(self) -> None:
        view, front = self.view, self.view.front
        name = f"Proposals {view.index + 1} of {view.total}" if front else "Proposals"
        if front is not None and front.alike:
            name = f"Proposals · {len(front.together)} alike of {view.total}"
        if front is None and view.others:
            name = f"Proposals · {view.others} in other sessions"
        self.border_title = Content(name)
        before = self.classes
        for level in ("low", "medium", "high"):
            risk = front is not None and front.risk == level
            self.set_class(risk, f"-risk-{level}", update=False)
        self.set_class(front is not None and not self.armed, "-unarmed", update=False)
        if self.classes != before:
            # Once for all of them: each time goes through everything in the panel.
            self.update_node_styles()
        self.border_subtitle = self._border_text(front) if front is not None else None
        if self._ready:
            self._redraw_waiting()
            self.query_one(ProposalHead).show(front, self.armed)
            self._redraw_keys()

    def _redraw_waiting(self) -> None:
        # Without a proposal in front the panel is as tall as its rows: the screen says how many have room.
        lines = self.size.height if self.view.front is not None else self.screen.size.height
        self.query_one(WaitingRows).show(self.view, lines)

    def _redraw_keys(self) -> None:
        is_dim = not self.armed and self.view.front is not None
        self.query_one(ProposalKeys).show(self.hints, self._unread, is_dim)

    def list_unsaid(self, hints: Sequence[KeyHintView]) -> list[KeyHintView]:
        """Return the hints whose keys the panel does not draw: the footer need not repeat the others."""
        drawn = self.list_keys()
        return [hint for hint in hints if not hint.press or hint.press not in drawn]

    def list_keys(self) -> list[str]:
        """List the keys that the panel draws, as they are pressed."""
        keys = self.query_one(ProposalKeys) if self._ready else None
        return keys.list_drawn() if keys is not None and keys.is_on_screen else []

    @property
    def _unread(self) -> str:
        """What was not in view yet, as text; empty when all was."""
        reading = self.reading
        if self.view.front is None or reading.is_whole or not reading.lines:
            return ""
        return f"{reading.shown:,} of {reading.lines:,} lines shown"

    def _border_text(self, front: ProposalView) -> Content:
        parts = [f"risk {front.risk}"]
        if front.left_s is not None:
            only = "only " if front.left_s < _DEADLINE_NEAR else ""
            parts.append(f"{only}{duration(front.left_s)} left")
        if front.second_key:
            parts.append("needs a second key")
        lists = list(self.query(Checklist)) if self.narrowing else []
        # While the list is scrolled, the sum below it may be off the screen.
        return Content(" · ".join([*(each.total_text for each in lists), *parts]))

    def _parts(self, front: ProposalView | None) -> Iterator[Widget]:
        """Yield what is drawn, one below the other; what sums up or warns stands above what it is about."""
        if front is None:
            words = "No proposals. They appear here when an agent needs your decision."
            if self.view.others:
                words = "None of this session."
            yield Static(line((words, DIM)), classes="-none")
            return
        if front.alike:
            for place, each in enumerate(front.together, 1):
                head = line((f"{place} of {len(front.together)}  ", WARN), (each.title, STRONG))
                yield Static(head, classes="-next" if place > 1 else "-none")
                yield from self._all_parts(each)
            return
        yield Static(line((front.title, STRONG)), classes="whole-title")
        is_card = bool(front.card_rule) and self._unfolded != front.proposal_id
        parts = list(self._card(front) if is_card else self._all_parts(front))
        yield from parts or [Static(line((_NOTHING_MORE, DIM)))]

    def _all_parts(self, front: ProposalView) -> Iterator[Widget]:
        """Yield all of a proposal below its title; nothing for one that is its title alone."""
        if front.revises or front.changes:
            yield Static(_revision(front))
        yield from _notes(front)
        if front.kind == "context" or front.purpose or front.question:
            yield Static(_request(front))
        if front.items:
            yield Checklist(front.items)
        if front.shift is not None:
            yield ProfileChange(front.shift)
        # What an external agent would change comes before where it would.
        is_change = front.kind == "permission" and bool(front.diffs)
        if is_change:
            yield from self._diffs(front)
        if fields := _unrepeated(front):
            yield Fields(fields)
        if clean(front.body).strip():
            yield _body(front.body)
        if not is_change:
            yield from self._diffs(front)

    def _card(self, front: ProposalView) -> Iterator[Widget]:
        """A short card: all that would be posted, then the one key that approves it."""
        if front.fields:
            summary = " · ".join(f"{name} {value}" for name, value in front.fields)
            yield Static(line((summary, DIM)))
        yield from _notes(front)
        if clean(front.body).strip():
            yield _body(front.body)
        yield from self._diffs(front)
        yield Static(
            Content("\n").join(
                [
                    line(("Looks good ⏎", ACCENT), ("   v shows its fields", DIM)),
                    line((f"one key, as you accepted with {front.card_rule}", DIM)),
                ]
            )
        )

    # Reading

    def note_frame(self) -> None:
        """Note which lines stand on the screen. Call it for every frame, when that was drawn."""
        front = self.view.front
        if not self._ready or front is None:
            return
        form = "card" if front.card_rule and self._unfolded != front.proposal_id else "full"
        if self.reading.is_whole and form == self._form:
            return
        self._form = form
        before = self._unread
        parts = {f"{form} {place}": part for place, part in enumerate(self._shown) if part.display}
        self.reading.lay_out(
            Part(key, part.size.width, part.outer_size.height, part.size.area > 0)
            for key, part in parts.items()
        )
        on_screen = self.screen._compositor.visible_widgets
        covers = self._list_covers(on_screen)
        for key, part in parts.items():
            if part not in on_screen:
                continue
            region, clip = on_screen[part]
            view = region.intersection(clip)
            if view.width < region.width:
                continue  # the ends of its lines are out of view
            for first, last in lines_in_view(view.y, view.height, covers):
                self.reading.note(key, first - region.y, last - region.y)
        if self._unread != before:
            self._redraw_keys()

    def _list_covers(self, on_screen: dict[Widget, tuple[Region, Region]]) -> list[tuple[int, int]]:
        """List the lines of the screen on which something lies over the panel, such as a message."""
        covers = []
        for widget, (region, clip) in on_screen.items():  # what is on top comes first
            if widget is self or self in widget.ancestors:
                break
            hidden_part = region.intersection(clip).intersection(self.region)
            if hidden_part:
                covers.append((hidden_part.y, hidden_part.bottom))
        return covers

    def read_on(self) -> None:
        """Scroll to the first line that was not in view."""
        unseen = self.reading.first_unseen
        if unseen is None:
            return
        key, row = unseen
        part = self._shown[int(key.rpartition(" ")[2])]
        scroll = self.query_one("#proposal-scroll", VerticalScroll)
        scroll.scroll_to(y=part.virtual_region.y + row, animate=False)

    @property
    def is_cut_off(self) -> bool:
        """Whether the proposal is taller than its place."""
        return self._ready and self.query_one("#proposal-scroll", VerticalScroll).max_scroll_y > 0

    def _diffs(self, front: ProposalView) -> Iterator[Widget]:
        if front.diffs:
            from widgets.proposals.file_diff import FileDiff  # late: an empty screen shows none

            split = self._wide if self._split is None else self._split
            above = front.title if len(front.diffs) == 1 else ""
            yield from (FileDiff(diff, split=split, above=above) for diff in front.diffs)

    @property
    def _wide(self) -> bool:
        return self.size.width >= SPLIT_CELLS

    def on_resize(self) -> None:
        """Show diffs side by side when there is room, and rows of the queue."""
        if self._ready:
            self._redraw_waiting()
            self._fit_title()
        if self._split is None:
            self._split_all(self._wide)

    def _split_all(self, split: bool) -> None:
        if self.query("FileDiff"):
            from widgets.proposals.file_diff import FileDiff

            for each in self.query(FileDiff):
                each.split = split

    def action_split(self) -> None:
        """Switch diffs between side by side and unified."""
        self._split = not (self._wide if self._split is None else self._split)
        self._split_all(self._split)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for a key that means nothing here: it goes on to the screen."""
        front = self.view.front
        if action == "unfold" and (front is None or not front.card_rule):
            return False
        return super().check_action(action, parameters)

    def action_unfold(self) -> None:
        """Show all of a short card, or the card again."""
        front = self.view.front
        if front is not None and front.card_rule:
            self._unfolded = "" if self._unfolded == front.proposal_id else front.proposal_id
            self._blank = True
            self._redraw()

    def action_move(self, step: int) -> None:
        """Move over the items while narrowing, else scroll by a line."""
        scroll = self.query_one("#proposal-scroll", VerticalScroll)
        lists = list(self.query(Checklist))
        if self.narrowing and lists:
            lists[0].move(step)
            top = lists[0].virtual_region.y + lists[0].cursor_line
            if not scroll.scroll_offset.y <= top < scroll.scroll_offset.y + scroll.size.height:
                scroll.scroll_to(y=top, animate=False)
        else:
            scroll.scroll_relative(y=step, animate=False)

    def action_page(self, way: int) -> None:
        """Scroll by a page."""
        scroll = self.query_one("#proposal-scroll", VerticalScroll)
        scroll.scroll_relative(y=way * max(1, scroll.size.height - 1), animate=False)

    def action_keep(self) -> None:
        """Keep or drop the item under the cursor while narrowing."""
        lists = list(self.query(Checklist))
        if self.narrowing and lists and lists[0].toggle():
            self._redraw_frame()
            self.post_message(self.Narrowed(lists[0].kept))


def _without_age(front: ProposalView) -> ProposalView:
    alike = tuple(_without_age(each) for each in front.alike)
    return replace(front, age_s=0, left_s=None, alike=alike)


def _unrepeated(front: ProposalView) -> tuple[tuple[str, str], ...]:
    """Return the fields without those that the heading of a diff or the title has word for word."""
    paths = {diff.path for diff in front.diffs}
    return tuple(
        (name, value)
        for name, value in front.fields
        if not (front.diffs and (value in paths or f"({value})" in front.title))
        and not (name in _IN_TITLES and _stands_in(value, front.title))
    )


def _stands_in(text: str, title: str) -> bool:
    """Return whether ``text`` stands in a title, as a whole word or several."""
    return bool(text.strip()) and f" {text} " in f" {title} "


def _notes(front: ProposalView) -> Iterator[Widget]:
    """Yield what to know before reading: notes, hidden characters, and the size of a change."""
    rows = [Content.assemble(line(("! ", WARN)), block(note)) for note in front.notes]
    if unseen := _unseen(front):
        noun = "character" if unseen == 1 else "characters"
        words = f"! {unseen} {noun} cannot be shown (control or invisible characters)."
        rows.append(line((words, WARN)))
    if len(front.diffs) > 1:
        rows.append(line((f"{len(front.diffs)} files change", DIM)))
    if rows:
        yield Static(Content("\n").join(rows))


def _body(body: str) -> Widget:
    # Of signs alone Markdown may draw nothing.
    return MarkdownLines(body) if any(map(str.isalnum, body)) else Static(block(body))


def _revision(front: ProposalView) -> Content:
    head = line(("revises ", DIM), front.revises) if front.revises else line(("changed", DIM))
    rows = [_change(change) for change in front.changes]
    return Content("\n").join([head, *rows])


def _change(text: str) -> Content:
    """Return one line of the differences from the revision before."""
    tone = {"−": BAD, "+": GOOD}.get(text[:1], "")
    return line(("    ", DIM), (text, tone)) if tone else line(("  Δ ", WARN), text)


def _request(front: ProposalView) -> Content:
    rows = [
        Content.assemble(line((f"{name:<11}", STRONG)), block(text))
        for name, text in (
            ("Purpose", front.purpose),
            ("Question", front.question),
            ("Escalation", front.escalation),
        )
        if text
    ]
    return Content("\n").join(rows or [line(("No purpose given.", DIM))])


def _unseen(front: ProposalView) -> int:
    """Count the characters of the proposal that cannot be seen, in diffs on both sides."""
    texts = [front.title, front.purpose, front.question, front.body]
    texts += [part for field in front.fields for part in field]
    texts += [each.item for each in front.items]
    for diff in front.diffs:
        texts += [diff.path, diff.before or "", diff.after or ""]
    if (shift := front.shift) is not None:
        texts += [shift.base, shift.duration, shift.reason, *(row.name for row in shift.bands)]
        texts += [part for row in shift.rules for part in (row.name, row.before, row.after)]
        texts += [part for row in shift.verdict for part in (row.code, row.message)]
    return sum(hidden(text) for text in texts)


def wrap_title(front: ProposalView, width: int) -> list[Content]:
    """Return the lines of a title next to the badge of its kind, in ``width`` cells.

    Several that are alike share one that counts them; each part has its own title.
    """
    title = f"{len(front.together)} alike: ⏎ approves them all" if front.alike else front.title
    return line(title).wrap(max(_TITLE_LEAST, width - len(front.kind) - 4))


class ProposalHead(Widget):
    """Kind, title, session and age of a proposal."""

    DEFAULT_CSS = "ProposalHead { height: auto; width: 1fr; text-wrap: nowrap; }"

    def __init__(self) -> None:
        super().__init__()
        self._front: ProposalView | None = None
        self._armed = self.display = False

    def show(self, front: ProposalView | None, armed: bool) -> None:
        if (front, armed) == (self._front, self._armed):
            return
        width = self.content_size.width
        lines = len(self._rows(width))
        self._front, self._armed = front, armed
        self.display = front is not None
        # A layout draws the whole screen: its age alone, and that it is armed, change no height.
        self.refresh(layout=len(self._rows(width)) != lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width)) + 1

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[Content]:
        front = self._front
        if front is None:
            return []
        badge = line((f" {front.kind.upper()} ", BADGE), "  ")
        indent = badge.cell_length
        pieces = wrap_title(front, width)
        if len(pieces) > _TITLE_LINES:
            room = max(_TITLE_LEAST, width - indent)
            rest = Content(" ").join(pieces[_TITLE_LINES - 1 :])
            pieces = [*pieces[: _TITLE_LINES - 1], rest.truncate(room, ellipsis=True)]
        pieces = [piece.stylize(STRONG if self._armed else DIM) for piece in pieces]
        rows = [
            Content.assemble(badge if place == 0 else " " * indent, piece)
            for place, piece in enumerate(pieces)
        ]
        who = " · ".join(
            part
            for part in (
                front.agent,
                front.project,
                front.branch,
                front.chain or (front.session and f"session {front.session}"),
                front.task,
                front.role.replace("_", " "),
            )
            if part
        )
        since = f"{duration(front.age_s)} ago" if front.age_s else "now"
        rows.append(spread(line((who, DIM)), line((since, DIM)), width))
        return rows
