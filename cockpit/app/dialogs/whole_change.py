"""The whole change of a proposal: every line of every file, however large.

Specified in ``docs/reference/screen.md``, large things.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from widgets.proposals.diff_list import DiffList
from widgets.text.clean import clean
from widgets.views import ProposalView


class WholeChange(Dialog[None]):
    """The files of a proposal before and after, with all of their lines."""

    BINDINGS = [Binding("v,q,enter", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, proposal: ProposalView) -> None:
        super().__init__()
        self._proposal = proposal

    def compose(self) -> ComposeResult:
        with Vertical(id="whole-change", classes="box") as box:
            box.border_title = Content(clean(self._proposal.title, newlines=False))
            box.border_subtitle = Content("j k scroll · [ ] files · ␣ fold · d sides · esc back")
            yield DiffList(self._proposal.diffs, around=None)
