"""Backups written beside writers, restored as a whole; refused, altered and killed ones change nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples import examples

from cockpit.core.errors import StoreCorrupt, StoreUnwritable
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.store.backup.backup_file import BackupRefused, Contents
from cockpit.store.backup.restore_state import FOLDER, finish_restore, restore_backup
from cockpit.store.backup.write_backup import check_database, write_backup
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.sessions import MessageStarted
from cockpit.store.journal.head_anchor import last_row

pytestmark = pytest.mark.slow

OTHER = {"archive/old.jsonl.gz": b"rows", "root.token": b"secret", "chains/ch-1-s1.log": b"log"}


def add_row(tx: Tx, text: str) -> None:
    tx.journal(MessageStarted(message_id=text, role="agent"))


def read_rows(place: ProjectPaths) -> list[str]:
    with Store.open(place.database) as store:
        assert store.anchor.fault == ""
        rows = store.read_now(journal.rows)
    return [row.raw_detail()["message_id"] for row in rows if row.action == "message.started"]


@pytest.fixture
def place(tmp_path: Path) -> ProjectPaths:
    """A project whose state has rows and files of every kind."""
    (tmp_path / "project").mkdir()
    place = locate_project(tmp_path / "project")
    place.prepare()
    with Store.open(place.database) as store:
        store.write_now(lambda tx: add_row(tx, "first"))
    for name, content in OTHER.items():
        path = place.state / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    for name in ("knowledge.db", "worktrees/T-1/file", "runs/s-1/token", ".partial.1"):
        path = place.state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left out")
    (place.state / "link").symlink_to("/etc/passwd")
    return place


def back_up(place: ProjectPaths, target: Path, *, replace: bool = False) -> Contents:
    with Store.open(place.database) as store:
        return write_backup(store, place, target, replace=replace)


def state_now(place: ProjectPaths) -> tuple[list[str], dict[str, bytes]]:
    files = {name: (place.state / name).read_bytes() for name in OTHER}
    return read_rows(place), files


def change(place: ProjectPaths) -> None:
    """Let the state go on after a backup."""
    with Store.open(place.database) as store:
        store.write_now(lambda tx: add_row(tx, "second"))
    (place.state / "root.token").write_bytes(b"another")


def test_a_backup_written_beside_writers_restores_what_was_committed(place, tmp_path):
    target = tmp_path / "kept.backup"
    enough, stop = threading.Event(), threading.Event()

    def write() -> None:
        with Store.open(place.database) as other:
            count = 0
            while not stop.is_set():
                other.write_now(lambda tx: add_row(tx, "many"))
                count += 1
                if count == 20:
                    enough.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert enough.wait(60)
        contents = back_up(place, target)
    finally:
        stop.set()
        writer.join()
    assert {part.path for part in contents.parts} == {"cockpit.db", *OTHER}
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.backup", "project"]
    written = read_rows(place)
    change(place)

    restore_backup(target, place, replace=True)
    rows, files = state_now(place)
    assert 21 <= len(rows) <= len(written) and rows == written[: len(rows)]
    assert files == OTHER
    assert not (place.state / FOLDER).exists()
    assert (place.state / "knowledge.db").read_bytes() == b"left out"
    assert (place.state / "root.token").stat().st_mode & 0o777 == 0o600
    assert check_database(place.database)[0] > contents.seq
    # Once more, into another project that has no state yet.
    (tmp_path / "other").mkdir()
    other = locate_project(tmp_path / "other")
    restore_backup(target, other, replace=False)
    assert read_rows(other)[: len(rows)] == rows


def test_what_exists_or_is_in_use_is_not_replaced(place: ProjectPaths, tmp_path: Path) -> None:
    target = tmp_path / "kept.backup"
    back_up(place, target)
    before = target.read_bytes()
    with pytest.raises(BackupRefused, match="exists"):
        back_up(place, target)
    assert target.read_bytes() == before
    back_up(place, target, replace=True)
    assert target.read_bytes() != before
    with pytest.raises(BackupRefused, match="has a state"):
        restore_backup(target, place, replace=False)
    with Store.open(place.database) as store:
        store.write_now(lambda tx: add_row(tx, "in use"))
        with pytest.raises(BackupRefused, match="Another process uses"):
            restore_backup(target, place, replace=True)
        store.write_now(lambda tx: add_row(tx, "still"))
    assert not finish_restore(place)
    assert read_rows(place)[-2:] == ["in use", "still"]


@pytest.mark.parametrize("damage", ["header", "log", "some pages"])
def test_a_damaged_database_is_replaced_and_kept(place, tmp_path, damage):
    target = tmp_path / "kept.backup"
    back_up(place, target)
    written = read_rows(place)
    broken = bytearray(place.database.read_bytes())
    if damage == "some pages":
        broken[4_096 : 12 * 4_096] = b"\xa5" * 11 * 4_096
    else:
        broken[0 if damage == "header" else 100 :] = b"\xa5" * (len(broken) // 2)
    place.database.write_bytes(broken)
    if damage == "log":
        place.database.with_name("cockpit.db-wal").write_bytes(b"\xa5" * 8_000)
    if damage != "some pages":  # those are noticed when they are read
        with pytest.raises(StoreCorrupt):
            Store.open(place.database)
    restore_backup(target, place, replace=True)
    assert read_rows(place)[: len(written)] == written
    assert place.database.with_name("cockpit.db.damaged").read_bytes() == broken
    assert place.database.stat().st_mode & 0o777 == 0o600


def test_only_plain_files_are_replaced(place: ProjectPaths, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target in (pipe, tmp_path):
        with pytest.raises(BackupRefused, match="no plain file"):
            back_up(place, target, replace=True)
    assert pipe.is_fifo()
    with pytest.raises(
        StoreUnwritable, match=r"missing/kept: No such file .* Nothing was replaced"
    ):
        back_up(place, tmp_path / "missing" / "kept")


FILL = """
import sys
from pathlib import Path
from cockpit.core.project_paths import locate_project
from cockpit.store.backup.write_backup import write_backup
from cockpit.store.db.database import Store
place = locate_project(Path(sys.argv[1]))
with Store.open(place.database) as store:
    write_backup(store, place, Path(sys.argv[2], "kept"), replace=False)
"""


def test_a_full_disk_is_that_of_the_backup(place: ProjectPaths, tmp_path: Path) -> None:
    """The disk of the backup is full, and not that of the store."""
    small = tmp_path / "small"
    small.mkdir()
    script = 'mount -t tmpfs -o size=200k none "$3" && { "$0" -c "$1" "$2" "$3"; ls -A "$3" >&2; }'
    ended = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script),
            *(sys.executable, FILL, str(place.home), str(small)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"The backup cannot be written to {small}/kept: No space left" in ended.stderr
    assert ended.stderr.endswith("Nothing was replaced.\n"), "and nothing is left in its folder"


def altered(source: Path) -> Iterator[tuple[str, bytes]]:
    """Files that are almost the backup ``source``."""
    whole = source.read_bytes()
    yield "cut", whole[: len(whole) // 2]
    yield "nothing", b""
    with tarfile.open(source) as archive:
        members = [(member, archive.extractfile(member)) for member in archive]
        contents = {member.name: file.read() for member, file in members if file is not None}

    def packed(names: dict[str, bytes], edit: Callable[[tarfile.TarInfo], None]) -> bytes:
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for name, content in names.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                edit(member)
                archive.addfile(member, io.BytesIO(content))
        return raw.getvalue()

    def keep(member: tarfile.TarInfo) -> None:
        return None

    yield "token", packed({**contents, "root.token": b"sEcret"}, keep)
    yield "more", packed({**contents, "more": b""}, keep)
    yield "less", packed({name: contents[name] for name in list(contents)[:-1]}, keep)
    database = bytearray(contents["cockpit.db"])
    database[-2000] ^= 1
    yield "database", packed({**contents, "cockpit.db": bytes(database)}, keep)
    outside = ("../outside", "/outside", "a/../../outside")
    other_places = ("project.json", "cockpit.db-wal", "knowledge.db", ".restore", "runs/s-1/token",
                    "worktrees", "worktrees/T-1/file", "restore/ready.json", "chains", "link/passwd",
                    "root.token/file")  # fmt: skip
    for path in (*outside, *other_places):
        listing = json.loads(contents["backup.json"])
        token = next(part for part in listing["parts"] if part["path"] == "root.token")
        listing["parts"].append({**token, "path": path})
        names = {**contents, "backup.json": json.dumps(listing).encode()}
        yield path, packed({**names, path: contents["root.token"]}, keep)

    def link(member: tarfile.TarInfo) -> None:
        if member.name == "root.token":
            member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0

    yield "link", packed(contents, link)


def test_an_altered_backup_changes_nothing(place: ProjectPaths, tmp_path: Path) -> None:
    target = tmp_path / "kept.backup"
    back_up(place, target)
    change(place)
    before = state_now(place)
    for name, content in altered(target):
        (tmp_path / "altered").write_bytes(content)
        with pytest.raises(BackupRefused):
            restore_backup(tmp_path / "altered", place, replace=True)
        assert not finish_restore(place), name
        assert state_now(place) == before, name
    assert not list(tmp_path.rglob("outside"))


KILLED = """
import os, signal, sys
from pathlib import Path
from cockpit.core.project_paths import locate_project
from cockpit.store.backup.restore_state import restore_backup
from cockpit.store.backup.write_backup import write_backup
from cockpit.store.db.database import Store

what, project, target, last = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
place, count = locate_project(project), 0

def watch(event, arguments):
    global count
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.link", "os.rmdir", "sqlite3.connect"):
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
if what == "restore":
    restore_backup(target, place, replace=True)
else:
    with Store.open(place.database) as store:
        write_backup(store, place, target, replace=True)
print(count)
"""


def run_until(what: str, place: ProjectPaths, target: Path, step: int) -> tuple[int, str]:
    """Kill a backup or restoration at its ``step``-th touch of the disk; return how it ended."""
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, what, str(place.root), str(target), str(step)],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode, ended.stdout


def spread(count: int, trials: int) -> list[int]:
    """Steps over the whole, those at its end closer to each other: there files change places."""
    return sorted({max(1, round(count * (part / trials) ** 0.6)) for part in range(1, trials + 1)})


@pytest.mark.search
def test_a_restoration_killed_at_any_step_leaves_the_old_or_the_restored_state(place, tmp_path):
    target = tmp_path / "kept.backup"
    back_up(place, target)
    restored = state_now(place)
    change(place)
    code, steps = run_until("restore", place, target, 0)
    assert code == 0
    seen = set()
    for step in spread(int(steps), examples(3)):
        change(place)
        old = state_now(place)
        code, _ = run_until("restore", place, target, step)
        finish_restore(place)
        now = state_now(place)
        assert now in (old, restored), step
        assert not (place.state / FOLDER).exists()
        check_database(place.database)
        seen.add(now == restored)
    assert seen == {False, True}


@pytest.mark.search
def test_a_backup_killed_at_any_step_leaves_the_old_file_or_the_new_one(place, tmp_path):
    target = tmp_path / "kept.backup"
    back_up(place, target)
    code, steps = run_until("backup", place, target, 0)
    assert code == 0
    for step in spread(int(steps), examples(1)):
        run_until("backup", place, target, step)
        (tmp_path / "other").mkdir(exist_ok=True)
        other = locate_project(tmp_path / "other")
        restore_backup(target, other, replace=True)
        assert read_rows(other)[0] == "first"
    back_up(place, target, replace=True)
    assert not list(tmp_path.glob(".kept*"))
    with Store.open(place.database) as store:
        assert store.read_now(last_row)[0]
