"""The whole change of a proposal: every line of every diff, however large.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Log

from cockpit.app.dialogs.question import Dialog
from widgets.text.clean import clean
from widgets.views import FileDiffView, ProposalView

_MOST_COMPARED = 25_000_000
"""Pairs of lines that are compared; beyond it, what is removed stands before what is added."""


class WholeChange(Dialog[None]):
    """The diffs of a proposal as unified text, which scrolls in both directions."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("v,q,enter", "leave", "close", show=False),
        Binding("j", "scroll(1)", "down", show=False),
        Binding("k", "scroll(-1)", "up", show=False),
    ]

    def __init__(self, proposal: ProposalView) -> None:
        super().__init__()
        self._proposal = proposal

    def compose(self) -> ComposeResult:
        with Vertical(id="whole-change", classes="box") as box:
            box.border_title = Content(clean(self._proposal.title, newlines=False))
            box.border_subtitle = Content("↑ ↓ ← → scroll · esc back")
            yield Log(highlight=False, auto_scroll=False)

    async def on_mount(self) -> None:
        log = self.query_one(Log)
        log.focus()
        lines = await asyncio.to_thread(lambda: list(whole_lines(self._proposal.diffs)))
        if self.is_attached:
            log.write_lines(lines)
            log.scroll_home(animate=False)

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one(Log).scroll_relative(y=step, animate=False)


def whole_lines(diffs: Sequence[FileDiffView]) -> Iterator[str]:
    """Yield the lines of the diffs as unified text with all of the context, without control characters."""
    for diff in diffs:
        old, new = (diff.before or "").splitlines(), (diff.after or "").splitlines()
        state = "new file" if diff.before is None else "removed file" if diff.after is None else ""
        counts = f"{len(old):,} lines before, {len(new):,} after"
        yield clean(f"━━ {diff.path} · {state or counts}", newlines=False)
        yield from (clean(each, newlines=False) for each in _compared(old, new))
        yield ""


def _compared(old: list[str], new: list[str]) -> Iterator[str]:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    yield from (f"  {each}" for each in old[:head])
    if len(before) * len(after) > _MOST_COMPARED:
        yield from (f"- {each}" for each in before)
        yield from (f"+ {each}" for each in after)
    else:
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for tag, first, last, low, high in matcher.get_opcodes():
            if tag == "equal":
                yield from (f"  {each}" for each in before[first:last])
            else:
                yield from (f"- {each}" for each in before[first:last])
                yield from (f"+ {each}" for each in after[low:high])
    yield from (f"  {each}" for each in old[len(old) - tail :])
