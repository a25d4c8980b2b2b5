"""Opening: what is not ours, not sound, newer, full or out of reach is refused in words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from store.store_world import begin, open_store, python, race

from cockpit.core.clock import FixedClock
from cockpit.core.errors import StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from cockpit.store.db import migrate
from cockpit.store.db.connection import connect
from cockpit.store.db.database import Store
from cockpit.store.db.migrate import KEPT_BACKUPS, Migration
from cockpit.store.db.read_unwritable import read_unwritable
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action

pytestmark = pytest.mark.slow


class Failing(sqlite3.Connection):
    """A connection whose disk fails at the first statement; ``code`` and ``words`` are SQLite's."""

    code, words = sqlite3.SQLITE_CORRUPT, "database disk image is malformed"

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        error = sqlite3.DatabaseError(type(self).words)
        error.sqlite_errorcode = type(self).code
        raise error


EXTRA = Migration("9000_more", "CREATE TABLE more(a);\n", "c" * 64)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_is_for_the_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with open_store(tmp_path) as store:
            store.write_now(begin)
            names = {path.name: oct(mode(path)) for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert names == {f"cockpit.db{end}": "0o600" for end in ("", "-wal", "-shm")}
    assert {path.name for path in tmp_path.iterdir()} == {"cockpit.db"}
    (tmp_path / "cockpit.db").chmod(0o644)
    with open_store(tmp_path) as store:
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING))
        assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, end: str, there: bool) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside"
    state.mkdir()
    outside.mkdir()
    if end:
        open_store(state).close()
    if there:
        (outside / "target").touch()
    (state / f"cockpit.db{end}").symlink_to(outside / "target")
    with pytest.raises(StoreUnwritable, match="is a link"):
        open_store(state)
    with pytest.raises(StoreUnwritable, match="is a link"):
        connect(state / "cockpit.db", read_only=True)
    assert [path.name for path in outside.iterdir()] == ["target"] * there
    assert not there or (outside / "target").read_bytes() == b""


def test_what_is_no_plain_file_or_in_no_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cockpit.db")
    with pytest.raises(StoreUnwritable, match="not a regular file"):
        open_store(tmp_path)
    with pytest.raises(StoreUnwritable, match="permissions"):
        open_store(tmp_path / "nowhere")


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from cockpit.store.db import database
from cockpit.core.errors import StoreError
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    database.Store.open(Path(sys.argv[1]))
except StoreError as error:
    print(error.code)
"""


def test_a_folder_without_permission_is_unwritable(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    runner = python(UNPRIVILEGED, closed / "cockpit.db")
    assert runner.communicate(timeout=60) == ("store_unwritable\n", "")


def test_garbage_is_corrupt_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cockpit.db"
    garbage = b"this is not a database " * 500
    path.write_bytes(garbage)
    with pytest.raises(StoreCorrupt, match="Move it away"):
        open_store(tmp_path)
    assert path.read_bytes() == garbage


def test_a_truncated_file_is_corrupt(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    path = tmp_path / "cockpit.db"
    whole = path.read_bytes()
    for kept in (4096, 4096 * 3, 4096 * 7 + 100):
        path.write_bytes(whole[:kept])
        with pytest.raises(StoreCorrupt), open_store(tmp_path) as store:
            store.write_now(begin)


def test_damage_that_a_step_finds_is_corrupt_for_the_step(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for number in range(300):
            store.write_now(lambda tx, n=number: begin(tx, title=f"{n}", words="w" * 200))
        (root,) = store.read_now(
            lambda c: c.execute(
                "SELECT rootpage FROM sqlite_master WHERE name='sessions'"
            ).fetchone()
        )
    path = tmp_path / "cockpit.db"
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    with open_store(tmp_path) as store:
        with pytest.raises(StoreCorrupt):
            store.write_now(lambda tx: tx.execute("SELECT count(title) FROM sessions").fetchone())
        with pytest.raises(StoreCorrupt):
            store.read_now(lambda c: c.execute("SELECT count(title) FROM sessions").fetchone())
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING))


@pytest.mark.parametrize("statement", ["CREATE TABLE mine(a)", "CREATE TABLE migrations(version)"])
def test_another_programs_database_is_refused(tmp_path: Path, statement: str) -> None:
    other = sqlite3.connect(tmp_path / "cockpit.db")
    other.execute(statement)
    other.close()
    with pytest.raises(StoreCorrupt, match="not created by cockpit"):
        open_store(tmp_path)


def test_an_altered_migration_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write_now(lambda tx: tx.execute("UPDATE migrations SET checksum='0'"))
    with pytest.raises(StoreCorrupt, match="another checksum"):
        open_store(tmp_path)


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write_now(lambda tx: tx.execute("INSERT INTO migrations VALUES ('9999_new','c','x')"))
    before = (tmp_path / "cockpit.db").read_bytes()
    with pytest.raises(StoreTooNew, match="9999_new"):
        open_store(tmp_path)
    assert (tmp_path / "cockpit.db").read_bytes() == before


def test_a_copy_is_kept_before_a_migration_and_only_the_newest_stay(tmp_path: Path) -> None:
    clock = FixedClock(step_s=1)
    with open_store(tmp_path) as store:
        store.write_now(begin)
    path = tmp_path / "cockpit.db"
    steps = [replace(EXTRA, name=f"900{n}", sql=f"CREATE TABLE more{n}(a);\n") for n in range(5)]
    connection = connect(path)
    for number in range(1, 6):
        known = (*migrate.load_migrations(), *steps[:number])
        assert migrate.migrate(connection, path, clock, known) == (f"900{number - 1}",)
    connection.close()
    folder = tmp_path / "backups"
    kept = sorted(folder.iterdir())
    assert len(kept) == KEPT_BACKUPS and mode(folder) == 0o700
    assert {mode(one) for one in kept} == {0o600}
    with closing(sqlite3.connect(f"{kept[-1].as_uri()}?mode=ro", uri=True)) as copy:
        assert copy.execute("SELECT max(name) FROM migrations WHERE name<>'schema'").fetchone() == (
            "9003",
        )
        assert copy.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
        assert verify_chain.verify(copy).ok


def test_backups_behind_a_link_are_refused(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "backups").symlink_to(outside)
    connection = connect(tmp_path / "cockpit.db")
    with pytest.raises(StoreUnwritable, match="is a link"):
        migrate.migrate(
            connection, tmp_path / "cockpit.db", FixedClock(), (*migrate.load_migrations(), EXTRA)
        )
    connection.close()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("sql", ["CREATE TABLE a(b);\nCREATE TABLE a(b);\n", "CREATE TABLE a(b"])
def test_a_migration_that_fails_leaves_nothing(tmp_path: Path, sql: str) -> None:
    open_store(tmp_path).close()
    path = tmp_path / "cockpit.db"
    connection = connect(path)
    known = (*migrate.load_migrations(), replace(EXTRA, sql=sql))
    with pytest.raises((StoreError, sqlite3.OperationalError)):
        migrate.migrate(connection, path, FixedClock(), known)
    connection.close()
    with open_store(tmp_path) as store:
        assert not store.read_now(
            lambda c: c.execute("SELECT 1 FROM sqlite_master WHERE name='a'").fetchone()
        )


OPENER = """
import sys
from pathlib import Path
from cockpit.store.db.database import Store
print("ready", flush=True)
sys.stdin.readline()
with Store.open(Path(sys.argv[2])) as store:
    print("open")
"""


def test_processes_open_one_fresh_file_at_once(tmp_path: Path) -> None:
    assert race(OPENER, 2, tmp_path / "cockpit.db") == ["open\n"] * 2
    with Store.open(tmp_path / "cockpit.db") as store:
        rows = store.read_now(journal.rows)
        assert [row.action for row in rows] == [Action.STORE_MIGRATED]
        assert store.read_now(verify_chain.verify).ok
    assert not (tmp_path / "backups").exists()


@pytest.mark.parametrize("name", ["a?b#c%20d", "new\nline", "\udcff"])
def test_any_name_of_a_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with open_store(folder) as store:
        store.write_now(begin)
        assert store.read_now(verify_chain.verify).ok
    assert (folder / "cockpit.db").stat().st_size > 0


def test_a_disk_that_fails_for_a_moment_damages_nothing(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    path = tmp_path / "cockpit.db"
    with pytest.raises(StoreUnwritable, match="it is whole, and nothing was changed"):
        Store.open(path, factory=Failing)

    class Unread(Failing):
        code, words = sqlite3.SQLITE_IOERR_READ, "disk I/O error"

    with pytest.raises(StoreUnwritable, match="could not be read: disk I/O error"):
        Store.open(path, factory=Unread)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        Store.open(path, factory=Failing)


def test_a_store_that_may_not_be_written_is_read_as_it_is(tmp_path: Path) -> None:
    """With a log, as a process that was killed leaves one, and without."""
    store = open_store(tmp_path)
    store.write_now(begin)
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("cockpit.db", "cockpit.db-wal"):
        shutil.copyfile(tmp_path / name, killed / name)
    store.close()
    for folder in (tmp_path, killed):
        files = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
        path = folder / "cockpit.db"
        rows = read_unwritable(
            path, lambda c: c.execute("SELECT count(*) FROM sessions").fetchone()
        )
        assert rows == (1,)
        after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
        assert after == files
    assert (killed / "cockpit.db-wal").stat().st_size
