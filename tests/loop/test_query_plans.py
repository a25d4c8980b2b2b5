"""Every statement of a session reads growing tables by an index."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from cockpit.store.sessions import proposals

SMALL = {
    "active_task", "approved_tools", "attention_rules", "capability_tokens", "hook_absorber",
    "journal_anchor", "journal_head", "migrations", "orientation_budget_bands",
    "orientation_profiles", "principals", "task_leases",
}  # fmt: skip
"""Tables with a row for each setting or running process; all others grow with use."""

STATEMENT = re.compile(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT)\b", re.IGNORECASE)
TABLE = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)


@pytest.fixture
def statements(monkeypatch) -> list[str]:
    """Collect every statement that this process gives to SQLite, with its values."""
    connect, texts = sqlite3.connect, []

    def traced(*args, **options):
        connection = connect(*args, **options)
        connection.set_trace_callback(texts.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return texts


def full_scans(path: Path, statements: list[str]) -> list[str]:
    """Return the statements that walk through a growing table without a bound."""
    scans = []
    # Closed by hand, because "with" only ends a transaction.
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")
    growing = {name for (name,) in tables} - SMALL
    for statement in dict.fromkeys(statements):
        if not STATEMENT.match(statement):
            continue
        names = {alias or table: table for table, alias in TABLE.findall(statement)}
        names |= {table: table for table in names.values()}
        try:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        except sqlite3.OperationalError as error:
            # A migration's statement on a table that a later one dropped.
            assert "no such table" in str(error), statement
            continue
        bounded = "LIMIT" in statement and not any("TEMP B-TREE" in line for line in plan)
        for line in plan:
            walked = re.match(r"SCAN (\w+)", line)
            if walked and names.get(walked[1]) in growing and not bounded:
                scans.append(f"{line}: {' '.join(statement.split())}")
    connection.close()
    return scans


async def test_no_statement_of_a_session_scans_a_growing_table(statements, opened, fix):
    async with opened() as runtime:
        statements.clear()
        sid = await runtime.start("fix add", model=fix, policy="all", interactive=False)
        ended = await runtime.run(sid)
        assert ended.status == "completed"
        await runtime.store.read(lambda c: proposals.select_for_session(c, sid))
        path = runtime.store.path
    assert len(statements) > 100
    assert full_scans(path, statements) == []
