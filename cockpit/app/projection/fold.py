"""The screen as a fold of the journal: rows in, the views that ``widgets`` draws out.

:meth:`State.apply` is total (it never raises on any row) and indifferent to how rows are batched;
:meth:`State.views` changes nothing. Folding from seq 0 is replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from cockpit.app.projection import chains
from cockpit.app.projection.agent_state import AgentState
from cockpit.app.projection.backlog import PREFIXES, Work
from cockpit.app.projection.band_meter import meter, waves_left, with_reported_cache
from cockpit.app.projection.chain_trees import Trees
from cockpit.app.projection.chains import Chains
from cockpit.app.projection.conversation import Conversation
from cockpit.app.projection.header import SessionState, header
from cockpit.app.projection.hook_sessions import PREFIX, Agents
from cockpit.app.projection.proposal_queue import Queue
from cockpit.app.projection.work_pane import Roster, board
from cockpit.store.journal.details.chains import ChainState
from cockpit.store.journal.details.tasks import TaskDelayed, TaskStep, TaskTakenUp
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.journal.journal import Row
from widgets.text.detail import DetailRow
from widgets.views import HeaderView, MeterView, QueueView, TurnView, WorkPaneView

_NOTHING = MeterView()
_AGENTS_OWN = MeterView(
    empty="An external agent chooses its own context: it has no bands.", explains=False
)
_NOT_OF_SESSIONS = (*chains.PREFIXES, *PREFIXES, PREFIX)
"""What begins rows that name a session and do not change it."""


class Views(msgspec.Struct, frozen=True):
    """One picture of the whole screen. ``turns`` are those changed since the revision asked for;
    ``revision`` is the one to ask with next."""

    header: HeaderView
    turns: tuple[TurnView, ...]
    revision: int
    meter: MeterView
    queue: QueueView
    board: WorkPaneView
    welcome: tuple[DetailRow, ...] = ()
    """What the conversation shows while no session is followed."""


def _meter_of(
    opened: OpenSession | None, session: SessionState | None, new_agent: str = ""
) -> MeterView:
    """Return the bands of a session; an external agent has none, also before its first session."""
    if opened is None:
        return _AGENTS_OWN if new_agent else _NOTHING
    is_agents = session is not None and session.agent and opened.meter is _NOTHING
    return _AGENTS_OWN if is_agents else opened.meter


class OpenSession:
    """A session with its conversation and its band meter."""

    def __init__(self, session_id: str, *, in_chain: bool = False) -> None:
        self.session = SessionState(session_id, in_chain=in_chain)
        self.conversation = Conversation()
        self.agent = AgentState()
        self.meter = _NOTHING
        self._waves_left: int | None = None

    def apply(self, row: Row) -> None:
        """Fold one row into the conversation and the band meter."""
        self.conversation.apply(row)
        self.agent.apply(row)
        if row.action == "wave.started":
            self._waves_left = waves_left(row)
        elif row.action == "orientation.packet.compiled":
            self.meter = meter(row, self._waves_left, self.meter.history)
        elif row.action == "model.completed":
            self.meter = with_reported_cache(self.meter, row)

    def fold(self, rows: Iterable[Row]) -> None:
        """Fold the next rows of the session, whole."""
        for row in rows:
            if not row.action.startswith(_NOT_OF_SESSIONS):
                self.session.apply(row)
                self.apply(row)


class State:
    """The state of the screen after the rows folded so far.

    One that ``follows_all`` sessions keeps every conversation; another one those that were opened, and
    its first state comes from the tables (:mod:`cockpit.app.projection.current_state`).
    """

    def __init__(self, *, follows_all: bool = True) -> None:
        self.seq = 0
        self.at = ""
        self._follows_all = follows_all
        self._open: dict[str, OpenSession] = {}
        self.sessions: dict[str, SessionState] = {}
        self.queue = Queue()
        self.work = Work()
        self.chains = Chains()
        self.agents = Agents()
        self.roster = Roster()

    def apply(self, row: Row) -> None:
        """Fold one row in; rows that were folded before are passed over."""
        if row.seq <= self.seq:
            return
        self.seq, self.at = row.seq, row.at
        if row.action.startswith(("proposal.", "trust.")):
            self.queue.apply(row)
        elif row.action.startswith(chains.PREFIXES):
            self.chains.apply(row)
            self._leave_tasks(row)
            if isinstance(delayed := row.detail, TaskDelayed):
                self.work.delay(delayed.task_id, delayed.attempt, row.seq)
            if isinstance(step := row.detail, TaskStep) and self.chains.run_of(step.session_id):
                self.roster.drop(step.session_id)
            return
        elif row.action.startswith(PREFIXES):
            self.work.apply(row)
            return
        elif row.action.startswith(PREFIX):
            self.agents.apply(row)
            if row.session_id not in self.sessions:
                return  # a report by older hooks, whose sessions have no rows
        if not row.session_id:
            return
        session = self.sessions.get(row.session_id)
        if session is None:
            # One that was opened before its first row came has a state already.
            opened = self._open.get(row.session_id)
            session = opened.session if opened is not None else SessionState(row.session_id)
            self.sessions[row.session_id] = session
        session.apply(row)
        if row.action == "session.created":
            self.chains.session(session)
        elif row.action == "model.completed":
            usage = row.read(ModelCompleted)
            used = usage.input_tokens + usage.output_tokens
            self.chains.spent(row.session_id, used, usage.cost_usd)
        if session.order == row.seq and not self._in_tree(session):
            self.roster.changed(session)
        if self.is_open(row.session_id):
            self._opened(row.session_id).apply(row)

    def fold(self, rows: Iterable[Row]) -> State:
        """Fold many rows in; returns itself."""
        for row in rows:
            self.apply(row)
        return self

    def _leave_tasks(self, row: Row) -> None:
        """Mark the tasks that a chain left when it ended, and those that one works on again."""
        if isinstance(step := row.detail, TaskStep | TaskTakenUp):
            self.work.leave(step.task_id, left=False)
        elif isinstance(ended := row.detail, ChainState):
            chain = self.chains.chains.get(ended.chain_id)
            if chain is None:
                return
            for run in chain.runs.values():
                self.work.leave(run.task_id, left=not run.ended and not chain.live)

    # Sessions that are read when they are shown

    def is_open(self, session_id: str) -> bool:
        """Whether the conversation of a session is there and kept up to date."""
        return self._follows_all or session_id in self._open

    def list_session(self, session: SessionState) -> None:
        """Add a session as the tables have it."""
        self.sessions[session.session_id] = session
        if not self._in_tree(session):
            self.roster.changed(session)

    def open_session(self, opened: OpenSession) -> None:
        """Keep a session's conversation from now on, as its rows up to :attr:`seq` have it."""
        session = opened.session
        self._open[session.session_id] = opened
        if session.order:
            self.sessions[session.session_id] = session
            self.roster.replace(session)

    def missing(self, rows: Iterable[Row]) -> set[str]:
        """The sessions that ``rows`` continue and that are not here."""
        missing: set[str] = set()
        begun: set[str] = set()
        for row in rows if not self._follows_all else ():
            if row.action == "session.created":
                begun.add(row.session_id)
            elif row.session_id and not row.action.startswith(_NOT_OF_SESSIONS):
                missing.add(row.session_id)
        return {each for each in missing - begun if each not in self.sessions}

    def _in_tree(self, session: SessionState) -> bool:
        return session.in_chain or self.chains.run_of(session.session_id) is not None

    def conversation(self, session_id: str) -> Conversation:
        """The turns of one session; empty for a session that is unknown or not open."""
        opened = self._open.get(session_id)
        return opened.conversation if opened is not None else Conversation()

    def agent_of(self, session_id: str) -> AgentState:
        """Return what the agent of an open session says of itself."""
        opened = self._open.get(session_id)
        return opened.agent if opened is not None else AgentState()

    def _opened(self, session_id: str) -> OpenSession:
        opened = self._open.get(session_id)
        if opened is None:
            opened = self._open[session_id] = OpenSession(session_id)
        return opened

    def views(
        self,
        now: datetime,
        session_id: str = "",
        *,
        since: int = 0,
        front: str = "",
        is_alone: bool = False,
        project: str = "",
        branch: str = "",
        model: str = "",
        new_agent: str = "",
        warning: str = "",
        trees: Trees | None = None,
    ) -> Views:
        """The screen that follows ``session_id``, with the proposal ``front`` in front, by itself where it
        ``is_alone``, and the ``trees`` of chains as far open as the user left them."""
        opened = self._open.get(session_id)
        talk = opened.conversation if opened is not None else None
        pending = self.queue.pending
        waiting = {each.session_id: each.title for each in pending.values()}
        return Views(
            header=header(
                self.sessions.get(session_id),
                pending=len(pending),
                asks=session_id in waiting,
                project=project,
                branch=branch,
                model=model,
                new_agent=new_agent,
                warning=warning,
                agent=opened.agent if opened is not None else None,
            ),
            turns=talk.changed(since) if talk is not None else (),
            revision=talk.revision if talk is not None else 0,
            meter=_meter_of(opened, self.sessions.get(session_id), new_agent),
            queue=self.queue.view(
                now,
                self.sessions,
                self.chains.words_of,
                followed=session_id,
                front=front,
                is_alone=is_alone,
            ),
            board=board(
                self.roster,
                followed=session_id,
                waiting=waiting,
                work=self.work,
                chains=(trees or Trees()).rows(
                    self.chains, self.work, followed=session_id, waiting=waiting, now=now
                ),
                agents=self.agents,
            ),
        )
