"""The main screen: four panes, the prompt, and the keys.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from cockpit.app import key_hints
from cockpit.app.actions import (
    chain_actions,
    decision_actions,
    packet_actions,
    prompt_commands,
    session_actions,
    task_actions,
)
from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext, Pane
from cockpit.app.actions.screen_actions import ScreenActions, bindings
from cockpit.app.host import Host, LiveScreen
from cockpit.app.key_policy import Approve, DoNothing, KeyPolicy
from cockpit.app.projection.chain_trees import Trees
from cockpit.app.screens.panes import NARROW, PANES, Panes, Tab
from widgets.bands.band_meter import BandMeter
from widgets.conversation.conversation import Conversation
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.text.clean import clean
from widgets.views import CompletionView, KeyHintView, QueueView
from widgets.work.work_pane import WorkPane

if TYPE_CHECKING:
    from cockpit.app.journal_feed import JournalFeed
    from cockpit.app.projection.fold import Views
    from cockpit.app.prompt_completions import CompletionCache

_FRAME_S = 1 / 30
_CHECK_ARMED_S = 0.1
_LONGEST_WAIT_S = 600.0
_AGE_S = 1.0
_AGE_TICKS = 10
_GONE_TICKS = 5
"""Seconds after which it is looked whether the agents that wait are still there."""
_MINUTES_S = 120
"""Seconds from which on an age is read in minutes."""


class MainHost(Host, Protocol):
    """The application as the main screen uses it."""

    feed: JournalFeed
    completions: CompletionCache
    is_starting: bool

    def views(self, since: int, front: str) -> Views: ...

    def keep_draft(self, text: str) -> None: ...


class CockpitScreen(Screen[None]):
    """Draw :class:`Views` and turn keys into steps. Reads no store and decides nothing."""

    AUTO_FOCUS = "#prompt"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("enter", "pane_enter", show=False),
        Binding("escape", "pane_escape", show=False),
    ]

    def __init__(self, host: MainHost, draft: str = "") -> None:
        super().__init__()
        self.host = host
        self.key_policy = KeyPolicy(host.engine.store.clock.monotonic)
        self._actions = ScreenActions(host.actions)
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(bindings(host.actions))])
        self._draft = draft
        self.prompt = Prompt(id="prompt", complete=self._complete)
        self.panes = Panes(self.prompt)
        self.trees = Trees()
        self.front_id = ""
        self.queue = QueueView()
        self.kept_items: tuple[str, ...] | None = None
        self.wider_policy = ""
        self._note = ""
        self._prompt_text: key_hints.PromptText | None = None
        self._seen_proposals: set[str] = set()
        self._paint_due = self._painted = self._turned_to_proposals = False
        self._painted_at = float("-inf")
        self._arm_timer: Timer | None = None
        self._age_ticks = 0

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield self.panes
        yield KeyBar()

    def on_mount(self) -> None:
        if self._draft:
            self.prompt.put(self._draft)
        self._arm_timer = self.set_interval(_CHECK_ARMED_S, self._update_armed, pause=True)
        self.set_interval(_AGE_S, self._update_age)
        self.panes.set_narrow(self.app.size.width < NARROW)
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        """Switch between panes and tabs."""
        self.panes.set_narrow(event.size.width < NARROW)
        self.call_after_refresh(self.paint)

    def _screen_resized(self, size: Size) -> None:
        """Lay out for a new size. A start reports its only size three times: driver, terminal and screen."""
        if size != self._size:
            super()._screen_resized(size)

    def on_screen_resume(self) -> None:
        """Draw again after a dialog: the time until a proposal is armed starts now."""
        if self._painted:
            self.schedule_paint()

    def on_screen_suspend(self) -> None:
        """Note that a dialog covers the proposal."""
        self.key_policy.note_covered()

    # Actions

    @property
    def pane(self) -> Pane:
        """The pane that has the focus."""
        focused = self.focused
        for name in PANES:
            if focused is self.panes.pane(name):
                return name
        return "prompt" if focused is self.prompt else ""

    @property
    def context(self) -> ActionContext:
        """The state on which the validity of actions depends, now."""
        host, front = self.host, self.key_policy.open
        chain, task = chain_actions.chain_at_cursor(host), task_actions.task_at_cursor(host)
        row_key = chain_actions.row_at_cursor(host)
        pane = self.pane
        return ActionContext(
            pane=pane,
            prompt_empty=not self.prompt.text.strip(),
            prompt_command=prompt_commands.is_command(self.prompt.text),
            proposal_kind=front.kind if front is not None else "",
            is_question=front is not None and bool(front.questions),
            can_edit=front is not None and front.editable,
            can_trust=front is not None and bool(front.rule),
            has_diff=front is not None and bool(front.diffs),
            asking_second_key=self.key_policy.second is not None,
            discussing=self.key_policy.discussing is not None,
            narrowing=self.panes.proposals.narrowing,
            session_runs=host.runs.is_running(host.session_id),
            has_session=bool(host.session_id),
            has_agent=host.session is not None and host.session.has_agent,
            has_packet=bool(host.packet_wave_id),
            proposal_count=self.queue.total,
            has_selection=bool(self.prompt.selected_text) and self.pane == "prompt",
            list_open=any(completions.open for completions in self.query(Completions)),
            task_status=task.status if task is not None else "",
            chain_status=chain.status if chain is not None else "",
            can_attach=bool(chain_actions.session_of_row(host, row_key)),
            can_go_back=host.trail.can_go_back,
            can_fold=pane == "conversation" and self.panes.conversation.can_fold(True),
            can_unfold=pane == "conversation" and self.panes.conversation.can_fold(False),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for an action that is not valid now: its key goes on to the focused widget."""
        if action in ("do", "pane_do") and self._painted:
            registered = self._actions.get(parameters[0])
            pane = "work" if registered.pane == "tasks" else registered.pane
            if action == "pane_do" and pane != self.pane:
                return False
            return registered.when(self.context)
        return True

    def valid_actions(self) -> Iterable[Action[Host]]:
        """Return the actions that the palette lists now."""
        return self._actions.valid(self.context)

    def act(self, action_id: str) -> None:
        """Run an action of the registry."""
        self._actions.run(action_id, self.host)
        self.update_hints()

    action_do = action_pane_do = act

    # Keys

    def before_key(self, key: str, pressed_at: float | None = None) -> bool:
        """Handle a key before any widget does; return True when it is used up.

        ``pressed_at``: when it went down, in seconds of the system's monotonic clock.
        """
        self._note = ""
        waited_s = 0.0
        if pressed_at is not None:
            waited_s = self.host.engine.store.clock.monotonic() - pressed_at
            if not 0.0 <= waited_s <= _LONGEST_WAIT_S:
                waited_s = (
                    0.0  # it is another clock: that of a test, or Windows' performance counter
                )
        if self.wider_policy:
            policy, self.wider_policy = self.wider_policy, ""
            self.key_policy.note_key(key, waited_s)
            if key == "ctrl+y":
                session_actions.set_policy(self.host, policy)
            elif key == "shift+tab":
                session_actions.cycle_policy(self.host, policy)
            self.update_hints()
            return key in ("ctrl+y", "shift+tab", "escape")
        step = self.key_policy.handle_second_key(key)
        self.key_policy.note_key(key, waited_s)
        self._update_armed()
        if isinstance(step, Approve):
            decision_actions.carry_out(self.host, step)
        self.call_later(self.update_hints)
        return isinstance(step, Approve) or (step is not None and key == "escape")

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Handle Enter in the prompt. A proposal that is not visible is shown, never decided."""
        if not event.text and self.queue.front is not None and self.key_policy.front is None:
            self.panes.turn_to("proposals")
            self.schedule_paint()
            return
        # A command to the screen is no reply to the proposal in front.
        starts_session = not self.host.session_id or prompt_commands.is_command(event.text)
        step = self.key_policy.handle_enter(event.text, starts_session=starts_session)
        decision_actions.carry_out(self.host, step)

    def on_prompt_escaped(self) -> None:
        """Handle Escape in the prompt."""
        self._handle_escape()

    def _handle_escape(self) -> None:
        step = self.key_policy.handle_escape(self.prompt.text.strip())
        decision_actions.carry_out(self.host, step)

    def on_prompt_help_requested(self) -> None:
        """Open the help screen on ``?`` in an empty prompt."""
        self.act("help")

    def action_pane_enter(self) -> None:
        """Decide with Enter in the proposals pane, as in the prompt, which must be empty."""
        if self.pane != "proposals":
            return
        step = (
            DoNothing("the prompt contains text: send or clear it first")
            if self.prompt.text.strip()
            else self.key_policy.handle_enter("")
        )
        decision_actions.carry_out(self.host, step)

    def action_pane_escape(self) -> None:
        """Stop narrowing, else discuss the proposal, else go back to the prompt."""
        panel = self.panes.proposals
        if panel.narrowing:
            panel.narrowing, self.kept_items = False, None
            self.prompt.focus()
        elif self.pane == "proposals" and self.key_policy.open is not None:
            self._handle_escape()
        else:
            self.prompt.focus()
        self.update_hints()

    def on_text_area_changed(self) -> None:
        """Save the draft; other actions are valid."""
        self.host.keep_draft(self.prompt.text)
        self.update_hints()

    def on_descendant_focus(self) -> None:
        """Update the hints: another pane or row means other valid actions."""
        if self._painted:
            self.update_hints()

    on_work_pane_row_moved = on_descendant_focus

    # Messages of panes

    def on_proposal_panel_narrowed(self, event: ProposalPanel.Narrowed) -> None:
        """Keep these items."""
        self.kept_items = event.items

    def on_band_meter_band_opened(self, event: BandMeter.BandOpened) -> None:
        """List the facts of a band."""
        packet_actions.show_band_facts(self.host, event.name)

    def on_work_pane_row_opened(self, event: WorkPane.RowOpened) -> None:
        """Follow a session or show a task."""
        chain_actions.open_row(self.host, event.key)

    def on_work_pane_row_peeked(self, event: WorkPane.RowPeeked) -> None:
        """Peek at a session or a task."""
        chain_actions.peek(self.host, event.key)

    def on_conversation_folded(self) -> None:
        """Say what the arrows do now."""
        self.update_hints()

    def on_conversation_copied(self, event: Conversation.Copied) -> None:
        """Copy a block to the clipboard of the terminal."""
        self.app.copy_to_clipboard(clean(event.text))
        self.flash("copied")

    def on_tab_chosen(self, event: Tab.Chosen) -> None:
        """Turn to the clicked tab."""
        self.panes.turn_to(event.pane)
        self.schedule_paint()

    def _complete(self, kind: str, prefix: str) -> Sequence[CompletionView]:
        return self.host.completions.get("/" if kind == "command" else "@", prefix)

    # Drawing

    def schedule_paint(self) -> None:
        """Draw at once after a pause, and at most thirty times a second."""
        if self._paint_due:
            return
        self._paint_due = True
        rest = self._painted_at + _FRAME_S - self.host.engine.store.clock.monotonic()
        if rest > 0:
            self.set_timer(rest, self.paint)
        else:
            self.call_later(self.paint)

    def paint(self) -> None:
        """Draw the current state of the journal."""
        self._paint_due = False
        self._painted_at = self.host.engine.store.clock.monotonic()
        if not self.panes.is_attached:
            return  # the program ends, and a last timer came after the widgets went
        host = self.host
        views = host.views(self.panes.drawn_revision(host.session_id), self.front_id)
        self.query_one(HeaderBar).show(views.header)
        if not host.feed.ready:
            return
        self.queue = views.queue
        self._announce(host.pending)
        with self.app.batch_update():
            self.panes.paint(views, host.session_id, self._proposal_hints(views.queue))
        front = views.queue.front
        if front is None or front.proposal_id != self.front_id:
            self.front_id = front.proposal_id if front is not None else ""
            self.kept_items = None
        self._painted = True
        chain_actions.follow_next_role(host)
        for screen in self.app.screen_stack:
            if isinstance(screen, LiveScreen):
                screen.paint()
        # A proposal counts as visible from the frame in which it has its place.
        self.call_after_refresh(self._note_drawn)

    def _note_drawn(self) -> None:
        if self.app.screen_stack[-1:] == [self]:  # a screen below a dialog is "current", too
            visible = self.panes.is_visible("proposals")
            self.key_policy.note_drawn(self.queue.front if visible else None)
        self._update_armed()
        self.update_hints()

    def _announce(self, pending: Sequence[str]) -> None:
        """Ring for new proposals without taking the focus; turn the tab while no pane is in use."""
        new = set(pending) - self._seen_proposals
        if new and self._painted:
            self.app.bell()
        idle = self.pane in ("prompt", "")
        if new and self.panes.narrow and self.panes.tab == "conversation" and idle:
            self.panes.turn_to("proposals")
            self._turned_to_proposals = True
        elif not pending and self._turned_to_proposals:
            self._turned_to_proposals = False
            if self.panes.narrow and self.panes.tab == "proposals" and idle:
                self.panes.turn_to("conversation")
        self._seen_proposals = set(pending)

    def _update_armed(self) -> None:
        armed = self.key_policy.is_armed
        self.panes.proposals.armed = armed
        if self._arm_timer is not None:
            waiting = self.key_policy.open is not None and not armed
            (self._arm_timer.resume if waiting else self._arm_timer.pause)()

    def _update_age(self) -> None:
        """Draw the age of the proposal in front and its time left: each second while seconds count.

        Likewise the time until a worker or a task starts again.
        """
        if self.host.feed.state.chains.has_retries:
            self.schedule_paint()
        front = self.queue.front
        if front is None:
            return
        self._age_ticks += 1
        if front.kind == "permission" and self._age_ticks % _GONE_TICKS == 0:
            self.host.request(self.host.engine.withdraw_abandoned)
        seconds_count = min(front.age_s, front.left_s if front.left_s is not None else _MINUTES_S)
        if seconds_count < _MINUTES_S or self._age_ticks % _AGE_TICKS == 0:
            self.schedule_paint()

    def _proposal_hints(self, queue: QueueView) -> tuple[KeyHintView, ...]:
        second = self.key_policy.second is not None
        return key_hints.proposal_hints(self._actions.actions, queue, second=second)

    def flash(self, text: str) -> None:
        """Show ``text`` in the border of the prompt until the next key."""
        self._note = text
        self.update_hints()

    def update_hints(self) -> None:
        """Show the current meaning of the keys: footer, prompt and its border."""
        if not (self._painted and self.panes.is_attached):
            return
        context = self.context
        self.panes.proposals.hints = self._proposal_hints(self.queue)
        self.query_one(KeyBar).show(key_hints.footer_hints(self._actions.actions, context))
        text = key_hints.prompt_text(
            context,
            self.key_policy,
            self.host.session,
            note=self._note,
            wider_policy=self.wider_policy,
            starting=self.host.is_starting,
            hidden=self.queue.front is not None and self.key_policy.front is None,
        )
        if text != self._prompt_text:  # each of these draws the prompt again
            self._prompt_text = text
            self.prompt.hint, self.prompt.policy = text.placeholder, text.below
            self.prompt.border_title = Content(clean(text.above, newlines=False) or "")
