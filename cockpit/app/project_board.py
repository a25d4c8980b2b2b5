"""Chains and work as the pane shows them: the tasks at work, and what each session does now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cockpit.app import project_kanban
from cockpit.app.project_header import SessionState
from cockpit.app.project_work import Work
from widgets.numerals import money, tokens
from widgets.views import BoardView, WorkRowView

_MOST = 200
_SIGNS = {
    "running": ("▶", "warn"),
    "waiting": ("?", "accent"),
    "completed": ("✔", "good"),
    "blocked": ("■", "bad"),
    "failed": ("✗", "bad"),
    "limit": ("■", "warn"),
    "stopped": ("■", "dim"),
}


def board(
    sessions: Iterable[SessionState],
    *,
    followed: str,
    waiting: Collection[str],
    work: Work | None = None,
) -> BoardView:
    """Tasks at work first; then sessions, those that run before those that ended, the latest first.
    ``waiting`` are the sessions with a pending proposal."""
    ordered = sorted(sessions, key=lambda each: (each.ended, -each.order))
    return BoardView(
        work=project_kanban.summary(work) if work is not None else "",
        tasks=project_kanban.lines(work) if work is not None else (),
        summary=_summary(ordered) if ordered else "",
        rows=tuple(_row(each, followed, each.session_id in waiting) for each in ordered[:_MOST]),
    )


def _row(session: SessionState, followed: str, waiting: bool) -> WorkRowView:
    status = "waiting" if waiting and not session.ended else session.status
    sign, tone = _SIGNS.get(status, ("·", "dim"))
    spent = [tokens(session.tokens)] if session.tokens else []
    if session.cost_usd is not None:
        spent.append(money(session.cost_usd))
    state = "waits for you" if status == "waiting" and waiting else session.saying()
    if status == "running" and session.wave:
        state = f"{session.phase} · wave {session.wave}"
    detail = " · ".join([*spent, *([session.summary] if session.ended and session.summary else [])])
    return WorkRowView(
        key=session.session_id,
        sign=sign,
        tone=tone,  # type: ignore[arg-type]  # the tones of _SIGNS are those of the view
        title=session.name,
        state=state,
        detail=detail,
        current=session.session_id == followed,
    )


def _summary(sessions: Sequence[SessionState]) -> str:
    working = sum(each.status == "running" for each in sessions)
    waiting = sum(each.status == "waiting" for each in sessions)
    done = sum(each.status == "completed" for each in sessions)
    stuck = sum(each.status in ("failed", "blocked") for each in sessions)
    count = f"{len(sessions)} session" + ("s" if len(sessions) != 1 else "")
    parts = [count]
    parts += [
        f"{sign} {number} {word}"
        for sign, number, word in (
            ("▶", working, "working"),
            ("?", waiting, "waiting"),
            ("✔", done, "done"),
            ("✗", stuck, "stuck"),
        )
        if number
    ]
    costs = [each.cost_usd for each in sessions if each.cost_usd is not None]
    if costs:
        parts.append(money(sum(costs)))
    return "   ".join(parts)
