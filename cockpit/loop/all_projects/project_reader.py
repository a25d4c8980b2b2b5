"""The state of one project among all, from its store, which is opened read only and never changed.

Its cost does not grow with the journal: the rows that came since the last look say whether tables are read
again, and every read of a table is indexed and bounded. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
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
_ROWS = 500
"""Rows of the journal that one look goes through; after more it reads all tables again."""
_QUEUE = ("proposal.", "trust.")
_COUNTS = ("session.", "chain.", "agent.", "worker.", "task.run.")
_MIGRATIONS = "SELECT count(*), max(name) FROM migrations"
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
    """Reads one project, look after look, on one connection. Not for two threads at once."""

    def __init__(self, project: KnownProject, clock: Clock) -> None:
        self.project = project
        self.state = ProjectState(project)
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        """Device and inode of the file that is open."""
        self._version = self._seq = -1
        self._files: tuple[int, ...] = ()
        """What the store's files were when it was read last, where a later write shows in them."""
        self._read_at = float("-inf")
        self._migrations: tuple[int, str] | None = None
        """How many migrations the store has, and the last of them, when they were checked."""

    def close(self) -> None:
        """Close the store, and forget what was read of it."""
        self._seq, self._files = -1, ()
        self.rest()

    def rest(self) -> None:
        """Close the store until it is written to: the next look goes on from what was read."""
        connection, self._connection = self._connection, None
        self._version = -1
        if connection is not None:
            connection.close()

    def look(self) -> ProjectState:
        """Return the state now. Never raises: what cannot be read is a state that says so."""
        try:
            self.state = self._look()
            if self.state.project != self.project:  # it was moved since its tables were read
                self.state = _replace(self.state, project=self.project)
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
        self.close()
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
                f"It is not at {project.home}: deleted, moved, or not mounted. `cockpit projects forget`"
                " takes it off the list.",
            )
        try:
            info = project.database.lstat()
        except FileNotFoundError:
            return self._without("empty", "")
        if self._file != (info.st_dev, info.st_ino):
            self.close()
        files = self._look_at_files(info)
        if self._connection is None and files and files == self._files and not self._is_stale:
            return self._with_branch()
        self._files = files
        with translate_errors(project.database):
            if self._connection is None:
                connection = connect(project.database, read_only=True, busy_timeout_ms=_BUSY_MS)
                self._connection, self._file = connection, (info.st_dev, info.st_ino)
                connection.execute("PRAGMA query_only=ON")
            return self._read(self._connection)

    def _look_at_files(self, database: os.stat_result) -> tuple[int, ...]:
        """Return size and time of the store's files; nothing where a write just now may not show in them."""
        try:
            log = os.lstat(f"{self.project.database}-wal")
        except FileNotFoundError:
            log = None
        stats = [database] if log is None else [database, log]
        now_ns = int(self._clock.now().timestamp() * 1e9)
        if any(now_ns - each.st_mtime_ns < _TICK_NS for each in stats):
            return ()
        return tuple(number for each in stats for number in (each.st_size, each.st_mtime_ns))

    @property
    def _is_stale(self) -> bool:
        """Whether tables are to be read again without a change."""
        since = self._clock.monotonic() - self._read_at
        return bool(self.state.running or self.state.waiting) and since >= _STALE_S

    def _with_branch(self) -> ProjectState:
        """Return the state that was read last, with the branch of now."""
        branch = read_branch(self.project)
        return self.state if branch == self.state.branch else _replace(self.state, branch=branch)

    def _read(self, connection: sqlite3.Connection) -> ProjectState:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        is_first, is_stale = self._seq < 0, self._is_stale
        if version == self._version and not is_first and not is_stale:
            return self._with_branch()
        connection.execute("BEGIN")
        try:
            # Another cockpit may have migrated the store since the last look.
            is_checked = (
                not is_first and connection.execute(_MIGRATIONS).fetchone() == self._migrations
            )
            if not is_checked and not is_current(connection):
                return self._without(
                    "older",
                    "An older cockpit wrote its store. Open the project once: that brings it up to date.",
                )
            self._migrations = connection.execute(_MIGRATIONS).fetchone()
            reads_queue, reads_counts, seq = self._changes(connection)
            if is_stale:
                reads_queue = reads_counts = True
            branch = read_branch(self.project)
            state = _replace(self.state, condition="open", problem="", branch=branch)
            now = format_time(self._clock.now())
            if reads_queue:
                state = _read_queue(connection, state, now)
            if reads_counts:
                state = _read_counts(connection, state, now)
        finally:
            if self._connection is connection:
                connection.execute("ROLLBACK")
        self._version, self._seq = version, seq
        if reads_queue and reads_counts:
            self._read_at = self._clock.monotonic()
        return state

    def _changes(self, connection: sqlite3.Connection) -> tuple[bool, bool, int]:
        """Return whether the queue and the counts may have changed, and the newest row."""
        (newest,) = connection.execute("SELECT coalesce(max(seq), 0) FROM journal").fetchone()
        if self._seq < 0 or newest < self._seq or newest - self._seq > _ROWS:
            return True, True, newest
        rows = connection.execute(
            "SELECT action FROM journal WHERE seq>? ORDER BY seq LIMIT ?", (self._seq, _ROWS)
        )
        actions = {action for (action,) in rows}
        return (
            any(action.startswith(_QUEUE) for action in actions),
            any(action.startswith(_COUNTS) for action in actions),
            newest,
        )


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
        if rule is None or rule.status != "active":
            continue
        if trust_rules.is_as_accepted(connection, rule):
            in_force.add(rule_id)
    return in_force


def _read_counts(connection: sqlite3.Connection, state: ProjectState, now: str) -> ProjectState:
    running, agents = connection.execute(_LIVE, (now, _MOST_COUNTED)).fetchone()
    (chains,) = connection.execute(_CHAINS).fetchone()
    return _replace(state, running=running, agents=agents, chains=chains)


_replace = msgspec.structs.replace
