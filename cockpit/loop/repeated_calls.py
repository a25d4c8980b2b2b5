"""Stuck: calls that come again and again and bring nothing new.

The third equal call, or the second round of a cycle, brings a notice; the fifth, or the third round, ends the
session. See ``docs/reference/loop.md``, stuck.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, digest, parse_json
from cockpit.loop.phases.tool_results import Exchange, pinned_text_fact
from cockpit.store.context.facts import Fact
from cockpit.store.sessions.sessions import STUCK, Session

NOTICE_AT: Final = 3
END_AT: Final = 5
"""The equal call that brings the notice, and the one that ends the session."""

_CYCLES = (2, 3)
_ROUNDS_TO_END = 3
_MOST_WAVES = 12
"""Waves that are looked back on; five equal calls in more of them are not a loop."""
_MOST_REFUSALS = 50
_MOST_NAMED = 200
_NOTHING_DONE = ("refused", "malformed")
_WORDING = ("purpose", "question", "escalation", "reason")
"""Arguments that say why: in other words it is the same call."""
_RECORD = "update_wip"
"""The agent's own record brings nothing new, whatever it says."""
_DURATION = re.compile(r"\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?)\b")
"""Differs from run to run without a reason."""


class Made(Struct, frozen=True):
    """A call and its end, as they are compared."""

    call: str
    """The tool and its arguments, or the error of a malformed one."""
    end: str
    """Its status and result; the status alone where nothing was done."""
    is_done: bool = True
    """False where it was refused or not understood: such a call brings nothing new, even the first time."""


class Repeat(Struct, frozen=True):
    """Calls that repeat without anything new in between."""

    calls: tuple[str, ...]
    """One call, or those of the cycle."""
    ends: bool
    """Whether the session ends by it."""


def find_repeat(calls: Sequence[Made]) -> Repeat | None:
    """Return how the last of the calls repeats those before it, in the order in which they were made.

    A call that was done and had not ended like this before is new, and the count begins behind it.
    """
    if not calls:
        return None
    seen: set[Made] = set()
    newest = 0
    for place, each in enumerate(calls):
        if each.is_done and each not in seen:
            newest = place
        seen.add(each)
    last = calls[-1]
    times = calls[newest:].count(last)
    if times >= NOTICE_AT:
        return Repeat((last.call,), times >= END_AT or _rounds(calls) >= _ROUNDS_TO_END)
    for length in _CYCLES:
        if (rounds := _count_rounds(calls, length)) > 1:
            cycle = tuple(each.call for each in calls[-length:])
            return Repeat(cycle, rounds >= _ROUNDS_TO_END)
    return None


def _rounds(calls: Sequence[Made]) -> int:
    return max(_count_rounds(calls, length) for length in _CYCLES)


def _count_rounds(calls: Sequence[Made], length: int) -> int:
    """Return how often the last ``length`` calls, which are not all equal, stand at the end in a row."""
    cycle = list(calls[-length:])
    if len(set(cycle)) < 2:
        return 1
    rounds = 1
    while list(calls[-length * (rounds + 1) : -length * rounds]) == cycle:
        rounds += 1
    return rounds


def read_repeat(
    connection: sqlite3.Connection,
    session: Session,
    last: Sequence[Exchange],
    *,
    is_resumed: bool = False,
) -> Repeat | None:
    """Return how the session repeats itself with its ``last`` exchanges, those of one wave.

    Words of the user begin the count anew, as does the end of a stuck session; ``is_resumed`` looks past the
    latter. Calls that were refused or malformed in the task's other sessions count as well.
    """
    stuck_in = 0 if is_resumed else int(session.result.get("wave", 0))
    if not last or not last[-1].call or last[0].wave == stuck_in:
        return None
    rows = connection.execute(
        "SELECT f.provenance_json FROM session_facts AS s JOIN observed_facts AS f USING(fact_id)"
        " WHERE s.session_id=? AND s.source_type='exchange' AND s.ordinal>max(?, ?,"
        " (SELECT coalesce(max(ordinal), 0) FROM session_facts"
        " WHERE session_id=? AND source_type='person'))"
        " AND s.ordinal<=? ORDER BY s.ordinal, s.position",
        (
            session.session_id,
            stuck_in + 1,
            last[0].wave - _MOST_WAVES,
            session.session_id,
            last[0].wave,
        ),
    ).fetchall()
    calls = [*_read_task_refusals(connection, session), *(_read_made(text) for (text,) in rows)]
    calls += [_made(each.call, each.arguments, each.status, each.result) for each in last]
    if any(each.call != _RECORD for each in last):
        calls = [each for each in calls if each.call.partition(" ")[0] != _RECORD]
    return find_repeat(calls)


def _read_task_refusals(connection: sqlite3.Connection, session: Session) -> list[Made]:
    """Return the refused and malformed calls of the task's other sessions since one of them was stuck."""
    if session.task_id is None:
        return []
    rows = connection.execute(
        "SELECT f.provenance_json FROM sessions AS other"
        " JOIN session_facts AS s USING(session_id) JOIN observed_facts AS f USING(fact_id)"
        " WHERE other.task_id=? AND other.session_id<>? AND s.source_type='exchange'"
        " AND other.created_at>(SELECT coalesce(max(created_at), '') FROM sessions"
        " WHERE task_id=other.task_id AND outcome=?)"
        " AND f.provenance_json->>'$.status' IN ('refused', 'malformed')"
        " ORDER BY other.created_at, s.ordinal, s.position LIMIT ?",
        (session.task_id, session.session_id, STUCK, _MOST_REFUSALS),
    )
    return [_read_made(text) for (text,) in rows]


def _read_made(provenance: str) -> Made:
    exchange = parse_json(provenance)
    return _made(
        str(exchange["call"]), exchange["arguments"], exchange["status"], exchange["result"]
    )


def _made(name: str, arguments: Mapping[str, Any], status: str, result: str) -> Made:
    compared = {key: value for key, value in arguments.items() if key not in _WORDING}
    call = f"{name} {canonical_json(compared)}" if compared else name
    if status in _NOTHING_DONE:
        return Made(call if status == "refused" else f"{call}: {result}", status, is_done=False)
    return Made(call, f"{status}: {_DURATION.sub('', result)}")


def describe_repeat(repeat: Repeat) -> str:
    """Return the calls of a repeat as a phrase, for the agent and for people."""
    calls = " and ".join(dict.fromkeys(_clip(call) for call in repeat.calls))
    return f"again and again, without anything new: {calls.rstrip('.')}"


def repeat_notice(repeat: Repeat) -> Fact:
    """Return what the agent is told of it; it stays in every packet."""
    text = (
        f"You repeat yourself: {describe_repeat(repeat)}. The answer will not change. Do something else: read"
        " the refusal and follow it, use what the context has already, ask for other context, change a file,"
        " or call `finish` with the status blocked and say what you lack. Repeated further, the session ends."
    )
    ref = digest([*repeat.calls])[:12]
    return pinned_text_fact("notice", f"notice:repeat-{ref}", text)


def _clip(text: str) -> str:
    return text if len(text) <= _MOST_NAMED else f"{text[:_MOST_NAMED]}…"
