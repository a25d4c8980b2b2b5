"""Sessions folded from the journal, and the header of the one that is followed."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.app.projection import row_detail as read
from cockpit.store.journal.journal import Row
from widgets.views import HeaderView, Phase

_PHASES: dict[str, Phase] = {
    "wave.created": "created",
    "wave.started": "observe",
    "wave.observed": "orient",
    "wave.oriented": "decide",
    "wave.decided": "act",
    "wave.acted": "learn",
    "wave.completed": "done",
    "wave.failed": "failed",
}
_REENTERED: dict[str, Phase] = {
    "created": "created",
    "observing": "observe",
    "orienting": "orient",
    "deciding": "decide",
    "acting": "act",
    "learning": "learn",
}


@dataclass(slots=True)
class SessionState:
    """What the journal says of one session. ``status`` is running, waiting, completed, blocked,
    limit, failed or stopped; ``order`` is the seq of its latest row that changed it."""

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
    waits_for: str = ""
    summary: str = ""
    wave: int = 0
    oriented: str = ""
    """The newest wave that has a packet, by its id."""
    phase: Phase = "created"
    tokens: int = 0
    cost_usd: float | None = None

    @property
    def ended(self) -> bool:
        return self.status not in ("running", "waiting")

    @property
    def name(self) -> str:
        """The task as a person names it."""
        title = self.title or self.words or self.session_id
        return f"{self.task_id} {title}" if self.task_id else title

    def saying(self) -> str:
        """What the session does now, in words."""
        if self.status == "waiting":
            return {"person": "your turn", "proposal": "waits for you"}.get(self.waits_for, "waits")
        return {"completed": "done", "limit": "stopped at its limit"}.get(self.status, self.status)

    def apply(self, row: Row) -> None:
        """Fold one row of this session."""
        action, detail = row.action, row.raw_detail()
        if action in _PHASES:
            self.phase = _PHASES[action]
            self.wave = read.number(detail, "ordinal") or self.wave
            if action == "wave.oriented":
                self.oriented = row.wave_id
        elif action == "wave.reentered":
            self.phase = _REENTERED.get(read.text(detail, "phase"), self.phase)
        elif action == "model.completed":
            self._spend(row)
        elif action.startswith("session."):
            self._session(row)
        else:
            return
        self.order = row.seq

    def _session(self, row: Row) -> None:
        detail = row.raw_detail()
        match row.action:
            case "session.created":
                self.created_at = row.at
                for name in (
                    "task_type", "title", "words", "model", "policy", "project", "branch", "role",
                    "task_id",
                ):  # fmt: skip
                    setattr(self, name, read.text(detail, name))
            case "session.changed":
                for name in ("policy", "model", "task_type", "title"):
                    if name in detail:
                        setattr(self, name, read.text(detail, name))
            case "session.waiting":
                self.status, self.waits_for = "waiting", read.text(detail, "for")
            case "session.running" | "session.resumed":
                self.status = "running"
            case "session.completed":
                word = read.text(detail, "status")
                self.status = word if word in ("blocked", "limit") else "completed"
                self.summary = read.text(detail, "summary")
            case "session.failed":
                self.status, self.summary = "failed", read.text(detail, "message")
            case "session.stopped":
                self.status, self.summary = "stopped", read.text(detail, "reason")

    def _spend(self, row: Row) -> None:
        self.tokens += read.number(row.raw_detail(), "input_tokens")
        self.tokens += read.number(row.raw_detail(), "output_tokens")
        cost = read.real(row.raw_detail(), "cost_usd")
        if cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost


def header(
    session: SessionState | None, *, pending: int, project: str, branch: str, model: str = ""
) -> HeaderView:
    """The header for ``session``, or before there is one for the project and the ``model`` that a new
    session would get."""
    if session is None:
        return HeaderView(project=project, branch=branch, pending=pending, model=_short(model))
    return HeaderView(
        project=session.project or project,
        branch=session.branch or branch,
        task=session.name,
        task_type=session.task_type,
        wave=session.wave,
        phase=session.phase,
        model=_short(session.model),
        tokens=session.tokens,
        cost_usd=session.cost_usd,
        pending=pending,
        state=session.saying(),
    )


def _short(model: str) -> str:
    """A model as it is spoken of: without its provider, a script without its folders."""
    provider, _, name = model.partition(":")
    if provider == "script":
        return f"script:{name.rpartition('/')[2]}"
    return name or provider
