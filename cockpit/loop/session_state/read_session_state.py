"""The state of a session: files read and changed, tests run, facts in its packet.

It is derived from the store alone, so it survives a restart and is the same in every process. See
``docs/reference/loop.md``, state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from cockpit.core.canonical_json import parse_json
from cockpit.store.context import facts, packets
from cockpit.store.journal.event_types import Action

MOST_FACTS = 20_000
"""Facts of files that are read for a state; a session with more has read more than it can use."""
_WRITES = ("write_file", "edit_file")


class FileRead(Struct, frozen=True):
    """Lines of a file that the session has read, in one version."""

    path: str
    """From the project's root."""
    version: str
    """The sha256 of the whole file that they were taken from; empty where it is not known."""
    first: int
    """The first line, from 1; 0 for an outline."""
    last: int
    wave: int
    """The ordinal of the wave that read them first."""
    is_current: bool
    """Whether no later look found another content."""
    in_packet: bool
    """Whether the newest packet contains them in full."""


class FileChanged(Struct, frozen=True):
    """A file that the session's approved actions have changed."""

    path: str
    by: str
    """The type of the last action: ``write_file``, ``edit_file``, or ``agent``."""
    wave: int = 0
    """The ordinal of the wave of that action; 0 for an external agent, which has no waves."""


class TestRun(Struct, frozen=True):
    """The counts of a command that ran tests."""

    __test__ = False  # not a test of pytest's

    command: tuple[str, ...]
    passed: int
    failed: int
    """Failures and errors."""


class SessionState(Struct, frozen=True):
    """What a session has done with its project so far."""

    session_id: str
    files_read: tuple[FileRead, ...] = ()
    """By path, then lines."""
    files_changed: tuple[FileChanged, ...] = ()
    """By path."""
    tests: tuple[TestRun, ...] = ()
    """Oldest first."""
    facts: int = 0
    """Facts that it has observed and that were not superseded."""
    facts_in_packet: int = 0
    """Facts in its newest packet."""

    @property
    def visited_files(self) -> frozenset[str]:
        """Paths of which it has read anything."""
        return frozenset(file.path for file in self.files_read)

    @property
    def modified_files(self) -> frozenset[str]:
        """Paths that it has changed."""
        return frozenset(file.path for file in self.files_changed)

    def is_redundant_read(self, path: str) -> bool:
        """Whether reading ``path`` again would show nothing new: all of its newest version is in the packet.

        A file that was changed since its last reading is never redundant.
        """
        changed = next((file for file in self.files_changed if file.path == path), None)
        parts = [part for part in self.files_read if part.path == path and part.is_current]
        if changed is not None:
            # A wave acts after it has read: what it read of a file that it then changed is old.
            parts = [part for part in parts if changed.wave and part.wave > changed.wave]
        return bool(parts) and all(part.in_packet for part in parts)

    def get_stats(self) -> dict[str, int]:
        """Return how many files it visited and modified, test runs, and facts."""
        return {
            "visited_files": len(self.visited_files),
            "modified_files": len(self.modified_files),
            "test_runs": len(self.tests),
            "facts": self.facts,
            "facts_in_packet": self.facts_in_packet,
        }


def read_session_state(connection: sqlite3.Connection, session_id: str) -> SessionState:
    """Derive the state of a session; a session that is not stored has an empty one."""
    packet = packets.find_before(connection, session_id, 2**31)
    in_full = (
        {
            fact_id
            for fact_id, (_, entry) in packet.packet.in_force().items()
            if packets.detail_of(entry) == 0
        }
        if packet is not None
        else set()
    )
    (count,) = connection.execute(
        "SELECT count(*) FROM session_facts WHERE session_id=? AND superseded_at IS NULL",
        (session_id,),
    ).fetchone()
    return SessionState(
        session_id,
        _list_files_read(connection, session_id, in_full),
        _list_files_changed(connection, session_id),
        _list_tests(connection, session_id),
        int(count),
        0 if packet is None else packet.packet.facts,
    )


def _list_files_read(
    connection: sqlite3.Connection, session_id: str, in_full: set[str]
) -> tuple[FileRead, ...]:
    rows = connection.execute(
        "SELECT fact_id, ordinal, superseded_at IS NULL FROM session_facts"
        " WHERE session_id=? AND source_type='file' ORDER BY ordinal, position LIMIT ?",
        (session_id, MOST_FACTS),
    ).fetchall()
    provenances = facts.load_provenances(connection, "file", [str(row[0]) for row in rows])
    files = []
    for fact_id, wave, is_current in rows:
        provenance = provenances.get(fact_id, {})
        path = str(provenance.get("path", ""))
        if not path:
            continue
        first, last = _read_lines(provenance)
        files.append(
            FileRead(
                path,
                str(provenance.get("sha256", "")),
                first,
                last,
                int(wave),
                bool(is_current),
                fact_id in in_full,
            )
        )
    return tuple(sorted(files, key=lambda file: (file.path, file.first, file.last, file.wave)))


def _read_lines(provenance: Mapping[str, object]) -> tuple[int, int]:
    lines = provenance.get("lines")
    is_whole = provenance.get("level", "full") == "full" and not provenance.get("by_reference")
    if not is_whole or not isinstance(lines, list) or len(lines) != 2:
        return 0, 0
    return int(lines[0]), int(lines[1])


def _list_files_changed(connection: sqlite3.Connection, session_id: str) -> tuple[FileChanged, ...]:
    changed = {}
    for path, kind, wave in connection.execute(
        "SELECT json_extract(payload_json, '$.path'), action_type, ordinal FROM wave_runs"
        " CROSS JOIN outbox_actions USING (wave_id) WHERE wave_runs.session_id=?"
        " AND outbox_actions.phase='confirmed' AND action_type IN (?, ?) ORDER BY ordinal, position",
        (session_id, *_WRITES),
    ):
        changed[str(path)] = FileChanged(str(path), str(kind), int(wave))
    for (path,) in connection.execute(
        "SELECT DISTINCT json_extract(detail_json, '$.path') FROM journal"
        " WHERE session_id=? AND action=?",
        (session_id, str(Action.RUNNER_FILE_WRITTEN)),
    ):
        changed.setdefault(str(path), FileChanged(str(path), "agent"))
    return tuple(changed[path] for path in sorted(changed))


def _list_tests(connection: sqlite3.Connection, session_id: str) -> tuple[TestRun, ...]:
    runs = []
    for text in connection.execute(
        "SELECT action_receipts.detail_json FROM wave_runs CROSS JOIN outbox_actions USING (wave_id)"
        " CROSS JOIN action_receipts USING (action_id) WHERE wave_runs.session_id=?"
        " AND action_type='run' AND json_type(action_receipts.detail_json, '$.tests')='object'"
        " ORDER BY action_receipts.rowid",
        (session_id,),
    ):
        detail = parse_json(text[0])
        counts = detail["tests"]
        failed = sum(int(counts.get(name, 0)) for name in ("failed", "error", "errors"))
        command = tuple(str(word) for word in detail.get("argv", ()))
        runs.append(TestRun(command, int(counts.get("passed", 0)), failed))
    return tuple(runs)
