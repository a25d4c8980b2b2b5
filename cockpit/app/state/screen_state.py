"""What the screen shows: read from the tables, and read again where a row of the journal says so.

Only the conversations of open sessions are folded, each from its own rows. Opening costs the same however
long the journal is. Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import field

from cockpit.app.state import chains, work
from cockpit.app.state.agent_state import AgentState
from cockpit.app.state.chain_trees import Trees
from cockpit.app.state.chains import Chains, ShownChain, read_chain, read_chains, read_progress
from cockpit.app.state.conversation import Conversation
from cockpit.app.state.header import SessionState, from_listed, header
from cockpit.app.state.proposal_queue import Pending, queue_view, read_pending
from cockpit.app.state.session_fold import OpenSession, meter_of
from cockpit.app.state.work import Work, WorkChanges, WorkReader
from cockpit.app.state.work_pane import MOST, board
from cockpit.store.journal import journal
from cockpit.store.journal.details.chains import Progress
from cockpit.store.journal.journal import Row, session_rows
from cockpit.store.sessions import session_list
from cockpit.store.sessions.session_list import Totals
from widgets.text.detail import DetailRow
from widgets.views import HeaderView, MeterView, QueueView, TurnView, WorkPaneView

_OF_LISTED = ("session.", "wave.", "model.completed", "agent.")
"""What begins rows after which a session is listed in another way."""
_OF_TOTALS = ("session.", "model.completed", "task.run.")
"""What begins rows that may change the sums over sessions."""


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


class Named(msgspec.Struct):
    """What rows of the journal name, and what has to be read again therefore."""

    proposals: dict[str, None] = field(default_factory=dict)
    sessions: dict[str, None] = field(default_factory=dict)
    chains: dict[str, None] = field(default_factory=dict)
    tasks: set[str] = field(default_factory=set)
    epics: set[str] = field(default_factory=set)
    stories: set[str] = field(default_factory=set)
    progress: tuple[ShownChain, ...] = ()
    """The running chains, where tasks changed."""
    totals: bool = False
    backlog: bool = False


class Changes(msgspec.Struct, frozen=True):
    """What the tables say now of what rows named."""

    pending: Mapping[str, Pending | None]
    sessions: Sequence[SessionState]
    chains: Sequence[ShownChain]
    progress: Mapping[str, Progress]
    work: WorkChanges | None
    totals: Mapping[str, Totals] | None


class State:
    """The state of the screen, as of the row ``seq``."""

    def __init__(self) -> None:
        self.seq = 0
        self.pending: dict[str, Pending] = {}
        """The proposals that wait, in the order of their arrival."""
        self.listed: dict[str, SessionState] = {}
        self.totals: Mapping[str, Totals] = {}
        self.work = Work()
        self.unread: WorkReader | None = None
        """Reads the rest of a large backlog, which is not shown before all of it is there."""
        self.chains = Chains()
        self._open: dict[str, OpenSession] = {}

    # Reading again

    def name_changes(self, rows: Iterable[Row]) -> Named:
        """Return what has to be read again after ``rows``."""
        named = Named()
        for row in rows:
            detail = row.detail
            if row.action.startswith("proposal."):
                named.proposals[getattr(detail, "proposal_id", "")] = None
            elif row.action.startswith("trust."):
                named.proposals |= {
                    key: None for key, each in self.pending.items() if each.body.card.rule_id
                }
            elif row.action.startswith(chains.PREFIXES):
                named.chains[getattr(detail, "chain_id", "")] = None
                named.sessions[getattr(detail, "session_id", "")] = None
            elif row.action.startswith(work.PREFIXES):
                named.backlog = True
                named.tasks |= {
                    getattr(detail, "task_id", "") or "",
                    *getattr(detail, "task_ids", ()),
                }
                named.epics.add(getattr(detail, "epic_id", "") or "")
                named.stories.add(getattr(detail, "story_id", "") or "")
            elif row.action.startswith(_OF_LISTED):
                named.sessions[row.session_id] = None
            if row.action.startswith(_OF_TOTALS):
                named.totals = True
                if (run := self.chains.run_of(row.session_id)) is not None:
                    named.chains[run.chain_id] = None
        for task_id in tuple(named.tasks):
            named.tasks.update(self.work.dependents(task_id))
        if named.backlog:
            named.progress = tuple(each for each in self.chains.chains.values() if each.live)
        return named

    def take(self, changes: Changes) -> None:
        """Show what was read again."""
        for proposal_id, pending in changes.pending.items():
            if pending is None:
                self.pending.pop(proposal_id, None)
            else:
                self.pending[proposal_id] = pending
        for session in changes.sessions:
            self.listed[session.session_id] = session
        if changes.work is not None:
            self.work.take(changes.work)
        for chain_id, progress in changes.progress.items():
            self.chains.chains[chain_id].progress = progress
        for chain in changes.chains:
            self.put_chain(chain)
        if changes.totals is not None:
            self.totals = changes.totals

    def put_chain(self, chain: ShownChain) -> None:
        """Show a chain that was read again, and how it left its tasks."""
        self.chains.put(chain)
        for run in chain.runs.values():
            retry = run.retry.attempt if chain.live and run.retry is not None else 0
            self.work.mark(run.task_id, left=not run.ended and not chain.live, retry=retry)

    def show_work(self, whole: Work) -> None:
        """Show the backlog, now that all of it was read."""
        self.work, self.unread = whole, None
        for chain in self.chains.chains.values():
            self.put_chain(chain)

    # Sessions

    def fold(self, rows: Iterable[Row]) -> None:
        """Continue the conversations of open sessions."""
        for row in rows:
            self.seq = max(self.seq, row.seq)
            if (opened := self._open.get(row.session_id)) is not None:
                opened.apply(row)

    def is_open(self, session_id: str) -> bool:
        """Whether the conversation of a session is there and kept up to date."""
        return session_id in self._open

    def open_session(self, opened: OpenSession) -> None:
        """Keep a session's conversation from now on, as its rows up to :attr:`seq` have it."""
        self._open[opened.session.session_id] = opened

    def session(self, session_id: str) -> SessionState | None:
        """Return a session: as its rows have it where it is open, else as it is listed."""
        opened = self._open.get(session_id)
        if opened is not None and opened.session.order:
            return opened.session
        return self.listed.get(session_id)

    def conversation(self, session_id: str) -> Conversation:
        """The turns of one session; empty for a session that is unknown or not open."""
        opened = self._open.get(session_id)
        return opened.conversation if opened is not None else Conversation()

    def agent_of(self, session_id: str) -> AgentState:
        """Return what the agent of an open session says of itself."""
        opened = self._open.get(session_id)
        return opened.agent if opened is not None else AgentState()

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
        waiting = {each.stored.session_id: each.stored.title for each in self.pending.values()}
        return Views(
            header=header(
                self.session(session_id),
                pending=len(self.pending),
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
            meter=meter_of(opened, new_agent),
            queue=queue_view(
                self.pending,
                now,
                self.session,
                self.chains.words_of,
                followed=session_id,
                front=front,
                is_alone=is_alone,
            ),
            board=board(
                self.listed,
                self.totals,
                followed=session_id,
                waiting=waiting,
                work=self.work,
                chains=(trees or Trees()).rows(
                    self.chains, self.work, followed=session_id, waiting=waiting, now=now
                ),
            ),
        )


def read_state(connection: sqlite3.Connection, session_id: str, now: datetime) -> State:
    """Return the state now, with the session ``session_id`` open. To be called in one snapshot."""
    state = State()
    state.seq = journal.last_seq(connection)
    state.pending = {
        key: each for key, each in read_pending(connection).items() if each is not None
    }
    for chain in read_chains(connection, now):
        state.put_chain(chain)
    state.unread = WorkReader()
    if not state.unread.read_part(connection):
        state.show_work(state.unread.work)
    live = [chain for chain in state.chains.chains.values() if chain.live]
    runs = [run for chain in live for run in chain.runs.values()]
    more = [each.stored.session_id for each in state.pending.values() if each.stored.session_id]
    more += [run.session_id for run in runs if run.session_id and not run.ended]
    listed = session_list.select_listed(connection, MOST, more)
    state.listed = {each.session_id: from_listed(each) for each in listed}
    state.totals = session_list.read_totals(connection)
    if session_id:
        opened = OpenSession(session_id, in_chain=session_list.is_in_chain(connection, session_id))
        while rows := session_rows(connection, session_id, after=opened.seq, until=state.seq):
            opened.fold(rows)
        state.open_session(opened)
    return state


def read_changes(connection: sqlite3.Connection, named: Named, now: datetime) -> Changes:
    """Return what the tables say now of what rows named. To be called in one snapshot."""
    return Changes(
        pending=read_pending(connection, named.proposals),
        sessions=[
            from_listed(each) for each in session_list.select_listed(connection, 0, named.sessions)
        ],
        chains=[chain for each in named.chains for chain in read_chain(connection, each, now)],
        progress={each.chain_id: read_progress(connection, each.row) for each in named.progress},
        work=work.read_changes(connection, named.tasks, named.epics, named.stories)
        if named.backlog
        else None,
        totals=session_list.read_totals(connection) if named.totals else None,
    )
