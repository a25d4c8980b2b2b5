"""Tampering with the journal is told: any row of it, cut ends, older copies, rewritten histories.

The attacker has the file and knows the format; only the anchor outside the store is out of reach.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from examples import examples

from cockpit.access.capability_tokens import ensure_root
from cockpit.backlog import service as backlog
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.backlog import wip
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import head_anchor, verify_chain
from cockpit.store.journal.journal import COLUMNS, chain_digest

pytestmark = pytest.mark.slow

SCENARIO = """
[[turn]]
text = "I read first."
[[turn.call]]
name = "request_context"
arguments = { purpose = "see", question = "what?", scope = ["file:a.py"], escalation = "" }
[[turn]]
when = { called = ["request_context"] }
text = "I write."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { called = ["write_file"] }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "done" }
"""


class Scene:
    """A store with work in it, an older copy of it, and the anchor outside."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "projects" / "key" / "cockpit.db"
        self.older = folder / "older.db"
        self.anchor_file = folder / "anchors" / "key"
        self.trial = folder / "trial.db"

    def faults(self) -> list[str]:
        """What is told of the trial."""
        with closing(sqlite3.connect(self.trial)) as connection:
            try:
                verdict = verify_chain.verify(connection)
                if verdict.broken is not None:
                    return [verdict.broken[1]]
                anchor = head_anchor.read_anchor(self.anchor_file)
                assert anchor is not None
                fault = head_anchor.compare(connection, anchor)
                return [fault] if fault else []
            except sqlite3.DatabaseError as error:
                return [str(error)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("tampering")
    asyncio.run(_work(folder))
    built = Scene(folder)
    built.database.parent.mkdir(parents=True)
    with Store.open(folder / "worked.db") as store:
        store.write_now(_plan)
    shutil.copy(folder / "worked.db", built.older)
    shutil.copy(folder / "worked.db", built.database)
    with Store.open(built.database) as store:  # it came from elsewhere: that is told, and accepted
        assert "is missing" in store.anchor.fault
        store.write_now(lambda tx: wip.update(tx, "T-1", {"phase": "more"}, by="agent"))
        store.anchor.accept()
    return built


async def _work(folder: Path) -> None:
    root = folder / "project"
    root.mkdir()
    (root / "a.py").write_text("print('a')\n", encoding="utf-8")
    script = folder / "scenario.toml"
    script.write_text(SCENARIO, encoding="utf-8")
    settings = RuntimeSettings(policy="all", limits=Limits(max_waves=9), user_dir=folder)
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start("implement", model=f"script:{script}", interactive=False)
        await runtime.run(session_id)
        database = runtime.store.path
    shutil.copy(database, folder / "worked.db")


def _plan(tx: Tx) -> None:
    epic = backlog.create_epic(tx, "An epic", by="person")
    story = backlog.create_story(tx, "A story", epic_id=epic.epic_id, by="person")
    first, second = (
        backlog.create_task(tx, title, story_id=story.story_id, by="person")
        for title in ("One", "Two")
    )
    backlog.add_dependency(tx, second.task_id, first.task_id, by="person")
    wip.update(tx, first.task_id, {"phase": "begun"}, by="agent")
    ensure_root(tx, Path(tx.connection.execute("PRAGMA database_list").fetchone()[2]).parent)


def opened(scene: Scene) -> sqlite3.Connection:
    """Open a fresh copy as an attacker does: without triggers in the way."""
    shutil.copy(scene.database, scene.trial)
    connection = sqlite3.connect(scene.trial, isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA ignore_check_constraints=ON")
    return connection


def other(value: object) -> object:
    if isinstance(value, int | float):
        return value + 1
    return "x" if value is None else f"{value}x"


def delete(connection: sqlite3.Connection, chance: random.Random) -> str:
    """Remove a row of the journal."""
    seq = chance.choice(connection.execute("SELECT seq FROM journal").fetchall())[0]
    connection.execute("DELETE FROM journal WHERE seq=?", (seq,))
    return f"delete {seq}"


def rewrite(connection: sqlite3.Connection) -> None:
    """Compute every digest of the journal anew, and its end."""
    previous, count, last = "", 0, 0
    names = ",".join(COLUMNS)
    rows = connection.execute(
        f"SELECT {names} FROM journal WHERE digest IS NOT NULL ORDER BY seq"
    ).fetchall()
    for columns in rows:
        previous = chain_digest(previous, columns[:-1])
        count, last = count + 1, columns[0]
        connection.execute("UPDATE journal SET digest=? WHERE seq=?", (previous, last))
    connection.execute("UPDATE journal_head SET seq=?, digest=?, sealed=?", (last, previous, count))


def cut(connection: sqlite3.Connection, chance: random.Random) -> str:
    """Remove the end of the journal, and let the rest verify."""
    (last,) = connection.execute("SELECT max(seq) FROM journal").fetchone()
    first = chance.randrange(max(2, last - 10), last + 1)
    connection.execute("DELETE FROM journal WHERE seq>=?", (first,))
    rewrite(connection)
    return f"cut from {first}"


def rewrite_history(connection: sqlite3.Connection, chance: random.Random) -> str:
    """Change a row of the journal and every digest, so that all inside the file is consistent."""
    done = journal_row(connection, chance)
    rewrite(connection)
    return f"rewrite {done}"


def journal_row(connection: sqlite3.Connection, chance: random.Random) -> str:
    """Change a row of the journal."""
    seq = chance.choice(connection.execute("SELECT seq FROM journal").fetchall())[0]
    name = chance.choice(COLUMNS[1:-1])
    (value,) = connection.execute(f"SELECT {name} FROM journal WHERE seq=?", (seq,)).fetchone()
    connection.execute(f"UPDATE journal SET {name}=? WHERE seq=?", (other(value), seq))
    return f"journal {seq}.{name}"


WAYS: tuple[Callable[[sqlite3.Connection, random.Random], str], ...] = (
    *(journal_row, delete, cut, rewrite_history),
)


@pytest.mark.search
def test_random_changes_are_told(scene: Scene) -> None:
    opened(scene).close()
    assert scene.faults() == []
    missed = []
    for seed in range(examples(14)):
        with closing(opened(scene)) as connection:
            done = WAYS[seed % len(WAYS)](connection, random.Random(seed))
        if not scene.faults():
            missed.append(f"seed {seed}: {done}")
    assert missed == []


def test_an_older_copy_in_place_of_the_store_is_told(scene: Scene) -> None:
    shutil.copy(scene.older, scene.trial)
    (fault,) = scene.faults()
    assert "replaced by an older one" in fault
