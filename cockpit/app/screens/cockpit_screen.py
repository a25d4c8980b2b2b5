"""The main screen: four panes, the prompt, and the keys.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import TextArea

from cockpit.app import key_hints
from cockpit.app.actions import (
    chain_actions,
    decision_actions,
    packet_actions,
    rewind_actions,
    session_actions,
    task_actions,
)
from cockpit.app.actions.context import ActionContext
from cockpit.app.commands import agent_command, prompt_commands
from cockpit.app.host import Host, LiveScreen
from cockpit.app.key_policy import Approve, DoNothing
from cockpit.app.main_screen import MainScreen
from cockpit.app.prompt_completions import CompletionCache
from cockpit.app.screens.command_output import LOOK_S, CommandOutput
from cockpit.app.screens.first_words import WORDS, FirstWords
from cockpit.app.screens.new_proposals import NewProposals
from cockpit.app.screens.panes import OVER, Panes, Tab
from cockpit.app.state.chain_trees import Trees
from widgets.bands.band_meter import BandMeter
from widgets.conversation.conversation import Conversation
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.word_bar import WordBar
from widgets.prompt.completions import Completions
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.proposals.waiting_rows import WaitingRows
from widgets.text.clean import clean
from widgets.views import CompletionView, KeyHintView, ProposalView, QueueView
from widgets.work.work_pane import WorkPane

_SIGNS = {"command": "/", "file": "@", "task": "T-"}
_AGE_S = 1.0
_AGE_TICKS = 10
_GONE_TICKS = 5
"""Seconds after which it is looked whether the agents that wait are still there."""
_MINUTES_S = 120
"""Seconds from which on an age is read in minutes."""


class CockpitScreen(MainScreen):
    """Draw :class:`Views` and turn keys into steps. Reads no store and decides nothing."""

    host: Host
    AUTO_FOCUS = "#prompt"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("enter", "pane_enter", show=False),
        Binding("escape", "pane_escape", show=False),
        Binding("question_mark", "do('keys')", show=False),
    ]

    def __init__(self, host: Host, draft: str = "") -> None:
        super().__init__(host.engine.store.clock.monotonic, host.session_id)
        self.take_actions(host, host.actions)
        self._draft = draft
        history = host.draft.load_history()
        self._completions = CompletionCache(
            host.engine,
            lambda: self.prompt.post_message(TextArea.Changed(self.prompt)),
            lambda: agent_command.list_agent_words(
                host.session, host.state.agent_of(host.session_id)
            ),
        )
        self.prompt = Prompt(id="prompt", complete=self._complete, entries=history)
        self.prompt.stash = host.draft.load_stash()
        self.panes = Panes(self.prompt)
        self.panel = self.panes.proposals
        self.trees = Trees()
        self.words = FirstWords(host.words_folder)
        self._prompt_text: key_hints.PromptText | None = None
        self._new_proposals = NewProposals(host)
        self._age_ticks = 0
        self._room = 0
        """The room of the proposal in front: 0 its place, 1 the whole height, 2 the place of all panes.

        One more than :attr:`_most_room` is the line of the explained word, too.
        """
        self._room_for = ""
        self._arranged_for = Size()

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield self.panes
        yield WordBar(self.actions.get("dismiss_word").hint)
        yield KeyBar()

    def on_mount(self) -> None:
        if self._draft:
            self.prompt.put(self._draft)
        self.watch_arming()
        self.set_interval(_AGE_S, self._update_age)
        self.set_interval(LOOK_S, CommandOutput(self.host).look)
        self.panes.set_width(self.app.size.width)
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the panes out for the width; the proposal in front gets the room that it needs there."""
        if event.size == self._arranged_for:
            return
        self._arranged_for = event.size
        self.panes.set_width(event.size.width)
        self._room = 0
        self._make_room()  # now: in a frame of its own it would lay all out once more
        self.call_after_refresh(self.paint)

    def _screen_resized(self, size: Size) -> None:
        """Lay out for a new size. A start reports its only size three times: driver, terminal and screen."""
        if size != self._size:
            super()._screen_resized(size)

    # Actions

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
            is_read=front is None or self.key_policy.is_read,
            asking_second_key=self.key_policy.second is not None,
            discussing=self.key_policy.discussing is not None,
            narrowing=self.panel.narrowing,
            session_runs=host.runs.is_running(host.session_id),
            has_session=bool(host.session_id),
            has_agent=host.session is not None and host.session.has_agent,
            has_packet=bool(host.packet_wave_id),
            proposal_count=self.queue.total,
            has_word=bool(self.word),
            has_selection=bool(self.prompt.selected_text) and self.pane == "prompt",
            list_open=any(completions.open for completions in self.query(Completions)),
            task_status=task.status if task is not None else "",
            chain_status=chain.status if chain is not None else "",
            can_attach=bool(chain_actions.session_of_row(host, row_key)),
            can_go_back=host.trail.can_go_back,
            can_fold=pane == "conversation" and self.panes.conversation.can_fold(True),
            can_unfold=pane == "conversation" and self.panes.conversation.can_fold(False),
        ).about(front)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for an action that is not valid now: its key goes on to the focused widget."""
        if not self._painted:
            return True
        if action == "pane_do":
            pane = self.actions.get(parameters[0]).pane
            if ("work" if pane == "tasks" else pane) != self.pane:
                return False
        return super().check_action(action, parameters)

    def act(self, action_id: str) -> None:
        """Run an action of the registry."""
        super().act(action_id)
        self.update_hints()

    # Keys

    def before_key(self, key: str, pressed_at: float | None = None) -> bool:
        """Handle a key before any widget does; return True when it is used up.

        ``pressed_at``: when it went down, in seconds of the system's monotonic clock.
        """
        self.note = ""
        stamp = pressed_at or 0.0
        waited_s = 0.0 if pressed_at is None else self.find_wait(pressed_at)
        if self.wider_policy:
            policy, self.wider_policy = self.wider_policy, ""
            self.key_policy.note_key(waited_s, stamp)
            if key == "ctrl+y":
                session_actions.set_policy(self.host, policy)
            elif key == "shift+tab":
                session_actions.cycle_policy(self.host, policy)
            self.update_hints()
            return key in ("ctrl+y", "shift+tab", "escape")
        step = self.key_policy.handle_second_key(key)
        self.key_policy.note_key(waited_s, stamp)
        self._update_armed()
        if isinstance(step, Approve):
            decision_actions.carry_out(self.host, step)
        self.call_later(self.update_hints)
        return isinstance(step, Approve) or (step is not None and key == "escape")

    def is_handled_late(self, event: events.Key) -> bool:
        """Whether a key is for an action of the screen. The prompt takes text, Enter and Escape at once."""
        is_bound = event.key in self._bindings.key_to_bindings
        in_prompt = event.is_printable or event.key in ("enter", "escape")
        return is_bound and not (in_prompt and self.prompt.has_focus)

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Handle Enter in the prompt. A proposal that is not visible is shown, never decided."""
        if not event.text and self._show_what_waits():
            return
        if event.text:
            self._keep(lambda: self.host.draft.add_to_history(event.text))
        step = self.key_policy.handle_enter(
            event.text,
            is_command=prompt_commands.is_command(event.text),
            stamp=event.pressed_at,
        )
        decision_actions.carry_out(self.host, step, event.text)

    def _show_what_waits(self) -> bool:
        """Show the proposal of this session, or go to one of another; False where none waits unseen."""
        if self.queue.front is not None and self.key_policy.front is None:
            self.panes.turn_to("proposals")
            self.schedule_paint()
            return True
        if self.queue.front is None and self.queue.others:
            decision_actions.turn_queue(self.host, 1)
            return True
        return False

    def on_prompt_stashed(self, event: Prompt.Stashed) -> None:
        """Save the drafts that are put aside."""
        self._keep(lambda: self.host.draft.save_stash(event.drafts))
        self.flash("draft put aside · ^s brings it back" if event.is_put_aside else "draft is back")

    def _keep(self, save: Callable[[], object]) -> None:
        try:
            save()
        except OSError as error:
            self.flash(f"not saved: {error.strerror or error}")

    def on_prompt_escaped(self, event: Prompt.Escaped) -> None:
        """Handle Escape in the prompt."""
        self._handle_escape(event.pressed_at)

    def _handle_escape(self, pressed_at: float | None = None) -> None:
        """End what fills the screen, else take a discussion back, else open one."""
        if self.panes.is_zoomed:
            self.panes.end_zoom()
            self.schedule_paint()
            return
        step = self.key_policy.handle_escape(self.prompt.text.strip(), stamp=pressed_at)
        decision_actions.carry_out(self.host, step)
        if step == DoNothing():
            rewind_actions.note_escape(self.host)

    def on_prompt_help_requested(self) -> None:
        """Show the keys on ``?`` in an empty prompt."""
        self.act("keys")

    def action_pane_enter(self) -> None:
        """Decide with Enter in the proposals pane, as in the prompt, which must be empty; open a block."""
        if self.pane == "conversation":
            self.act("open_block")
        if self.pane != "proposals":
            return
        step = (
            DoNothing("the prompt contains text: send or clear it first")
            if self.prompt.text.strip()
            else self.key_policy.handle_enter("")
        )
        decision_actions.carry_out(self.host, step)

    def action_pane_escape(self) -> None:
        """Stop narrowing, else discuss the proposal or show all panes again, else go back to the prompt."""
        panel = self.panel
        if panel.narrowing:
            panel.narrowing, self.kept_items = False, None
            self.prompt.focus()
        elif self.panes.is_zoomed or (
            self.pane == "proposals" and self.key_policy.open is not None
        ):
            self._handle_escape()
        else:
            self.prompt.focus()
        self.update_hints()

    def on_text_area_changed(self) -> None:
        """Save the draft; other actions are valid."""
        self.host.keep_draft(self.prompt.full_text)
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

    def on_waiting_rows_chosen(self, event: WaitingRows.Chosen) -> None:
        """Go to the proposal that was clicked, and to its session."""
        decision_actions.go_to(self.host, event.proposal_id)

    def on_work_pane_row_opened(self, event: WorkPane.RowOpened) -> None:
        """Follow a session or show a task."""
        chain_actions.open_row(self.host, event.key)

    def on_work_pane_row_peeked(self, event: WorkPane.RowPeeked) -> None:
        """Peek at a session or a task."""
        chain_actions.peek(self.host, event.key)

    def on_conversation_opened(self) -> None:
        """Open the block that was clicked twice."""
        self.act("open_block")

    def on_conversation_folded(self) -> None:
        """Say what the arrows do now."""
        self.update_hints()

    def on_conversation_copied(self, event: Conversation.Copied) -> None:
        """Copy a block to the clipboard of the terminal."""
        self.app.copy_to_clipboard(clean(event.text))
        self.flash("copied")

    def on_tab_chosen(self, event: Tab.Chosen) -> None:
        """Turn to the clicked tab."""
        self._new_proposals.note_tab_chosen()
        self.panes.show_only(event.pane)
        self.schedule_paint()

    def on_panes_title_clicked(self, event: Panes.TitleClicked) -> None:
        """Give the pane the whole screen, or all panes their places."""
        self.act(event.pane)

    def _complete(self, kind: str, prefix: str) -> Sequence[CompletionView]:
        return self._completions.get(_SIGNS[kind], prefix)

    # Drawing

    def paint(self) -> None:
        """Draw the current state of the journal."""
        self.begin_paint()
        if not self.panes.is_attached:
            return  # the program ends, and a last timer came after the widgets went
        host = self.host
        since = self.panes.drawn_revision(host.session_id)
        views = host.views(since, self.front_id, self.is_alone)
        self.query_one(HeaderBar).show(views.header)
        self.key_policy.note_session(host.session_id, views.queue.front)
        if not host.feed.ready:
            return
        self.queue = views.queue
        self._new_proposals.announce(host.pending, rings=self._painted)
        self._make_room()
        with self.app.batch_update():
            self.panes.paint(views, host.session_id, self._proposal_hints(views.queue))
            is_crowded = views.queue.front is not None and self._room > self._most_room
            word = "" if is_crowded else self.words.find(views)
            self.query_one(WordBar).show(word, WORDS.get(word, ""))
        front = views.queue.front
        if front is None or front.proposal_id != self.front_id:
            self.front_id = front.proposal_id if front is not None else ""
            self.kept_items, self.is_alone = None, False
        self._painted = True
        chain_actions.follow_next_role(host)
        for screen in self.app.screen_stack:
            if isinstance(screen, LiveScreen):
                screen.paint()
        # A proposal counts as visible from the frame in which it has its place.
        self.call_after_refresh(self._note_room_drawn, self._room)

    @property
    def drawn_front(self) -> ProposalView | None:
        return self.queue.front if self.panes.is_visible("proposals") else None

    def _note_room_drawn(self, room: int) -> None:
        """Note a drawn frame; ``room`` is how much the proposal had in it."""
        self._note_drawn()
        is_seen = self.is_showing and self.is_on_top and self.drawn_front is not None
        # A frame from before it got more room says nothing about that.
        has_its_room = room == self._room and self.panes.has_room
        if is_seen and has_its_room and self._needs_room:
            self._room += 1

    def on_frame_noted(self) -> None:
        """Draw again where the proposal needs more room."""
        if self._needs_room:
            self.schedule_paint()

    def _make_room(self) -> None:
        """Give the proposal of this session the room that it needs; no pane in use is taken away."""
        front = self.queue.front
        if front is None:
            self.panes.set_room(over=False, tall=False)
            return
        if front.drawn != self._room_for:
            self._room_for, self._room = front.drawn, 0
        if self._most_room and front.diffs and self.app.size.width < OVER:
            self._room = max(2, self._room)
        room = min(self._room, self._most_room)
        self.panes.set_room(over=room > 1, tall=room > 0)

    @property
    def _most_room(self) -> int:
        """The most room that may be taken now: no pane with the focus."""
        if self.pane in ("bands", "work"):
            return 0
        is_small = self.app.size.width < OVER
        return 2 if is_small and self.pane in ("prompt", "proposals", "") else 1

    @property
    def _needs_room(self) -> bool:
        return self._room <= self._most_room and self.panel.is_cut_off

    def _update_age(self) -> None:
        """Draw how old the proposal in front is, each second while seconds count, and when tasks retry."""
        if self.host.feed.state.chains.has_retries:
            self.schedule_paint()
        front = self.queue.front
        if front is None:
            return
        self._age_ticks += 1
        if front.kind == "permission" and self._age_ticks % _GONE_TICKS == 0:
            self.host.request(self.host.engine.withdraw_abandoned)
        seconds_count = min(front.age_s, front.left_s if front.left_s is not None else _MINUTES_S)
        is_due = seconds_count < _MINUTES_S or self._age_ticks % _AGE_TICKS == 0
        covered = self.app.screen is not self and not isinstance(self.app.screen, ModalScreen)
        if is_due and not covered:
            self.schedule_paint()

    def _proposal_hints(self, queue: QueueView) -> tuple[KeyHintView, ...]:
        policy = self.key_policy
        return key_hints.proposal_hints(
            self.actions.actions,
            queue,
            pane=self.pane,
            has_text=bool(self.prompt.text.strip()),
            second=policy.second is not None,
            discussing=policy.discussing is not None,
            is_read=policy.is_read or policy.front is None,
        )

    def update_hints(self) -> None:
        """Show the current meaning of the keys: footer, prompt and its border."""
        if not (self._painted and self.panes.is_attached):
            return
        context = self.context
        self.panel.hints = self._proposal_hints(self.queue)
        text = key_hints.prompt_text(
            context,
            self.key_policy,
            self.host.session,
            note=self.note,
            wider_policy=self.wider_policy,
            starting=self.host.is_starting,
            queue=self.queue,
            review="" if self.host.welcome.agent is not None else self.host.welcome.review or "",
        )
        hints = key_hints.footer_hints(self.actions.actions, context, text.on_enter)
        self.query_one(KeyBar).show(self.panel.list_unsaid(hints))
        if text != self._prompt_text:  # each of these draws the prompt again
            self._prompt_text = text
            self.prompt.hint, self.prompt.policy = text.placeholder, text.below
            self.prompt.border_title = Content(clean(text.above, newlines=False) or "")
