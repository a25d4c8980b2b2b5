"""The state of one project among all, from its store, which is opened read only and never changed.

Its cost does not grow with the journal: it is read where its files have changed, and every read of a table is
indexed and bounded. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Literal

import msgspec

from cockpit.core.clock import Clock, format_time
from cockpit.core.errors import CockpitError, StoreBusy, StoreTooNew
from cockpit.core.project.known_projects import KnownProject, read_branch
from cockpit.core.state_folder import describe_problem
from cockpit.store.db.connection import connect, translate_errors
from cockpit.store.db.migrate import is_current
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.trust import trust_rules

Condition = Literal["reading", "open", "empty", "gone", "locked", "newer", "older", "broken"]
"""Whether a project can be read and decided in, which only an ``open`` one can."""
MOST_PROPOSALS = 50
"""Pending proposals of a project that are read, the oldest; the others are only counted."""
_MOST_COUNTED = 1_000
_BUSY_MS = 50
"""Milliseconds that a locked store may keep a look waiting."""
_STALE_S = 5.0
"""Seconds after which tables are read again without a change: leases of dead processes run out."""
_TICK_NS = 100_000_000
"""Nanoseconds within which two writes of a file may have the same time."""
_PENDING = "SELECT count(*) FROM (SELECT 1 FROM proposals WHERE status='pending' LIMIT ?)"
_LIVE = (
    "SELECT count(*), coalesce(sum(agent<>''), 0) FROM (SELECT agent FROM sessions"
    " WHERE chain_id IS NULL AND status IN ('running','waiting')"
    " AND (lease_expires_at>? OR (agent<>'' AND status='running')) ORDER BY updated_at DESC LIMIT ?)"
)
_CHAINS = "SELECT count(*) FROM chains WHERE status IN ('running','draining')"
_ASKER = "SELECT title, task_id, role, agent, branch, lease_expires_at>? FROM sessions"
_OF_SESSION = f"{_ASKER} WHERE session_id=?"


class Asker(msgspec.Struct, frozen=True):
    """The session that a proposal is of."""

    title: str
    task_id: str
    role: str
    agent: str
    branch: str
    is_driven: bool
    """Whether a process drives it now, and goes on with the decision."""


class ProjectState(msgspec.Struct, frozen=True):
    """One project as the list of all projects shows it."""

    project: KnownProject
    condition: Condition = "reading"
    problem: str = ""
    """Why it cannot be read, and what to do, in a sentence."""
    branch: str = ""
    """The branch of its main checkout."""
    running: int = 0
    """Sessions outside chains that a process drives, those of external agents included."""
    agents: int = 0
    """Those of external agents among them."""
    chains: int = 0
    waiting: int = 0
    """Pending proposals, all of them up to a thousand."""
    proposals: tuple[Proposal, ...] = ()
    """The oldest of them, oldest first."""
    askers: Mapping[str, Asker] = {}
    """The sessions of these, by id."""
    rules: frozenset[str] = frozenset()
    """The trust rules in force by which some of them are short cards."""


class ProjectReader:
    """Reads one project, look after look. Not for two threads at once."""

    def __init__(self, project: KnownProject, clock: Clock) -> None:
        self.project = project
        self.state = ProjectState(project)
        self._clock = clock
        self._files: tuple[int, ...] = ()
        """What the store's files were when it was read last, where a later write shows in them."""
        self._read_at = float("-inf")

    def has_new_files(self) -> bool:
        """Whether the store's files are others than at the last look."""
        files = self._look_at_files()
        return not files or files != self._files

    def look(self) -> ProjectState:
        """Return the state now. Never raises: what cannot be read is a state that says so."""
        try:
            self.state = self._look()
        except StoreTooNew as error:
            self.state = self._without("newer", str(error))
        except StoreBusy:
            self.state = self._without(
                "locked", "Another program keeps its store locked; it is read once that ends."
            )
        except (CockpitError, sqlite3.Error, OSError) as error:
            self.state = self._without("broken", str(error))
        except Exception as error:  # whatever one store holds, the others are shown
            self.state = self._without("broken", f"Its store cannot be read: {error}.")
        return self.state

    def _without(self, condition: Condition, problem: str) -> ProjectState:
        self._files = ()
        branch = read_branch(self.project) if condition != "gone" else ""
        return ProjectState(self.project, condition, problem, branch)

    def _look(self) -> ProjectState:
        project = self.project
        if problem := describe_problem(str(project.state)):
            return self._without("broken", problem)
        if project.problem:
            return self._without("broken", project.problem)
        if not project.exists:
            return self._without(
                "gone",
                f"It is not at {project.home}: deleted, moved, or not mounted. `cockpit projects add"
                " --remove` takes it off the list.",
            )
        if not os.path.lexists(project.database):
            return self._without("empty", "")
        files, branch = self._look_at_files(), read_branch(project)
        if files and files == self._files and not self._is_stale:
            return _replace(self.state, project=project, branch=branch)
        with translate_errors(project.database):
            opened = connect(project.database, read_only=True, busy_timeout_ms=_BUSY_MS)
            with closing(opened) as connection:
                connection.execute("PRAGMA query_only=ON")
                connection.execute("BEGIN")
                # Another cockpit may have migrated the store since the last look.
                if not is_current(connection):
                    return self._without(
                        "older",
                        "An older cockpit wrote its store. Open the project once: that brings it up to date.",
                    )
                now = format_time(self._clock.now())
                state = ProjectState(project, "open", branch=branch)
                state = _read_counts(connection, _read_queue(connection, state, now), now)
        self._files, self._read_at = files, self._clock.monotonic()
        return state

    def _look_at_files(self) -> tuple[int, ...]:
        """Return what tells the store's files from others; nothing where a write just now may not show."""
        numbers: list[int] = []
        now_ns = int(self._clock.now().timestamp() * 1e9)
        for path in (str(self.project.database), f"{self.project.database}-wal"):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if not status.st_size:
                continue  # whoever reads a store may leave an empty log behind
            if now_ns - status.st_mtime_ns < _TICK_NS:
                return ()
            numbers += [status.st_ino, status.st_size, status.st_mtime_ns]
        return tuple(numbers)

    @property
    def _is_stale(self) -> bool:
        """Whether tables are to be read again without a change."""
        since = self._clock.monotonic() - self._read_at
        return bool(self.state.running or self.state.waiting) and since >= _STALE_S


def _read_queue(connection: sqlite3.Connection, state: ProjectState, now: str) -> ProjectState:
    pending = proposals.select_pending(connection, MOST_PROPOSALS)
    waiting = len(pending)
    if waiting == MOST_PROPOSALS:
        (waiting,) = connection.execute(_PENDING, (_MOST_COUNTED,)).fetchone()
    askers: dict[str, Asker] = {}
    for session_id in dict.fromkeys(each.session_id for each in pending if each.session_id):
        row = connection.execute(_OF_SESSION, (now, session_id)).fetchone()
        if row is not None:
            title, task_id, role, agent, branch, is_driven = row
            askers[session_id] = Asker(title, task_id or "", role, agent, branch, bool(is_driven))
    return _replace(
        state,
        waiting=waiting,
        proposals=tuple(pending),
        askers=askers,
        rules=frozenset(_read_rules(connection, pending)),
    )


def _read_rules(connection: sqlite3.Connection, pending: list[Proposal]) -> set[str]:
    """Return the rules in force that these proposals name for a short card."""
    in_force = set()
    for each in pending:
        card = each.body.get("card")
        rule_id = card.get("rule_id") if isinstance(card, dict) else None
        if not isinstance(rule_id, str) or not rule_id:
            continue
        rule = trust_rules.find(connection, rule_id)
        if rule is not None and rule.status == "active":
            in_force.add(rule_id)
    return in_force


def _read_counts(connection: sqlite3.Connection, state: ProjectState, now: str) -> ProjectState:
    running, agents = connection.execute(_LIVE, (now, _MOST_COUNTED)).fetchone()
    (chains,) = connection.execute(_CHAINS).fetchone()
    return _replace(state, running=running, agents=agents, chains=chains)


_replace = msgspec.structs.replace
