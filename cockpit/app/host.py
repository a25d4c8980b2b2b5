"""The application as actions, dialogs and screens use it: the protocols that it implements.

Actions are functions over a :class:`Host`. With the protocol, no action, dialog or screen imports the
application or the cockpit's main screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

    from cockpit.access.notices import Notifier
    from cockpit.app.actions.action import Action
    from cockpit.app.actions.context import ActionContext, Pane
    from cockpit.app.all_projects.jump import Jump
    from cockpit.app.engine_client import Engine
    from cockpit.app.key_policy import KeyPolicy
    from cockpit.app.projection.chain_trees import Trees
    from cockpit.app.projection.fold import State
    from cockpit.app.projection.header import SessionState
    from cockpit.app.projection.kanban import Looking
    from cockpit.app.screens.first_words import FirstWords
    from cockpit.app.screens.panes import Panes
    from cockpit.app.screens.welcome_facts import WelcomeFacts
    from cockpit.app.session_runs import SessionRuns
    from cockpit.app.session_trail import SessionTrail
    from widgets.prompt.prompt import Prompt
    from widgets.views import QueueView

T = TypeVar("T")


class MainScreen(Protocol):
    """The screen with the four panes and the prompt, as actions use it."""

    front_id: str
    """The proposal in front, by its id; empty without one."""
    is_alone: bool
    """Whether the user turned to that proposal: it is drawn without those that are alike."""
    kept_items: tuple[str, ...] | None
    """The items of a context request that are still ticked; None while it is not narrowed."""
    found_words: str
    """What the conversation was searched for last; empty before."""
    wider_policy: str
    """The approval policy that waits for its second key; empty without one."""

    words: FirstWords
    """Which words were explained to the user."""

    @property
    def word(self) -> str:
        """The word that is explained; empty for none."""
        ...

    @property
    def prompt(self) -> Prompt: ...

    @property
    def panes(self) -> Panes: ...

    @property
    def pane(self) -> Pane:
        """The pane that has the focus."""
        ...

    @property
    def key_policy(self) -> KeyPolicy: ...

    @property
    def queue(self) -> QueueView:
        """The proposals as they are drawn."""
        ...

    @property
    def trees(self) -> Trees:
        """How far the trees of chains are open."""
        ...

    @property
    def context(self) -> ActionContext:
        """The state on which the validity of actions depends, now."""
        ...

    def act(self, action_id: str) -> None:
        """Run an action of the registry."""
        ...

    def flash(self, text: str) -> None:
        """Show ``text`` in the border of the prompt until the next key."""
        ...

    def update_hints(self) -> None:
        """Show the current meaning of the keys: footer, prompt and its border."""
        ...

    def paint(self) -> None:
        """Draw the current state of the journal now."""
        ...

    def schedule_paint(self) -> None:
        """Draw soon, at most thirty times a second."""
        ...


class Host(Protocol):
    """The application, as actions, dialogs and the screens over the main one use it."""

    interrupted_at: float
    """When Ctrl+C was pressed last with nothing to interrupt, in monotonic seconds."""

    knows_offline_limits: bool
    """Whether this run of the screen said what the offline rules cannot do."""
    escaped_at: float
    """When Escape was pressed last with nothing to leave, in monotonic seconds."""
    jump: Jump | None
    """The other project that the user goes to when this program's screen ends; None for none."""
    notifier: Notifier | None
    """Announces proposals outside the terminal; None where the user has no such setting."""

    # State

    @property
    def engine(self) -> Engine: ...

    @property
    def main(self) -> MainScreen: ...

    @property
    def actions(self) -> Sequence[Action[Host]]:
        """All actions, under the user's keys."""
        ...

    @property
    def prompt_commands(self) -> Sequence[tuple[str, str]]:
        """The screen's own commands of the prompt, each with its hint."""
        ...

    @property
    def state(self) -> State:
        """The journal, folded."""
        ...

    @property
    def runs(self) -> SessionRuns:
        """The sessions that this process drives."""
        ...

    @property
    def welcome(self) -> WelcomeFacts:
        """What the welcome shows; its model is that of new sessions."""
        ...

    @property
    def trail(self) -> SessionTrail:
        """The sessions that the user came from."""
        ...

    @property
    def board_filter(self) -> Looking:
        """Which tasks the board shows; it lasts as long as the program."""
        ...

    @property
    def session_id(self) -> str:
        """The followed session; empty without one."""
        ...

    @property
    def session(self) -> SessionState | None:
        """The state of the followed session."""
        ...

    @property
    def packet_wave_id(self) -> str:
        """The newest wave of the followed session that has a packet; empty without one."""
        ...

    @property
    def store_warning(self) -> str:
        """What every screen warns of while the store differs from its anchor; empty while it does not."""
        ...

    @property
    def pending(self) -> list[str]:
        """The ids of waiting proposals, in the order of the queue."""
        ...

    # Sessions and messages

    def attach(self, session_id: str) -> None:
        """Follow a session; with an empty id none: the next message starts one."""
        ...

    def open_session(self, session_id: str) -> None:
        """Read the conversation of a session that is not followed, for a look at it."""
        ...

    def send_message(self, text: str, session_id: str | None = None) -> None:
        """Send a message to a session, by default to the followed one; an empty id starts one."""
        ...

    async def start_session(self, text: str) -> None:
        """Start a session with a message and follow it; an error is shown, and the text returns."""
        ...

    def resume_session(self, session_id: str) -> None:
        """Drive a session after a decision, when it is the followed one and not driven yet."""
        ...

    def restore_text(self, text: str) -> None:
        """Put text that could not be sent back into the prompt, unless the user typed since."""
        ...

    # Work in the background

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until it or the program ends."""
        ...

    def request(self, call: Callable[[], Awaitable[object]]) -> None:
        """Run a call in the background and show its error."""
        ...

    def show_error(self, text: str) -> None:
        """Show an error over the screen for some seconds."""
        ...

    def show_notice(self, text: str) -> None:
        """Show a notice over the screen for some seconds."""
        ...

    # Screens and the terminal

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""
        ...

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """All open screens, the top one last."""
        ...

    theme: str
    """The name of the theme in use."""

    @property
    def available_themes(self) -> Mapping[str, object]: ...

    def open_screen(
        self, screen: Screen[T], on_answer: Callable[[T | None], None] | None = None
    ) -> Awaitable[None]:
        """Open a screen or dialog on top; ``on_answer`` gets its answer, None without one."""
        ...

    def pop_screen(self) -> object:
        """Close the screen on top."""
        ...

    def press_key(self, key: str) -> None:
        """Press a key on the screen on top, as the user would."""
        ...

    async def edit_in_editor(
        self, text: str, suffix: str, *, is_prompt: bool = False
    ) -> str | None:
        """Return ``text`` as the user saved it in their editor; None when there is no terminal for it.

        When the terminal goes away meanwhile, the text is kept: that of the prompt as its draft.

        Raises ``EditorFailed``.
        """
        ...

    async def open_in_editor(self, root: Path, path: str, line: int) -> bool:
        """Open a file below ``root`` in the user's editor, at a line; False, with a notice, if it fails."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Put ``text`` on the clipboard of the terminal."""
        ...

    def choose_theme(self, name: str) -> None:
        """Switch to a theme and remember it."""
        ...

    async def quit(self) -> None:
        """End the program after every session saved its state."""
        ...


class LiveScreen:
    """A screen or dialog over the main screen that is drawn whenever the main screen is."""

    def paint(self) -> None:
        """Draw the current state of the journal."""
        raise NotImplementedError


class TaskCursorScreen(LiveScreen):
    """A live screen with a task under its cursor."""

    @property
    def task_id(self) -> str:
        """The task that keys act on; empty without one."""
        raise NotImplementedError
