"""The screen as a fold of the journal: rows in, the views that ``widgets`` draws out.

:meth:`State.apply` is total (it never raises on any row) and indifferent to how rows are batched;
:meth:`State.views` changes nothing. Folding from seq 0 is replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cockpit.app.projection import chains
from cockpit.app.projection.backlog import PREFIXES, Work
from cockpit.app.projection.band_meter import meter, waves_left
from cockpit.app.projection.chain_trees import Trees
from cockpit.app.projection.chains import Chains
from cockpit.app.projection.conversation import Conversation
from cockpit.app.projection.header import SessionState, header
from cockpit.app.projection.hook_sessions import PREFIX, Agents
from cockpit.app.projection.proposal_queue import Queue
from cockpit.app.projection.work_pane import Roster, board
from cockpit.store.journal.details.tasks import TaskStep
from cockpit.store.journal.details.waves import ModelCompleted
from cockpit.store.journal.journal import Row
from widgets.views import HeaderView, MeterView, QueueView, TurnView, WorkPaneView

_NOTHING = MeterView()


@dataclass(frozen=True, slots=True)
class Views:
    """One picture of the whole screen. ``turns`` are those changed since the revision asked for;
    ``revision`` is the one to ask with next."""

    header: HeaderView
    turns: tuple[TurnView, ...]
    revision: int
    meter: MeterView
    queue: QueueView
    board: WorkPaneView


class State:
    """The state of the screen after the rows folded so far."""

    def __init__(self) -> None:
        self.seq = 0
        self.at = ""
        self.sessions: dict[str, SessionState] = {}
        self.queue = Queue()
        self.work = Work()
        self.chains = Chains()
        self.agents = Agents()
        self._roster = Roster()
        self._conversations: dict[str, Conversation] = {}
        self._meters: dict[str, MeterView] = {}
        self._horizons: dict[str, int | None] = {}

    def apply(self, row: Row) -> None:
        """Fold one row in; rows that were folded before are passed over."""
        if row.seq <= self.seq:
            return
        self.seq, self.at = row.seq, row.at
        if row.action.startswith("proposal."):
            self.queue.apply(row)
        elif row.action.startswith(chains.PREFIXES):
            self.chains.apply(row)
            if isinstance(step := row.detail, TaskStep) and self.chains.run_of(step.session_id):
                self._roster.drop(step.session_id)
            return
        elif row.action.startswith(PREFIXES):
            self.work.apply(row)
            return
        elif row.action.startswith(PREFIX):
            self.agents.apply(row)
            return  # The session of an external agent is not a session of cockpit.
        if not row.session_id:
            return
        session = self.sessions.get(row.session_id)
        if session is None:
            session = self.sessions[row.session_id] = SessionState(row.session_id)
        session.apply(row)
        if row.action == "session.created":
            self.chains.session(session)
        elif row.action == "model.completed":
            usage = row.read(ModelCompleted)
            used = usage.input_tokens + usage.output_tokens
            self.chains.spent(row.session_id, used, usage.cost_usd)
        if session.order == row.seq and self.chains.run_of(row.session_id) is None:
            self._roster.changed(session)
        self.conversation(row.session_id).apply(row)
        if row.action == "wave.started":
            self._horizons[row.session_id] = waves_left(row)
        elif row.action == "orientation.packet.compiled":
            self._meters[row.session_id] = meter(row, self._horizons.get(row.session_id))

    def fold(self, rows: Iterable[Row]) -> State:
        """Fold many rows in; returns itself."""
        for row in rows:
            self.apply(row)
        return self

    def conversation(self, session_id: str) -> Conversation:
        """The turns of one session; empty for an unknown session."""
        conversation = self._conversations.get(session_id)
        if conversation is None:
            conversation = self._conversations[session_id] = Conversation()
        return conversation

    def views(
        self,
        now: datetime,
        session_id: str = "",
        *,
        since: int = 0,
        front: str = "",
        project: str = "",
        branch: str = "",
        model: str = "",
        trees: Trees | None = None,
    ) -> Views:
        """The screen that follows ``session_id``, with the proposal ``front`` in front and the
        ``trees`` of chains as far open as the user left them."""
        talk = self._conversations.get(session_id)
        pending = self.queue.pending
        waiting = {each.session_id: each.title for each in pending.values()}
        return Views(
            header=header(
                self.sessions.get(session_id),
                pending=len(pending),
                project=project,
                branch=branch,
                model=model,
            ),
            turns=talk.changed(since) if talk is not None else (),
            revision=talk.revision if talk is not None else 0,
            meter=self._meters.get(session_id, _NOTHING),
            queue=self.queue.view(
                now, self.sessions, self.chains.words_of, followed=session_id, front=front
            ),
            board=board(
                self._roster,
                followed=session_id,
                waiting=waiting,
                work=self.work,
                chains=(trees or Trees()).rows(
                    self.chains, self.work, followed=session_id, waiting=waiting
                ),
                agents=self.agents,
            ),
        )
