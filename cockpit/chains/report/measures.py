"""The measures of chains: what a session could hold, got done, and had to leave.

Folded from the journal alone, so that they can be had for any time, and compared before and after any
date. Source: seed 004, phase 4 and "Success Metrics"; design of work, "Measures".
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cockpit.store.journal.event_types import Action

OPEN = "9999"
"""As ``before``: up to now."""

_ACTIONS = (
    Action.CHAIN_CREATED,
    Action.CHAIN_RESUMED,
    Action.CHAIN_SESSION_STARTED,
    Action.CHAIN_SESSION_ENDED,
    Action.CHAIN_SESSION_CRASHED,
    Action.BATCH_COMPLETED,
    Action.TASK_RUN_STEP,
)
_REVIEWS = ("spec_review", "quality_review")


@dataclass(slots=True)
class _Session:
    """What is known of one session of a chain that ended."""

    tokens: int = 0
    limit: int = 0
    dropped: float = 0.0
    done: int = 0
    batches: int = 0
    completed: int = 0
    put_down: bool = False


@dataclass(frozen=True, slots=True)
class Measures:
    """What was measured from ``since`` on and before ``before`` (moments as they are stored).

    The tuples have one number a session, or a chain, in the order in which they ended, or began. A
    share is 0 to 1, and None where there was nothing to measure. ``context`` is the tokens of a session
    against its limit, ``dropped`` the largest share of utility that one of its packets left out.
    """

    since: str
    before: str
    context: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    dropped: tuple[float, ...] = ()
    tasks: tuple[int, ...] = ()
    chains: tuple[int, ...] = ()
    batches: Mapping[str, int] = field(
        default_factory=lambda: {"completed": 0, "interrupted": 0, "failed": 0}
    )
    batch_shares: tuple[float, ...] = ()
    reviews: Mapping[str, int] = field(default_factory=lambda: {"passed": 0, "failed": 0})
    review_days: tuple[float, ...] = ()
    interrupted: int = 0
    crashed: int = 0
    restarts: int = 0
    tasks_done: int = 0
    tasks_blocked: int = 0

    @property
    def sessions(self) -> int:
        """Sessions of chains that ended."""
        return len(self.tokens)

    @property
    def context_mean(self) -> float | None:
        """The mean share of its limit that a session used."""
        return _mean(self.context)

    @property
    def batch_completion(self) -> float | None:
        """The share of batches of which every task came to its end."""
        return _share(self.batches.get("completed", 0), sum(self.batches.values()))

    @property
    def review_failure(self) -> float | None:
        """The share of reviews that did not pass."""
        return _share(self.reviews.get("failed", 0), sum(self.reviews.values()))

    @property
    def tasks_mean(self) -> float | None:
        """Tasks done in a session."""
        return _mean(self.tasks)

    @property
    def chain_mean(self) -> float | None:
        """Sessions of a chain."""
        return _mean(self.chains)

    @property
    def interruption(self) -> float | None:
        """The share of sessions that ended with a task under way."""
        return _share(self.interrupted, self.sessions)

    def body(self) -> dict[str, Any]:
        """As ``cockpit stats --json`` prints it."""
        return {
            "since": self.since or None,
            "before": None if self.before == OPEN else self.before,
            "sessions": self.sessions,
            "context": {
                "mean": self.context_mean,
                "highest": max(self.context, default=None),
                "tokens_mean": _mean(self.tokens),
                "dropped_highest": max(self.dropped, default=None),
                "each": list(self.context),
            },
            "batches": {"completion": self.batch_completion, **self.batches},
            "chains": {
                "count": len(self.chains),
                "sessions_mean": self.chain_mean,
                "sessions_most": max(self.chains, default=None),
                "each": list(self.chains),
            },
            "tasks": {
                "done": self.tasks_done,
                "blocked": self.tasks_blocked,
                "per_session": self.tasks_mean,
                "each": list(self.tasks),
            },
            "reviews": {"failure": self.review_failure, **self.reviews},
            "interrupted": {"sessions": self.interrupted, "share": self.interruption},
            "crashed": self.crashed,
            "manual_restarts": self.restarts,
        }


def measure_chains(connection: sqlite3.Connection, since: str = "", before: str = OPEN) -> Measures:
    """The measures of what happened from ``since`` on and before ``before``.

    A session counts where it ended, a chain where it began, with all of its sessions; of a session that
    began earlier, what it did before counts as well.
    """
    marks = ",".join("?" * len(_ACTIONS))
    rows = connection.execute(
        f"SELECT at, action, detail_json FROM journal WHERE action IN ({marks}) ORDER BY seq",  # noqa: S608
        tuple(str(action) for action in _ACTIONS),
    )
    return _folded(((at, action, json.loads(text)) for at, action, text in rows), since, before)


def newest_row(connection: sqlite3.Connection) -> int:
    """The number of the newest row that a measure is made of; 0 without any."""
    found = 0
    for action in _ACTIONS:
        row = connection.execute("SELECT max(seq) FROM journal WHERE action=?", (str(action),))
        found = max(found, row.fetchone()[0] or 0)
    return found


def _folded(
    rows: Iterable[tuple[str, str, Mapping[str, Any]]], since: str, before: str
) -> Measures:
    fold = _Fold()
    for at, action, detail in rows:
        fold.take(at, action, detail, inside=since <= at < before)
    ended = fold.ended
    return Measures(
        since,
        before,
        context=tuple(each.tokens / each.limit for each in ended if each.limit),
        tokens=tuple(each.tokens for each in ended),
        dropped=tuple(each.dropped for each in ended),
        tasks=tuple(each.done for each in ended),
        chains=tuple(count for chain, count in fold.lengths.items() if chain in fold.begun),
        batches=fold.batches,
        batch_shares=tuple(each.completed / each.batches for each in ended if each.batches),
        reviews=fold.reviews,
        review_days=tuple(sum(each) / len(each) for each in fold.days.values()),
        interrupted=sum(each.put_down for each in ended),
        crashed=fold.crashed,
        restarts=fold.restarts,
        tasks_done=fold.done,
        tasks_blocked=fold.blocked,
    )


@dataclass(slots=True)
class _Fold:
    """The rows so far."""

    sessions: dict[tuple[str, int], _Session] = field(default_factory=dict)
    ended: list[_Session] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    batches: dict[str, int] = field(
        default_factory=lambda: {"completed": 0, "interrupted": 0, "failed": 0}
    )
    reviews: dict[str, int] = field(default_factory=lambda: {"passed": 0, "failed": 0})
    days: dict[str, list[int]] = field(default_factory=dict)
    crashed: int = 0
    restarts: int = 0
    done: int = 0
    blocked: int = 0

    def take(self, at: str, action: str, detail: Mapping[str, Any], *, inside: bool) -> None:
        chain = str(detail.get("chain_id", ""))
        if action == Action.CHAIN_CREATED:
            self.lengths[chain] = 0
            self.begun |= {chain} if inside else set()
        elif action == Action.CHAIN_RESUMED:
            self.restarts += inside
        elif action == Action.CHAIN_SESSION_STARTED:
            self.lengths[chain] = self.lengths.get(chain, 0) + 1
        elif action == Action.TASK_RUN_STEP:
            if inside:
                self._review(at, detail)
        else:
            key = (chain, int(detail["ordinal"]))
            session = self.sessions.setdefault(key, _Session())
            if action == Action.BATCH_COMPLETED:
                self._batch(session, detail, inside)
            else:
                self._end(session, detail, inside, crashed=action == Action.CHAIN_SESSION_CRASHED)

    def _batch(self, session: _Session, detail: Mapping[str, Any], inside: bool) -> None:
        outcome = str(detail["outcome"])
        session.batches += 1
        session.completed += outcome == "completed"
        session.done += len(detail["done"])
        session.put_down |= bool(detail["interrupted"])
        if inside:
            self.batches[outcome] = self.batches.get(outcome, 0) + 1
            self.done += len(detail["done"])
            self.blocked += len(detail["blocked"])

    def _review(self, at: str, detail: Mapping[str, Any]) -> None:
        if detail["step"] in _REVIEWS and detail["outcome"]:
            failed = detail["outcome"] != "PASS"
            self.reviews["failed" if failed else "passed"] += 1
            self.days.setdefault(at[:10], []).append(int(failed))

    def _end(
        self, session: _Session, detail: Mapping[str, Any], inside: bool, *, crashed: bool
    ) -> None:
        session.tokens = int(detail["tokens"])
        session.limit = int(detail["token_limit"])
        session.dropped = float(detail["dropped_share"])
        session.put_down |= crashed and bool(detail.get("freed"))
        if inside:
            self.ended.append(session)
            self.crashed += crashed


def _mean(numbers: tuple[float, ...] | tuple[int, ...]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
