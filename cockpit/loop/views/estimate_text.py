"""The wording of estimates, the same on the screen, in headless output and in commands.

See ``docs/reference/planner.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cockpit.core.text import pluralize
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.estimates import Expected, Range
from cockpit.store.sessions.sessions import RUNNER_PREFIX

_BASES = {
    "history": "from {past}",
    "defaults": "from shipped defaults, with few or no past tasks of its kind",
}


def expected_text(expected: Expected, unit: str = "wave") -> str:
    """Return ``about 6 waves (3–14), 48k tokens (20k–160k), $0.21 ($0.08–$0.70)``."""
    likely = round(expected.waves.likely)
    parts = [f"about {pluralize(likely, unit)} {_range(expected.waves, _count)}".rstrip()]
    tokens = expected.tokens
    if tokens.high > 0:
        parts.append(f"{_tokens(tokens.likely)} tokens {_range(tokens, _tokens)}".rstrip())
    cost = expected.cost_usd
    if cost is not None and cost.high > 0:
        parts.append(f"{money_text(cost.likely)} {_range(cost, money_text)}".rstrip())
    return ", ".join(parts)


def unit_text(unit: str, model: str) -> str:
    """Return what is counted: an external agent's session has turns; a task counts those of all its roles."""
    return "turn" if unit == "session" and model.startswith(RUNNER_PREFIX) else "wave"


def basis_text(expected: Expected) -> str:
    """Return what the estimate rests on, in words; with an unknown price, that too."""
    past = pluralize(expected.history, "past task")
    basis = _BASES.get(expected.basis, "{past}").format(past=past)
    return basis if expected.cost_usd is not None else f"{basis}; no price is known"


def body_text(body: Mapping[str, Any]) -> list[str]:
    """Return the lines about the estimate of a session, as
    :func:`~cockpit.loop.planner.read_session_estimate.read_session_estimate` returns it."""
    lines = [f"kind    {body['kind']}"]
    unit = str(body["counts"]).removesuffix("s")
    for name in ("first", "now"):
        if body[name] is not None:
            expected = read_part(Expected, body[name])
            lines.append(f"{name:<7} {expected_text(expected, unit)} · {basis_text(expected)}")
    if body["actual"] is not None:
        actual = body["actual"]
        cost = "" if not actual["cost_usd"] else f", {money_text(actual['cost_usd'])}"
        lines.append(
            f"took    {pluralize(actual['waves'], unit)}, {_tokens(actual['tokens'])} tokens{cost}"
        )
    return lines


def total_basis_text(total: Expected, tasks: int) -> str:
    """Return what the estimate of so many tasks rests on, in words."""
    price = "" if total.cost_usd is not None else "; no price is known"
    if total.history == tasks:
        return f"from past tasks of their types{price}"
    if not total.history:
        return f"from shipped defaults, with few or no past tasks of these types{price}"
    share = f"{tasks - total.history} of {pluralize(tasks, 'task')}"
    return f"from past tasks; for {share} from shipped defaults{price}"


def work_text(work_ms: float) -> str:
    """Return a working time in words: ``40 s``, ``12 min``, ``3.5 h``."""
    seconds = work_ms / 1_000
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


def money_text(usd: float) -> str:
    """Return dollars with cents; amounts under a cent keep the digits that matter."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def _range(span: Range, write: Callable[[float], str]) -> str:
    low, high = write(span.low), write(span.high)
    return "" if low == high else f"({low}–{high})"


def _count(value: float) -> str:
    return f"{round(value):,}"


def _tokens(count: float) -> str:
    for limit, divisor, suffix in ((1_000, 1, ""), (999_500, 1_000, "k")):
        if count < limit:
            return f"{count / divisor:.0f}{suffix}"
    return f"{count / 1_000_000:.1f}M"
