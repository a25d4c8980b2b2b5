"""Every project on one screen, and the one queue of what waits in them.

Enter approves and Escape discusses the proposal that was armed when the key went down, as on the screen of
its project (:mod:`cockpit.app.key_policy`). Specified in ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container

from cockpit.app.all_projects.jump import Jump
from cockpit.app.all_projects.one_queue import (
    OneQueue,
    Waiting,
    order_projects,
    project_rows,
    sum_up,
)
from cockpit.app.all_projects.own_keys import footer_hints, proposal_hints
from cockpit.app.all_projects.owner_engine import open_owner
from cockpit.app.deciding_screen import DecidingScreen
from cockpit.app.dialogs.key_menu import offer_footer
from cockpit.app.dialogs.small_dialogs import Ask, Warn
from cockpit.app.key_policy import (
    Approve,
    AskSecondKey,
    Discuss,
    DoNothing,
    OpenDiscussion,
    ReadOn,
    Step,
)
from cockpit.core.clock import Clock, SystemClock
from cockpit.core.errors import CockpitError
from cockpit.loop.all_projects.follow_projects import ProjectsFeed
from widgets.frame.footer import KeyBar
from widgets.frame.headline import Headline
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.proposals.waiting_rows import WaitingRows
from widgets.text.style_names import DIM, WARN, Part
from widgets.views import KeyHintView, ProposalView, QueueView
from widgets.work.two_line_list import TwoLineList

if TYPE_CHECKING:
    from cockpit.app.terminal.terminal_app import TerminalApp
    from cockpit.loop.runtime import Runtime

_AGE_S = 1.0
_WIDE = 120
"""Columns from which the projects are drawn next to the queue."""
_NAME_CELLS = 24
_QUESTION = "it asks questions: o opens its project, where you answer"


class AllProjectsScreen(DecidingScreen):
    """The projects of this user, and the proposals of all of them.

    ``on_jump`` gets the project that the user goes to. ``engines`` are those that this process has open, by
    the key of their project; other stores are opened for each decision. ``on_request`` is told of each
    proposal that came while the screen is open, ``on_decided`` of each session of ``engines`` whose agent
    goes on with a decision. With ``is_only`` there is no screen below this one.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012 -- Textual's way
    DEFAULT_CSS = """
    AllProjectsScreen { layout: vertical; }
    AllProjectsScreen #all-body { height: 1fr; layout: vertical; }
    AllProjectsScreen #all-projects { height: 1fr; width: 1fr; }
    AllProjectsScreen #all-queue { height: 4; width: 1fr; }
    AllProjectsScreen #all-body.-pending #all-projects { height: 6; }
    AllProjectsScreen #all-body.-pending #all-queue { height: 1fr; }
    AllProjectsScreen #all-body.-listing #all-projects { height: 1fr; }
    AllProjectsScreen #all-body.-listing #all-queue { height: 10; }
    AllProjectsScreen.-wide #all-body { layout: horizontal; }
    AllProjectsScreen.-wide #all-body > #all-projects { height: 1fr; width: 11fr; }
    AllProjectsScreen.-wide #all-body > #all-queue { height: 1fr; width: 13fr; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("enter", "decide", show=False),
        Binding("escape", "discuss", show=False),
        Binding("q,ctrl+d", "leave", show=False),
        Binding("tab,shift+tab", "turn_focus", show=False),
        Binding("right_square_bracket,alt+n,ctrl+down", "turn(1)", show=False),
        Binding("left_square_bracket,alt+p,ctrl+up", "turn(-1)", show=False),
        Binding("alt+q", "show_queue", show=False),
        Binding("x,ctrl+x", "reject", show=False),
        Binding("v", "whole_change", show=False),
        Binding("w", "go_to_waiting", show=False),
        Binding("o", "open", show=False),
        Binding("s", "sort", show=False),
    ]

    def __init__(
        self,
        on_jump: Callable[[Jump], object],
        *,
        engines: Mapping[str, Runtime] | None = None,
        clock: Clock | None = None,
        on_request: Callable[[Waiting], object] | None = None,
        on_decided: Callable[[str], object] | None = None,
        is_only: bool = False,
    ) -> None:
        self._clock = clock or SystemClock()
        super().__init__(self._clock.monotonic)
        self._on_jump, self._on_request, self._is_only = on_jump, on_request, is_only
        self._engines, self._on_decided = engines or {}, on_decided
        self.feed = ProjectsFeed(self.schedule_paint)
        self.front_id = ""
        """The proposal in front, by its key among those of all projects."""
        self._drawn_queue = QueueView()
        self._queue = OneQueue()
        self.headline, self.bar = Headline(), KeyBar()
        self.projects = TwoLineList(
            empty="Reading…", click_opens=False, name_cells=_NAME_CELLS, id="all-projects"
        )
        self.panel = ProposalPanel(id="all-queue")
        self._body = Container(id="all-body")
        self._seen: set[str] | None = None
        """The proposals that were announced; None before every project was read."""
        self._order: Sequence[str] = ()
        """The keys of the projects as they are listed: no row moves while the user looks."""
        self._note = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_begun = self._was_used = False

    def compose(self) -> ComposeResult:
        yield self.headline
        with self._body:
            yield self.projects
            yield self.panel
        yield self.bar

    def on_mount(self) -> None:
        self.watch_arming()
        self.set_interval(_AGE_S, self.schedule_paint)
        self.projects.focus()
        self.paint()
        self._run(self.feed.run())

    async def on_unmount(self) -> None:
        """End what runs: a decision that began is finished first."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            if task.get_name() != "decision":
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def terminal(self) -> TerminalApp[Any]:
        """The application, which has the terminal."""
        return cast("TerminalApp[Any]", self.app)

    @property
    def drawn_front(self) -> ProposalView | None:
        return self._drawn_queue.front if self.panel.content_size.height > 0 else None

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Note when a key went down, before any action runs: that decides whether a proposal was armed."""
        self._note, self._was_used = "", True
        step = self.key_policy.handle_second_key(event.key)
        self.key_policy.note_key(self.find_wait(event.time), event.time)
        self._update_armed()
        if isinstance(step, Approve):
            self._carry_out(step)
        if isinstance(step, Approve) or (step is not None and event.key == "escape"):
            event.stop()
        self.call_later(self.update_hints)

    @property
    def _is_deciding(self) -> bool:
        """Whether Enter and Escape decide: they do in the queue alone."""
        return self.focused is self.panel

    def action_decide(self) -> None:
        """Approve what was armed as Enter went down, or read on."""
        if self._is_deciding:
            self._carry_out(self.key_policy.handle_enter(""))

    def action_discuss(self) -> None:
        """Discuss the proposal in front; without one, leave."""
        if self._is_deciding and self.key_policy.front is not None:
            self._carry_out(self.key_policy.handle_escape(""))
        elif not self._is_only:
            self.action_leave()

    def action_leave(self) -> None:
        """Close this screen, and the program where it is the only one."""
        if self._is_only:
            self.app.exit(0)
        else:
            self.dismiss(None)

    def action_turn_focus(self) -> None:
        """Go to the projects, or to the queue."""
        (self.projects if self._is_deciding else self.panel).focus()
        self.update_hints()

    def action_show_queue(self) -> None:
        """Go to the queue."""
        self.panel.focus()
        self.update_hints()

    def action_turn(self, step: int) -> None:
        """Put the next or the previous proposal in front."""
        order = list(self._queue.waiting)
        if order:
            place = order.index(self.front_id) if self.front_id in order else 0
            self._put_in_front(order[(place + step) % len(order)])

    def action_sort(self) -> None:
        """List the projects where something waits first, as they are now."""
        self._order = order_projects(self.feed.states)
        self.paint()

    def action_go_to_waiting(self) -> None:
        """Put the oldest proposal of the project under the cursor in front."""
        row = self.projects.at_cursor
        for key, waiting in self._queue.waiting.items():
            if row is not None and waiting.state.project.key == row.key:
                self._put_in_front(key)
                return

    def _put_in_front(self, key: str) -> None:
        self.front_id = key
        self.panel.focus()
        self.paint()

    def action_reject(self) -> None:
        """Ask for a reason, then reject the proposal in front."""
        front = self.key_policy.open
        if front is None or not self._is_deciding:
            return

        def send(reason: str | None) -> None:
            if reason is not None:
                self._decide(
                    front,
                    lambda engine, name: engine.reject(
                        name, shown_digest=front.digest, reason=reason
                    ),
                )

        text = f"{front.title}\nThe agent reads the reason and looks for another way."
        self.app.push_screen(Ask("Reject: why?", text), send)

    def action_whole_change(self) -> None:
        """Show every line of the diffs of the proposal in front."""
        from cockpit.app.dialogs.whole_change import WholeChange

        front = self.key_policy.open
        if self._is_deciding and front is not None and front.diffs:
            self.app.push_screen(WholeChange(front))

    def action_open(self) -> None:
        """Go to the project of the proposal in front, or of the row under the cursor."""
        waiting = self._queue.waiting.get(self.front_id)
        row = self.projects.at_cursor
        if self._is_deciding and waiting is not None:
            project = waiting.state.project
            session = waiting.proposal.session_id
            resumes = bool(session) and not waiting.asker.is_driven and not waiting.asker.agent
            self._on_jump(Jump(project.home, project.key, session, resumes))
        elif row is not None:
            self._open_row(row.key)

    def on_waiting_rows_chosen(self, event: WaitingRows.Chosen) -> None:
        """Put the proposal that was clicked in front."""
        event.stop()
        self._put_in_front(event.proposal_id)

    def on_two_line_list_opened(self, event: TwoLineList.Opened) -> None:
        """Go to a project."""
        event.stop()
        self._open_row(event.key)

    def _open_row(self, key: str) -> None:
        state = self.feed.states.get(key)
        if state is None:
            return
        if state.condition in ("open", "empty", "older"):
            self._on_jump(Jump(state.project.home, key))
        else:
            self.app.push_screen(Warn(f"{state.project.name} is {state.condition}", state.problem))

    def on_two_line_list_moved(self, event: TwoLineList.Moved) -> None:
        """Show the keys of another row."""
        event.stop()
        self.update_hints()

    def on_descendant_focus(self) -> None:
        """Show other keys, and give the room to what is used."""
        self._give_room()
        self.update_hints()

    def _give_room(self) -> None:
        """On a small screen, give the room to the proposal in front, or to the projects in use."""
        pending = self._drawn_queue.front is not None
        is_listing = pending and not self._is_deciding
        self._body.update_classes({"-pending": pending and not is_listing, "-listing": is_listing})

    # Decisions

    def _carry_out(self, step: Step) -> None:
        match step:
            case Approve(proposal) if proposal.questions:
                self._flash(_QUESTION)
            case Approve(proposal):
                self._decide(
                    proposal,
                    lambda engine, name: engine.approve(name, shown_digest=proposal.digest),
                )
            case OpenDiscussion(proposal):
                self._ask_for_words(proposal)
            case Discuss(proposal, text):
                self._discuss(proposal, text)
            case ReadOn():
                self.panel.read_on()
            case AskSecondKey(proposal) if proposal.questions:
                self.key_policy.second = None
                self._flash(_QUESTION)
            case DoNothing(reason):
                self._flash(reason)
        self.update_hints()

    def _ask_for_words(self, proposal: ProposalView, text: str = "") -> None:
        """Ask for the words of a discussion; those of a permission are why it is refused."""
        is_permission = proposal.kind == "permission"

        def send(words: str | None) -> None:
            self.key_policy.discussing = None
            if words is None or not (words or is_permission):
                return
            self._discuss(proposal, words)

        title = "No: why?" if is_permission else "Discuss: your words to the agent"
        self.app.push_screen(Ask(title, proposal.title, value=text), send)

    def _discuss(self, proposal: ProposalView, text: str) -> None:
        async def send(engine: Runtime, name: str) -> None:
            if proposal.kind == "permission":
                await engine.reject(name, shown_digest=proposal.digest, reason=text)
            else:
                await engine.discuss(name, shown_digest=proposal.digest, words=text)

        self._decide(proposal, send, text=text)

    def _decide(
        self,
        proposal: ProposalView,
        call: Callable[[Runtime, str], Awaitable[object]],
        *,
        text: str = "",
    ) -> None:
        """Send a decision to the store of the proposal's owner; on an error the proposal is open again."""
        waiting = self._queue.waiting.get(proposal.proposal_id)
        if waiting is None or waiting.proposal.shown_digest != proposal.digest:
            self._flash("it was decided or changed meanwhile")
            return
        self.key_policy.lock(proposal)

        async def decide() -> None:
            owner = waiting.state.project
            try:
                async with self._open_engine(waiting) as engine:
                    await call(engine, waiting.proposal.proposal_id)
            except (CockpitError, sqlite3.Error, OSError) as error:
                self.key_policy.unlock(proposal)
                self.terminal.show_error(f"{owner.name}: {error}")
                if text and self.is_attached:
                    self.app.push_screen(Warn("Your words were not sent", text))
            else:
                self._report(waiting)
            self.feed.refresh(owner.key)
            self.schedule_paint()

        self._run(decide(), name="decision")
        self.update_hints()

    def _open_engine(self, waiting: Waiting) -> AbstractAsyncContextManager[Runtime]:
        engine = self._engines.get(waiting.state.project.key)
        return nullcontext(engine) if engine is not None else open_owner(waiting.state.project)

    def _report(self, waiting: Waiting) -> None:
        """Let the session go on; say where no process drives it."""
        session_id = waiting.proposal.session_id
        if not session_id or waiting.proposal.kind == "permission" or waiting.asker.agent:
            return  # the process that waits for the answer goes on by itself
        if waiting.state.project.key in self._engines:
            if self._on_decided is not None:
                self._on_decided(session_id)
        elif not waiting.asker.is_driven:
            self.terminal.show_notice(
                f"Decided. No process drives {session_id} now: open {waiting.state.project.name}"
                " to resume it."
            )

    # Drawing

    def paint(self) -> None:
        """Draw the current state of all projects."""
        self.begin_paint()
        if not self.panel.is_attached:
            return
        states = self.feed.states
        self._queue.fold(states)
        if self.front_id not in self._queue.waiting or not (self._has_begun or self._was_used):
            self.front_id = next(iter(self._queue.waiting), "")
        queue = self._drawn_queue = self._queue.view(self._clock.now(), self.front_id)
        front = queue.front
        self.key_policy.note_session(self.front_id, front)
        self._announce()
        with self.app.batch_update():
            self.headline.show("All projects", self._describe(), queue.total)
            self.projects.empty = (
                "No projects yet. They appear here when you use cockpit in them."
                if self.feed.is_read
                else "Reading…"
            )
            if not (self._has_begun or self._was_used):
                self._order = order_projects(states)
            if (rows := project_rows(states, self._order)) != list(self.projects.rows):
                self.projects.show(rows)  # which draws all of them again
            if not (self._has_begun or self._was_used):
                self.projects.cursor = 0  # rows come in the order in which they are read
            self.panel.show(queue, self._proposal_hints(queue))
            self.panel.set_class(front is not None, "-pending")
            self._give_room()
        if not self._has_begun and self.feed.is_read:
            self._has_begun = True  # as the screen opens: later the focus is the user's
            if front is not None and self.app.screen is self and not self._was_used:
                self.panel.focus()
        self._painted = True
        self.update_hints()
        self.call_after_refresh(self._note_drawn)

    def _describe(self) -> Sequence[Part]:
        return [(sum_up(self.feed.states), DIM)]

    def _announce(self) -> None:
        """Ring once for each new proposal, without taking the focus."""
        pending = set(self._queue.waiting)
        total = f" · {len(pending)} waiting" if pending else ""
        new = pending - self._seen if self._seen is not None else set()
        note = ""
        if new:
            for key in sorted(new):
                waiting = self._queue.waiting[key]
                note = f"{waiting.state.project.name}: {waiting.proposal.title} waits for you"
                if self._on_request is not None:
                    self._on_request(waiting)
        self.terminal.announce(f"cockpit · all projects{total}", note)
        if self._seen is not None:
            self._seen |= pending
        elif self.feed.is_read:
            self._seen = pending

    # The footer

    def _proposal_hints(self, queue: QueueView) -> tuple[KeyHintView, ...]:
        return proposal_hints(queue, self.key_policy, is_deciding=self._is_deciding)

    def update_hints(self) -> None:
        """Show the current meaning of the keys."""
        if not (self._painted and self.panel.is_attached):
            return
        self.panel.hints = self._proposal_hints(self._drawn_queue)
        if self._note:
            self.headline.show(
                "All projects",
                [(self._note, WARN), "   ", *self._describe()],
                self._drawn_queue.total,
            )
        hints = footer_hints(is_deciding=self._is_deciding, is_only=self._is_only)
        self.bar.show(self.panel.list_unsaid(hints))

    def on_key_bar_more(self) -> None:
        """Show the keys for which the footer has no room."""
        offer_footer(self.terminal, self.bar.hints)

    def _flash(self, text: str) -> None:
        """Show ``text`` in the headline until the next key."""
        self._note = text
        self.update_hints()

    def _run(self, work: Coroutine[None, None, None], *, name: str = "") -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.terminal.show_error(f"Internal error: {error!r}. Please report it.")
