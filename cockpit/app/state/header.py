"""Sessions, read from the tables or folded from their rows, and the header of the one that is followed."""

from __future__ import annotations

from msgspec import Struct, UnsetType

from cockpit.app.state.agent_state import AgentState
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.journal.details import agents, estimates, sessions, waves
from cockpit.store.journal.journal import Row
from cockpit.store.sessions.session_list import Listed
from cockpit.store.sessions.session_states import session_state
from cockpit.store.sessions.sessions import EXTERNAL_AGENT, model_for_people
from widgets.views import HeaderView, Phase

_REENTERED: dict[str, Phase] = {
    "created": "created",
    "observing": "observe",
    "orienting": "orient",
    "deciding": "decide",
    "acting": "act",
    "learning": "learn",
}
_STORED: dict[str, Phase] = {
    **_REENTERED,
    "completed": "done",
    "failed_retryable": "failed",
    "failed_terminal": "failed",
}
_OTHER_ENDS = ("blocked", "limit", "needs_answer", "stuck")
"""Results of a completed session that are not ``done``."""
_MOST_FILES = 100


class SessionState(Struct):
    """One session as it is shown. ``status`` is running, waiting, completed, blocked,
    limit, needs_answer, stuck, expired, failed or stopped; ``order`` is the seq of its latest
    row that changed it."""

    session_id: str
    order: int = 0
    created_at: str = ""
    task_type: str = ""
    title: str = ""
    words: str = ""
    model: str = ""
    policy: str = ""
    project: str = ""
    branch: str = ""
    role: str = ""
    task_id: str = ""
    status: str = "running"
    summary: str = ""
    wave: int = 0
    oriented: str = ""
    """The newest wave that has a packet, by its id."""
    phase: Phase = "created"
    in_chain: bool = False
    """Whether the tables have it as a session of a chain's task."""
    tokens: int = 0
    cost_usd: float | None = None
    agent: str = ""
    """The external agent that has it."""
    since: str = ""
    """When it entered its status."""
    expected_waves: int = 0
    """How many waves it is likely to take, by its newest estimate; 0 without one."""
    changed_files: tuple[str, ...] = ()
    """The files that its agent reported to have changed, the last at the end."""

    @property
    def ended(self) -> bool:
        return self.status not in ("running", "waiting")

    @property
    def has_agent(self) -> bool:
        """Whether cockpit drives it with an external agent; false where the user's terminal does."""
        return bool(self.agent) and self.task_type != EXTERNAL_AGENT

    @property
    def name(self) -> str:
        """The task and the title, as people name a session."""
        title = self.title or self.words or self.session_id
        return f"{self.task_id} {title}" if self.task_id else title

    @property
    def stage(self) -> Phase:
        """The stage of the newest wave; where that has ended, its last: the session is not done by it."""
        return "learn" if self.phase == "done" else self.phase

    def state(self, *, asks: bool) -> str:
        """Return its state; ``asks``: it has a pending proposal."""
        return session_state(self.status, asks=asks)

    def apply(self, row: Row) -> None:
        """Fold one row of this session."""
        detail = row.detail
        match detail:
            case waves.WaveReentered() | waves.WaveCreated() | waves.WaveMoved() if self.agent:
                return  # an action over its worktree has a wave of its own; the agent has turns
            case waves.WaveReentered():
                self.phase = _REENTERED.get(detail.phase, self.phase)
            case waves.WaveCreated():
                self.phase, self.wave = "created", detail.ordinal or self.wave
            case waves.WaveMoved() | waves.WaveFailed():
                self.phase = _STORED.get(detail.phase, self.phase)
                self.wave = detail.ordinal or self.wave
                if detail.phase == "deciding":
                    self.oriented = row.wave_id
            case waves.ModelCompleted():
                self.tokens += detail.input_tokens + detail.output_tokens
                if detail.cost_usd is not None:
                    self.cost_usd = (self.cost_usd or 0.0) + detail.cost_usd
            case estimates.EstimateMade():
                self.expected_waves = max(0, round(detail.expected.waves.likely))
                return  # it changes nothing about the session itself
            case agents.AgentHook():
                if not isinstance(detail.path, str) or detail.path in self.changed_files:
                    return
                self.changed_files = (*self.changed_files, detail.path)[-_MOST_FILES:]
            case _ if row.action.startswith("session."):
                self._session(row)
            case _:
                return
        self.order = row.seq

    def _session(self, row: Row) -> None:
        detail = row.detail
        if not isinstance(detail, sessions.SessionChanged):
            self.since = row.at
        match detail:
            case sessions.SessionCreated():
                self.created_at = row.at
                self.task_type, self.title, self.words = (
                    detail.task_type,
                    detail.title,
                    detail.words,
                )
                self.model, self.policy = detail.model, detail.policy
                self.project, self.branch = detail.project, detail.branch
                self.role, self.task_id = detail.role, detail.task_id or ""
                self.agent = _changed(detail.agent, "")
            case sessions.SessionChanged():
                self.policy = _changed(detail.policy, self.policy)
                self.model = _changed(detail.model, self.model)
                self.task_type = _changed(detail.task_type, self.task_type)
                self.title = _changed(detail.title, self.title)
            case sessions.SessionWaiting():
                self.status = "waiting"
                if detail.for_ in ("expired", "paused"):
                    self.status, self.summary = detail.for_, detail.why or ""
            case sessions.SessionRunning() | sessions.SessionResumed():
                self.status = "running"
            case sessions.SessionCompleted():
                status = detail.status or ""
                self.status = status if status in _OTHER_ENDS else "completed"
                self.summary = detail.summary or ""
            case sessions.SessionFailed():
                self.status, self.summary = "failed", detail.message or ""
            case sessions.SessionStopped():
                self.status, self.summary = "stopped", detail.reason or ""


def from_listed(listed: Listed) -> SessionState:
    """Return a session as the tables have it."""
    session = SessionState(
        listed.session_id,
        created_at=listed.created_at,
        task_type=listed.task_type,
        title=listed.title,
        words=listed.words,
        model=listed.model,
        policy=listed.policy,
        role=listed.role,
        task_id=listed.task_id,
        agent=listed.agent,
        branch=listed.branch,
        since=listed.created_at,
        changed_files=listed.changed_files,
        wave=listed.wave,
        phase=_STORED.get(listed.phase, "created"),
        in_chain=listed.in_chain,
        tokens=listed.tokens,
        cost_usd=listed.cost_usd,
    )
    if listed.entered is not None:
        session.apply(listed.entered)
    session.order = listed.changed_seq
    return session


def _changed(value: str | UnsetType, before: str) -> str:
    return value if isinstance(value, str) else before


def header(
    session: SessionState | None,
    *,
    pending: int,
    asks: bool = False,
    project: str,
    branch: str,
    model: str = "",
    new_agent: str = "",
    warning: str = "",
    agent: AgentState | None = None,
) -> HeaderView:
    """Return the header of ``session``; without one, of the project and of a new session: its ``model``, or
    ``new_agent``, the external agent that gets it.

    ``pending`` counts the proposals of all sessions; ``asks``: one of them is of this session. ``agent`` is
    what the external agent of the session says of itself.
    """
    if session is None:
        return HeaderView(
            project=project,
            branch=branch,
            pending=pending,
            model=_short(model),
            warning=warning,
            agent=new_agent,
        )
    agent = agent or AgentState()
    state = session.state(asks=asks)
    look = state_sign("session", state)
    # A wave that is done says nothing of its session: that one may ask, or begin the next wave.
    is_over = state != "running" and (session.ended or session.phase == "done")
    return HeaderView(
        project=session.project or project,
        branch=session.branch or branch,
        task=session.name,
        task_type=session.task_type,
        wave=0 if session.agent else session.wave,
        of_waves=0 if session.agent or session.ended else session.expected_waves,
        phase=session.stage,
        model=_model_name(session, agent),
        tokens=session.tokens,
        cost_usd=session.cost_usd,
        pending=pending,
        state=look.word,
        end_sign=look.sign if is_over else "",
        end_tone=look.tone if is_over else "plain",
        warning=warning,
        mode=agent.name_of("mode"),
        plan=agent.plan(),
        context=agent.context(),
        agent=session.agent,
        turn=agent.turns,
    )


def _model_name(session: SessionState, agent: AgentState) -> str:
    """Return the model; that of an external agent only as far as the agent names it."""
    if session.agent:
        return agent.name_of("model") or model_for_people(session.model)
    return _short(session.model)


def _short(model: str) -> str:
    """Shorten a model's name: without its provider, a script without its folders."""
    provider, _, name = model.partition(":")
    if provider == "script":
        return f"script:{name.rpartition('/')[2]}"
    return name or provider
