"""A tool call and the plan of an external agent, as lines of the conversation."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cockpit.loop.views.state_signs import state_sign
from cockpit.store.journal.details import agent_turns, agents
from widgets.views import LineView

NOT_GATED = "seen, not gated"
_TEXT_MOST = 400
_PLACES = 3
_STEPS = 12
_STEP_STATES = {"completed": "done", "pending": "todo"}


class CallLines(msgspec.Struct, frozen=True):
    """One call: its lines, and what it changed or said, which can be folded."""

    lines: tuple[LineView, ...]
    text: str = ""


def draw_call(detail: agents.RunnerToolStarted | agents.RunnerToolEnded) -> CallLines:
    """Return the lines of a call that began or ended: its kind and title, its places, its result."""
    kind = detail.kind if isinstance(detail.kind, str) else ""
    title = f"{kind} · {detail.title}" if kind and kind != "other" else detail.title
    places = [place for place in _places(detail) if place not in detail.title]
    below = [LineView(" ", ", ".join(places[:_PLACES]) + _more(len(places)))] if places else []
    if isinstance(detail, agents.RunnerToolStarted):
        return CallLines((LineView("▶", title[:_TEXT_MOST], "warn", "running"), *below))
    remarks = [f"exit {detail.exit_code}"] if detail.exit_code else []
    remarks += ["failed"] if detail.failed else []
    remarks += [NOT_GATED] if detail.gated is False else []
    sign, tone = ("✗", "bad") if detail.failed else ("✔", "good")
    if detail.failed and detail.summary:
        below.append(LineView(" ", detail.summary[:_TEXT_MOST]))
    diff = detail.diff if isinstance(detail.diff, str) else ""
    head = LineView(sign, title[:_TEXT_MOST], tone, " · ".join(remarks))  # type: ignore[arg-type]
    return CallLines((head, *below), diff or detail.summary)


def draw_plan(detail: agent_turns.RunnerPlan) -> Iterator[LineView]:
    """Yield the lines of a plan: how far it is, and its steps."""
    ended = sum(step.status == "completed" for step in detail.steps)
    yield LineView("☰", f"plan: {ended} of {len(detail.steps)}", "accent")
    for step in detail.steps[:_STEPS]:
        look = state_sign("task", _STEP_STATES.get(step.status, step.status))
        tone = look.tone if step.status == "in_progress" else "dim"
        yield LineView(" ", f"{look.sign} {step.text}"[:_TEXT_MOST], tone)
    if len(detail.steps) > _STEPS:
        yield LineView(" ", f"{len(detail.steps) - _STEPS} more")


def _places(detail: agents.RunnerToolStarted | agents.RunnerToolEnded) -> list[str]:
    return detail.places if isinstance(detail.places, list) else []


def _more(count: int) -> str:
    return f" and {count - _PLACES} more" if count > _PLACES else ""
