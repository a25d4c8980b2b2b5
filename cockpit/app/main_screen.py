"""The screen with the four panes and the prompt, as actions use it: what it shows and what was chosen there.

:class:`~cockpit.app.screens.cockpit_screen.CockpitScreen` draws it.
"""

from __future__ import annotations

from cockpit.app.actions.context import Pane
from cockpit.app.actions.screen_actions import ActionScreen
from cockpit.app.deciding_screen import DecidingScreen
from cockpit.app.screens.first_words import FirstWords
from cockpit.app.screens.panes import PANES, Panes
from cockpit.app.state.chain_trees import Trees
from widgets.frame.word_bar import WordBar
from widgets.prompt.prompt import Prompt
from widgets.views import QueueView


class MainScreen(DecidingScreen, ActionScreen):
    """The prompt, the panes, and what the user chose in them."""

    prompt: Prompt
    panes: Panes
    words: FirstWords
    """Which words were explained to the user."""
    trees: Trees
    """How far the trees of chains are open."""
    queue = QueueView()
    """The proposals as they are drawn."""
    front_id = ""
    """The proposal in front, by its id; empty without one."""
    is_alone = False
    """Whether the user turned to that proposal: it is drawn without those that are alike."""
    kept_items: tuple[str, ...] | None = None
    """The items of a context request that are still ticked; None while it is not narrowed."""
    found_words = ""
    """What the conversation was searched for last; empty before."""
    wider_policy = ""
    """The approval policy that waits for its second key; empty without one."""
    note = ""
    """What stands in the border of the prompt until the next key."""

    @property
    def word(self) -> str:
        """The word that is explained; empty for none."""
        return self.query_one(WordBar).word

    @property
    def pane(self) -> Pane:
        """The pane that has the focus."""
        focused = self.focused
        for name in PANES:
            if focused is self.panes.pane(name):
                return name
        return "prompt" if focused is self.prompt else ""

    def flash(self, text: str) -> None:
        """Show ``text`` in the border of the prompt until the next key."""
        self.note = text
        self.update_hints()
