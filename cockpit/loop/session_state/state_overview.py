"""The state of a session as rows to read: files, tests, facts, skills, tools, rules, and why each is there.

All of it is derived from the store, with what earlier sessions of the same task left: a restart, another
process and a handover show the same. See ``docs/reference/loop.md``, state.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.canonical_json import parse_json
from cockpit.core.text import pluralize
from cockpit.loop.session_state.read_session_state import (
    FileRead,
    SessionState,
    read_session_state,
)
from cockpit.loop.skills.session_skills import ASKED, ASKED_WHY, read_wishes, select_skills
from cockpit.store.journal.event_types import Action

Section = Literal["read", "changed", "tests", "facts", "skill", "tool", "rule"]
SECTIONS: tuple[Section, ...] = ("read", "changed", "tests", "facts", "skill", "tool", "rule")
MOST_SESSIONS = 5
"""Earlier sessions of a task whose state is shown with a session's own."""
_LOOKED_AT = 2_000
"""Newest sessions among which those of the task are looked for."""
_MOST_ROWS = 500
"""Rules' uses and tools' calls that are read, the newest."""
_DIGEST_CELLS = 12


class StateRow(Struct, frozen=True):
    """One thing that a session read, changed, ran, has or used."""

    section: Section
    name: str
    """A path, a command, a kind of facts, a skill, a tool or a rule."""
    text: str
    """What there is to say of it in one line."""
    state: str = ""
    """Whether a file is in the packet, a test passed, a skill stays; empty where there is nothing to say."""
    session_id: str = ""
    """The earlier session that it comes from; empty for the session itself."""
    lines: tuple[tuple[str, str], ...] = ()
    """Its parts, each with where or when, and what."""
    path: str = ""
    """The file to open; empty without one."""
    line: int = 0
    """The first line that was read."""
    number: int = 0
    """Which one it is of those with the same name, such as runs of one command."""


class StateOverview(Struct, frozen=True):
    """The state of a session and of the sessions that handed its task over to it."""

    state: SessionState
    rows: tuple[StateRow, ...]
    earlier: tuple[str, ...] = ()
    """Earlier sessions of its task, the newest first."""


def read_state_overview(connection: sqlite3.Connection, session_id: str) -> StateOverview:
    """Derive the rows of a session; none for a session that is not stored."""
    state = read_session_state(connection, session_id)
    rows = list(_rows_of(connection, state))
    earlier = _list_earlier(connection, session_id)
    for before in earlier:
        old = read_session_state(connection, before)
        rows += (replace(row, session_id=before, state="") for row in _work_rows(old))
    order = {section: place for place, section in enumerate(SECTIONS)}
    rows.sort(key=lambda row: (order[row.section], bool(row.session_id)))
    return StateOverview(state, tuple(rows), earlier)


def _rows_of(connection: sqlite3.Connection, state: SessionState) -> Iterator[StateRow]:
    yield from _work_rows(state)
    yield from _agent_rows(connection, state.session_id)
    yield from _fact_rows(connection, state.session_id)
    yield from _skill_rows(connection, state.session_id)
    yield from _tool_rows(connection, state.session_id)
    yield from _rule_rows(connection, state.session_id)


def _work_rows(state: SessionState) -> Iterator[StateRow]:
    for path, parts in groupby(state.files_read, lambda part: part.path):
        yield _read_row(path, list(parts))
    for file in state.files_changed:
        by = "its external agent" if file.by == "agent" else file.by.replace("_", " ")
        wave = f", wave {file.wave}" if file.wave else ""
        yield StateRow("changed", file.path, f"by {by}{wave}", path=file.path, line=1)
    for number, run in enumerate(state.tests):
        result = f"{run.passed:,} passed, {run.failed:,} failed"
        verdict = "failed" if run.failed else "passed"
        yield StateRow("tests", shlex.join(run.command), result, verdict, number=number)


def _read_row(path: str, parts: Sequence[FileRead]) -> StateRow:
    current = [part for part in parts if part.is_current]
    shown = [part for part in current if part.in_packet]
    if not current:
        state = "old version"
    elif len(shown) == len(current):
        state = "in packet"
    else:
        state = "partly in packet" if shown else "not in packet"
    best = current or parts
    first = min((part.first for part in best if part.first), default=1)
    waves = sorted({part.wave for part in best})
    where = f"wave {waves[0]}" if len(waves) == 1 else f"waves {waves[0]}–{waves[-1]}"
    version = best[-1].version[:_DIGEST_CELLS]
    text = f"{_name_lines(best)} · {where}" + (f" · {version}" if version else "")
    lines = tuple(
        (
            f"wave {part.wave}",
            f"{_name_lines([part])}, version {part.version[:_DIGEST_CELLS] or 'not known'}: {note}",
        )
        for part in parts
        for note in [
            "superseded"
            if not part.is_current
            else "in the packet"
            if part.in_packet
            else "dropped"
        ]
    )
    return StateRow("read", path, text, state, lines=lines, path=path, line=first)


def _name_lines(parts: Iterable[FileRead]) -> str:
    spans: list[list[int]] = []
    for first, last in sorted({(part.first, part.last) for part in parts if part.first}):
        if spans and first <= spans[-1][1] + 1:
            spans[-1][1] = max(spans[-1][1], last)
        else:
            spans.append([first, last])
    if not spans:
        return "outline"
    return "lines " + ", ".join(f"{first}–{last}" for first, last in spans)


def _agent_rows(connection: sqlite3.Connection, session_id: str) -> Iterator[StateRow]:
    """Yield the files that an external agent has read, over whatever way cockpit saw it."""
    parts: dict[str, list[FileRead]] = {}
    for path, version, first, last in connection.execute(
        "SELECT json_extract(detail_json,'$.path'), json_extract(detail_json,'$.version'),"
        " json_extract(detail_json,'$.first'), json_extract(detail_json,'$.last') FROM journal"
        " WHERE session_id=? AND action=? ORDER BY seq DESC LIMIT ?",
        (session_id, str(Action.RUNNER_FILE_READ), _MOST_ROWS),
    ):
        of_path = parts.setdefault(str(path), [])
        is_current = not of_path or of_path[0].version == version
        of_path.append(
            FileRead(str(path), str(version), int(first), int(last), 0, is_current, in_packet=False)
        )
    for path, looks in sorted(parts.items()):
        newest = [look for look in looks if look.is_current]
        text = (
            f"{_name_lines(newest)} · by its external agent · {newest[0].version[:_DIGEST_CELLS]}"
        )
        lines = tuple(
            (f"lines {look.first}–{look.last}", f"version {look.version[:_DIGEST_CELLS]}")
            for look in reversed(looks)
        )
        line = min(look.first for look in newest)
        yield StateRow("read", path, text, lines=lines, path=path, line=line)


def _fact_rows(connection: sqlite3.Connection, session_id: str) -> Iterator[StateRow]:
    for source, band, count, tokens in connection.execute(
        "SELECT source_type, band, count(*), sum(tokens_full) FROM session_facts"
        " WHERE session_id=? AND superseded_at IS NULL GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2",
        (session_id,),
    ):
        text = f"{pluralize(int(count), 'fact')}, {int(tokens):,} tokens in full · band {band}"
        yield StateRow("facts", str(source), text)


def _skill_rows(connection: sqlite3.Connection, session_id: str) -> Iterator[StateRow]:
    reasons = {
        str(name): str(why)
        for name, why in connection.execute(
            "SELECT json_extract(detail_json,'$.name'), json_extract(detail_json,'$.why') FROM journal"
            " WHERE action=? AND +session_id=? AND json_extract(detail_json,'$.status')='loaded'"
            " ORDER BY seq",
            (str(Action.SKILL_CHANGED), session_id),
        )
    }
    wishes = read_wishes(connection, session_id)
    for link in select_skills(connection, session_id):
        name, since = link.skill.name, link.skill.since
        leaves = name in wishes and not wishes[name].load
        why = ASKED_WHY if link.skill.how == ASKED else reasons.get(name) or link.skill.how
        yield StateRow(
            "skill",
            name,
            f"{why} · since wave {since}",
            "until the next wave" if leaves else "loaded",
        )


def _tool_rows(connection: sqlite3.Connection, session_id: str) -> Iterator[StateRow]:
    for kind, count, failed in connection.execute(
        "SELECT action_type, count(*), sum(outbox_actions.phase<>'confirmed') FROM wave_runs"
        " CROSS JOIN outbox_actions USING (wave_id) WHERE wave_runs.session_id=?"
        " GROUP BY action_type ORDER BY 2 DESC, 1",
        (session_id,),
    ):
        text = f"called {pluralize(int(count), 'time')}"
        yield StateRow("tool", str(kind), text + (f", {failed} not carried out" if failed else ""))
    row = connection.execute(
        "SELECT detail_json FROM journal WHERE seq="
        "(SELECT max(seq) FROM journal WHERE action=? AND +session_id=?)",
        (str(Action.TOOLS_OFFERED), session_id),
    ).fetchone()
    offered = parse_json(row[0]) if row is not None else {}
    for tool in offered.get("rare", ()):
        yield StateRow("tool", str(tool["name"]), f"offered: {tool['why']}", "offered")
    for tool in offered.get("tools", ())[:_MOST_ROWS]:
        place, _, name = str(tool["tool_id"]).rpartition(":")
        yield StateRow("tool", name, f"offered, from {place}", "offered")


def _rule_rows(connection: sqlite3.Connection, session_id: str) -> Iterator[StateRow]:
    uses: dict[str, list[tuple[str, str, str]]] = {}
    for at, rule, says, what in connection.execute(
        "SELECT at, json_extract(detail_json,'$.rule_id'), json_extract(detail_json,'$.says'),"
        " json_extract(detail_json,'$.what') FROM journal WHERE action=? AND +session_id=?"
        " ORDER BY seq DESC LIMIT ?",
        (str(Action.TRUST_USED), session_id, _MOST_ROWS),
    ):
        uses.setdefault(str(rule), []).append((str(at), str(says), str(what)))
    for rule, times in uses.items():
        lines = tuple((at[:16].replace("T", " "), what) for at, _, what in times)
        count = pluralize(len(times), "time")
        yield StateRow("rule", rule, f"{times[0][1]} · used {count}", lines=lines)


def _list_earlier(connection: sqlite3.Connection, session_id: str) -> tuple[str, ...]:
    row = connection.execute(
        "SELECT task_id, created_at FROM sessions WHERE session_id=?", (session_id,)
    ).fetchone()
    if row is None or row[0] is None:
        return ()
    rows = connection.execute(
        "SELECT session_id FROM (SELECT session_id, task_id, created_at FROM sessions"
        " ORDER BY updated_at DESC LIMIT ?) WHERE task_id=? AND session_id<>? AND created_at<=?"
        " ORDER BY created_at DESC LIMIT ?",
        (_LOOKED_AT, row[0], session_id, row[1], MOST_SESSIONS),
    )
    return tuple(str(row[0]) for row in rows)
