"""Screens over the backlog: full screens whose keys and key bar come from the registry of actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.screen import Screen
from textual.widget import Widget

from cockpit.app import key_hints
from cockpit.app.actions.action import Action, Moment
from cockpit.app.actions.bindings import bindings
from cockpit.app.overlay import OverTasks
from cockpit.app.projection.backlog import Work
from widgets.frame.footer import KeyBar
from widgets.frame.headline import Headline
from widgets.text.tone import Part
from widgets.views import KeyHintView

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen

_EVERYWHERE = (
    "palette",
    "help",
    "board",
    "queue",
    "stats",
    "plan",
    "new_story",
    "new_epic",
    "edit_story",
    "edit_epic",
)
_BACK = KeyHintView("esc", "back")


class WorkScreen(OverTasks, Screen[None]):
    """A screen that covers the cockpit and shows tasks. It is painted with the cockpit's own screen,
    whatever the journal tells; what a key does is an action of the registry.

    A screen is left with Escape. It reads no store; it asks for what the journal does not hold.
    """

    NAME: ClassVar[str] = ""
    BOARD: ClassVar[bool] = False
    BINDINGS = [Binding("escape,q", "leave", "back", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, main: CockpitScreen) -> None:
        super().__init__()
        self.main = main
        self.actions = tuple(
            each for each in main.actions if each.pane == "tasks" or each.id in _EVERYWHERE
        )
        self._by_id = {each.id: each for each in self.actions}
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(bindings(self.actions))])
        self.headline, self.bar = Headline(), KeyBar()
        self._revision = -1

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self.body
        yield self.bar

    def on_mount(self) -> None:
        self.body.focus()
        self.paint()

    @property
    def body(self) -> Widget:
        """What stands between the first and the last line, and has the keys."""
        raise NotImplementedError

    @property
    def work(self) -> Work:
        """The backlog as the journal tells it."""
        return self.main.cockpit.feed.state.work

    @property
    def moment(self) -> Moment:
        """What the validity of actions depends on, now."""
        task = self.work.tasks.get(self.task_id)
        status = task.status if task is not None else ""
        return Moment(pane="tasks", task=status, board=self.BOARD)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An action that is not valid now leaves its key to the widget below."""
        if action in ("do", "pane_do"):
            return self._by_id[str(parameters[0])].when(self.moment)
        return True

    def act(self, name: str) -> None:
        """Do one action of the registry."""
        getattr(self.main.acts, name)()

    action_do = action_pane_do = act

    def action_leave(self) -> None:
        """Back to what this screen covers."""
        self.dismiss(None)

    # Drawing

    def paint(self) -> None:
        """Draw what the journal says now; called whenever the cockpit's own screen is drawn."""
        if not self.body.is_attached:
            return
        work = self.work
        if work.revision != self._revision:
            self._revision = work.revision
            self.redraw()
        name, parts = self.head()
        self.headline.show(name, parts, len(self.main.cockpit.pending))
        self.words()

    def redraw(self) -> None:
        """Draw the body anew: the backlog changed, or the way one looks at it."""
        raise NotImplementedError

    def head(self) -> tuple[str, Sequence[Part]]:
        """The name of the screen, and words about it."""
        return self.NAME, ()

    def words(self) -> None:
        """Say what the keys mean now."""
        hints = key_hints.footer(self.hinted(), self.moment)
        self.bar.show([*hints, _BACK] if hints else [_BACK])

    def hinted(self) -> Sequence[Action]:
        """The actions that the key bar may tell of."""
        return [each for each in self.actions if each.pane == "tasks" or each.id == "help"]
