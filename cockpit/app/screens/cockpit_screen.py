"""The cockpit's screen: four panes, the prompt, and the two keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer

from cockpit.app import key_hints
from cockpit.app.actions.action import Action, Moment, Pane
from cockpit.app.actions.bindings import bindings
from cockpit.app.actions.decision_actions import Verdicts
from cockpit.app.actions.screen_actions import Acts
from cockpit.app.key_policy import Approve, Nothing, Steering
from cockpit.app.screens.panes import PANES, Panes, Tab
from widgets.bands.band_meter import BandMeter
from widgets.conversation.conversation import Conversation
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.text.clean import clean
from widgets.views import CompletionView, KeyHintView, QueueView
from widgets.work.work_pane import Board

if TYPE_CHECKING:
    from cockpit.app.application import CockpitApp

NARROW = 100
"""Below this many columns the panes become tabs."""

_FRAME_S = 1 / 30
_ARM_LOOK_S = 0.1
_AGE_S = 1.0


class CockpitScreen(Screen[None]):
    """Draws :class:`Views` and turns keys into steps; it reads no store and decides nothing."""

    AUTO_FOCUS = "#prompt"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("enter", "pane_enter", show=False),
        Binding("escape", "pane_escape", show=False),
    ]

    def __init__(
        self, actions: Sequence[Action], monotonic: Callable[[], float], draft: str = ""
    ) -> None:
        super().__init__()
        self.steering = Steering(monotonic)
        self.verdicts = Verdicts(self)
        self.acts = Acts(self)
        self.actions = tuple(actions)
        self._by_id = {action.id: action for action in actions}
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(bindings(actions))])
        self._draft = draft
        self.prompt = Prompt(id="prompt", complete=self._complete)
        self.panes = Panes(self.prompt)
        self.front = ""
        self.queue = QueueView()
        self.kept: tuple[str, ...] | None = None
        self.note = ""
        self.asking_policy = ""
        self._said: key_hints.PromptWords | None = None
        self._known: set[str] = set()
        self._due = self._painted = self._turned = False
        self._arm_timer: Timer | None = None

    @property
    def cockpit(self) -> CockpitApp:
        """The application, as what it is."""
        return cast("CockpitApp", self.app)

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield self.panes
        yield KeyBar()

    def on_mount(self) -> None:
        if self._draft:
            self.prompt.put(self._draft)
        self._arm_timer = self.set_interval(_ARM_LOOK_S, self._look_armed, pause=True)
        self.set_interval(_AGE_S, self._age)
        self.panes.set_narrow(self.size.width < NARROW)
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        """Change between panes and tabs."""
        self.panes.set_narrow(event.size.width < NARROW)
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        """A dialog closed: what is armed counts from now on."""
        if self._painted:
            self.changed()

    def on_screen_suspend(self) -> None:
        """A dialog covers the proposal."""
        self.steering.cover()

    @property
    def pane(self) -> Pane:
        """Which pane has the focus."""
        focused = self.focused
        for name in PANES:
            if focused is self.panes.pane(name):
                return name
        return "prompt" if focused is self.prompt else ""

    @property
    def moment(self) -> Moment:
        """What the validity of actions depends on, now."""
        front = self.steering.open
        return replace(
            self.acts.moment,
            pane=self.pane,
            empty=not self.prompt.text.strip(),
            kind=front.kind if front is not None else "",
            armed=self.steering.armed,
            asking=self.steering.second is not None,
            discussing=self.steering.discussing is not None,
            narrowing=self.panes.proposals.narrowing,
            running=self.cockpit.runs.active(self.cockpit.followed),
            session=bool(self.cockpit.followed),
            oriented=bool(self.cockpit.oriented),
            waiting=self.queue.total,
            selection=bool(self.prompt.selected_text) and self.pane == "prompt",
            listing=any(each.open for each in self.query(Completions)),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An action that is not valid now leaves its key to the widget below."""
        if action in ("do", "pane_do") and self._painted:
            found = self._by_id[str(parameters[0])]
            pane = "work" if found.pane == "tasks" else found.pane
            if action == "pane_do" and pane != self.pane:
                return False
            return found.when(self.moment)
        return True

    def act(self, name: str) -> None:
        """Do one action of the registry."""
        getattr(self.acts, name)()
        self.words()

    action_do = action_pane_do = act

    # Keys

    def before_key(self, key: str) -> bool:
        """Called with every key before anybody handles it; True when it is used up."""
        self.note = ""
        if self.asking_policy:
            policy, self.asking_policy = self.asking_policy, ""
            self.steering.press(key)
            if key == "ctrl+y":
                self.acts.set_policy(policy)
            elif key == "shift+tab":
                self.acts.policy(policy)
            self.words()
            return key in ("ctrl+y", "shift+tab", "escape")
        step = self.steering.second_key(key)
        self.steering.press(key)
        self._look_armed()
        if isinstance(step, Approve):
            self.verdicts.carry(step)
        self.call_later(self.words)
        return isinstance(step, Approve) or (step is not None and key == "escape")

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Enter in the prompt. What waits unseen is shown, never decided."""
        if not event.text and self.queue.front is not None and self.steering.front is None:
            self.panes.turn_to("proposals")
            self.changed()
            return
        self.verdicts.carry(self.steering.enter(event.text, beginning=not self.cockpit.followed))

    def on_prompt_escaped(self) -> None:
        """Escape in the prompt."""
        self.verdicts.carry(self.steering.escape(self.prompt.text.strip()))

    def on_prompt_help_wanted(self) -> None:
        """``?`` in an empty prompt."""
        self.act("help")

    def action_pane_enter(self) -> None:
        """Enter in the proposals pane decides as in the prompt, which must be empty for it."""
        if self.pane != "proposals":
            return
        if self.prompt.text.strip():
            self.verdicts.carry(Nothing("the prompt holds words: send or clear them first"))
        else:
            self.verdicts.carry(self.steering.enter(""))

    def action_pane_escape(self) -> None:
        """Escape in a pane: out of narrowing, else discuss, else back to the prompt."""
        panel = self.panes.proposals
        if panel.narrowing:
            panel.narrowing, self.kept = False, None
            self.prompt.focus()
        elif self.pane == "proposals" and self.steering.open is not None:
            self.verdicts.carry(self.steering.escape(self.prompt.text.strip()))
        else:
            self.prompt.focus()
        self.words()

    def on_text_area_changed(self) -> None:
        """The draft changed: keys mean something else, and it is kept."""
        self.cockpit.keep_draft(self.prompt.text)
        self.words()

    def on_descendant_focus(self) -> None:
        """Another pane listens, or is about another row: other keys are valid."""
        if self._painted:
            self.words()

    on_board_row_moved = on_descendant_focus

    # What panes tell
    def on_proposal_panel_narrowed(self, event: ProposalPanel.Narrowed) -> None:
        """The person keeps these items."""
        self.kept = event.items

    def on_band_meter_band_opened(self, event: BandMeter.BandOpened) -> None:
        """List the facts of a band."""
        self.acts.facts(event.name)

    def on_board_row_opened(self, event: Board.RowOpened) -> None:
        """See a task, or follow another session."""
        self.acts.open_row(event.key)

    def on_board_row_peeked(self, event: Board.RowPeeked) -> None:
        """A glance at a task or another session."""
        self.acts.peek(event.key)

    def on_conversation_copied(self, event: Conversation.Copied) -> None:
        """Copy a block to the clipboard of the terminal."""
        self.app.copy_to_clipboard(clean(event.text))
        self.flash("copied")

    def on_tab_chosen(self, event: Tab.Chosen) -> None:
        """A tab was clicked."""
        self.panes.turn_to(event.pane)
        self.changed()

    def _complete(self, kind: str, prefix: str) -> Sequence[CompletionView]:
        return self.cockpit.completions.get("/" if kind == "command" else "@", prefix)

    # Drawing

    def changed(self) -> None:
        """Something is to be drawn; at most thirty times a second it is."""
        if not self._due:
            self._due = True
            self.set_timer(_FRAME_S, self.paint)

    def paint(self) -> None:
        """Draw what the journal says now."""
        self._due = False
        if not self.panes.is_attached:
            return  # the program is ending, and a last timer came after the widgets went
        cockpit = self.cockpit
        views = cockpit.views(self.panes.since(cockpit.followed), self.front)
        self.query_one(HeaderBar).show(views.header)
        if not cockpit.feed.ready:
            return
        self.queue = views.queue
        self._ring(cockpit.pending)
        with self.app.batch_update():
            self.panes.paint(views, cockpit.followed, self._hints(views.queue))
        front = views.queue.front
        if front is None or front.proposal_id != self.front:
            self.front = front.proposal_id if front is not None else ""
            self.kept = None
        self._painted = True
        self.acts.repaint()
        # A proposal counts as visible from the frame in which it has its place.
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        if self.app.screen_stack[-1:] == [self]:  # below a dialog it is "current", too
            seen = self.panes.seen("proposals")
            self.steering.drawn(self.queue.front if seen else None)
        self._look_armed()
        self.words()

    def _ring(self, pending: Sequence[str]) -> None:
        """Tell of what arrived, without taking the focus; a tab turns if nobody is in a pane."""
        fresh = set(pending) - self._known
        if fresh and self._painted:
            self.app.bell()
        idle = self.pane in ("prompt", "")
        if fresh and self.panes.narrow and self.panes.tab == "conversation" and idle:
            self.panes.turn_to("proposals")
            self._turned = True
        elif not pending and self._turned:
            self._turned = False
            if self.panes.narrow and self.panes.tab == "proposals" and idle:
                self.panes.turn_to("conversation")
        self._known = set(pending)

    def _look_armed(self) -> None:
        armed = self.steering.armed
        self.panes.proposals.armed = armed
        if self._arm_timer is not None:
            waiting = self.steering.open is not None and not armed
            (self._arm_timer.resume if waiting else self._arm_timer.pause)()

    def _age(self) -> None:
        if self.queue.front is not None:
            self.changed()

    def _hints(self, queue: QueueView) -> tuple[KeyHintView, ...]:
        second = self.steering.second is not None
        return key_hints.deciding(self.actions, queue, second=second)

    def flash(self, text: str) -> None:
        """Tell something in the prompt's border until the next key."""
        self.note = text
        self.words()

    def words(self) -> None:
        """Say what the keys mean now: footer, prompt and its border."""
        if not (self._painted and self.panes.is_attached):
            return
        moment = self.moment
        self.panes.proposals.hints = self._hints(self.queue)
        self.query_one(KeyBar).show(key_hints.footer(self.actions, moment))
        said = key_hints.prompt(
            moment,
            self.steering,
            self.cockpit.session,
            note=self.note,
            widening=self.asking_policy,
            starting=self.cockpit.starting,
            hidden=self.queue.front is not None and self.steering.front is None,
        )
        if said != self._said:  # each of these draws the prompt anew
            self._said = said
            self.prompt.hint, self.prompt.policy = said.hint, said.below
            self.prompt.border_title = Content(clean(said.above, newlines=False) or "")
