"""Screens over the backlog: full screens with keys and footer from the registry of actions.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget

from cockpit.app import key_hints
from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.screen_actions import ActionScreen
from cockpit.app.host import Host, TaskCursorScreen
from cockpit.app.state.work import Work
from widgets.frame.footer import KeyBar
from widgets.frame.headline import Headline
from widgets.text.style_names import BAD, Part
from widgets.views import KeyHintView

_EVERYWHERE = (
    "palette",
    "help",
    "keys",
    "board",
    "queue",
    "stats",
    "plan",
    "new_story",
    "new_epic",
    "edit_story",
    "edit_epic",
)
_BACK = KeyHintView("esc", "back", press="escape")


class BacklogScreen(TaskCursorScreen, ActionScreen):
    """A screen over the cockpit that shows tasks and closes with Escape.

    The main screen paints it along with itself. A key runs an action of the registry.
    """

    host: Host
    NAME: str = ""
    IS_BOARD: ClassVar[bool] = False
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("escape,q", "leave", "back", show=False),
        Binding("question_mark", "do('keys')", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.take_actions(host, [action for action in host.actions if self.takes(action)])
        self.headline, self.bar = Headline(), KeyBar()
        self._revision = -1

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self.body
        yield self.bar

    def on_mount(self) -> None:
        self.first_focus.focus()
        self.paint()

    def takes(self, action: Action[Host]) -> bool:
        """Whether the screen has an action."""
        return action.pane == "tasks" or action.id in _EVERYWHERE

    @property
    def body(self) -> Widget:
        """The widget between headline and footer; it has the focus."""
        raise NotImplementedError

    @property
    def first_focus(self) -> Widget:
        """The widget that has the focus first."""
        return self.body

    @property
    def work(self) -> Work:
        """The backlog as the journal tells it."""
        return self.host.state.work

    @property
    def context(self) -> ActionContext:
        """The state on which the validity of actions depends, now."""
        return self.task_context

    @property
    def task_context(self) -> ActionContext:
        """The context of a place with a task under the cursor."""
        task = self.work.tasks.get(self.task_id)
        status = task.status if task is not None else ""
        return ActionContext(pane="tasks", task_status=status, on_board=self.IS_BOARD)

    def action_leave(self) -> None:
        """Close this screen."""
        self.dismiss(None)

    # Drawing

    def paint(self) -> None:
        """Draw the current state of the journal."""
        if not self.body.is_attached:
            return
        work = self.work
        if work.revision != self._revision:
            self._revision = work.revision
            self.redraw()
        name, parts = self.head()
        if warning := self.host.store_warning:
            parts = [(f"⚠ {warning}", BAD), "   ", *parts]
        self.headline.show(name, parts, len(self.host.pending))
        self.update_hints()

    def redraw(self) -> None:
        """Draw the body again: the backlog changed, or its filter."""
        raise NotImplementedError

    def head(self) -> tuple[str, Sequence[Part]]:
        """Return the name of the screen, and the text after it."""
        return self.NAME, ()

    def update_hints(self) -> None:
        """Show the current meaning of the keys in the footer."""
        hints = key_hints.footer_hints(self.footer_actions(), self.context)
        self.bar.show([*hints, _BACK] if hints else [_BACK])

    def footer_actions(self) -> Sequence[Action[Host]]:
        """Return the actions that the footer may show."""
        return [
            action
            for action in self.actions.actions
            if action.pane == "tasks" or action.id == "help"
        ]
