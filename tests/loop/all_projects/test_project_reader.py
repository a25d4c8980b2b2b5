"""One project among all: read as it is now, never changed, and never an error."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from loop.all_projects.projects_world import ask, begin, make_project, open_store

from cockpit.core.clock import FixedClock
from cockpit.core.project.known_projects import list_known
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.all_projects.project_reader import ProjectReader
from cockpit.store.sessions import proposals, sessions


@pytest.fixture
def place(user_state: Path, tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path / "api", branch="fix/login")


@pytest.fixture
def reader(place: ProjectPaths):
    (project,) = list_known()
    return ProjectReader(project, FixedClock())


def test_counts_and_queue_follow_the_store(place, reader):
    assert reader.look().condition == "empty"
    with open_store(place) as store:
        first = begin(store, place.home, branch="feature")
        state = reader.look()
        assert (state.condition, state.branch, state.waiting) == ("open", "fix/login", 0)
        assert state.running == 0, "no process drives it"
        store.write_now(lambda tx: sessions.acquire(tx, first))
        begin(store, place.home, agent="claude", task_type="external_agent")
        state = reader.look()
        assert (state.running, state.agents) == (2, 1)
        ask(store, first, "p-1")
        ask(store, first, "p-2", risk="high")
        state = reader.look()
        assert [each.proposal_id for each in state.proposals] == ["p-1", "p-2"]
        assert state.askers[first].branch == "feature"
        assert state.askers[first].is_driven
        store.write_now(
            lambda tx: proposals.decide(
                tx, "p-1", verdict="rejected", by="person", shown_digest=state.proposals[0].shown_digest
            )
        )  # fmt: skip
        assert [each.proposal_id for each in reader.look().proposals] == ["p-2"]


def _too_new(place: ProjectPaths) -> None:
    with sqlite3.connect(place.database) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_later','x','2027-01-01')")
    connection.close()


def _too_old(place: ProjectPaths) -> None:
    with sqlite3.connect(place.database) as connection:
        connection.execute("DELETE FROM migrations WHERE name=(SELECT max(name) FROM migrations)")
    connection.close()


def _broken(place: ProjectPaths) -> None:
    for path in place.state.glob("cockpit.db-*"):
        path.unlink()
    place.database.write_bytes(b"no database" * 1_000)


def _emptied(place: ProjectPaths) -> None:
    for path in place.state.glob("cockpit.db*"):
        path.unlink()
    place.database.write_bytes(b"")


def _linked(place: ProjectPaths) -> None:
    target = place.database.rename(place.database.with_name("other.db"))
    place.database.symlink_to(target)


@pytest.mark.parametrize(
    ("spoil", "condition", "words"),
    [
        (lambda place: shutil.rmtree(place.home), "gone", "deleted, moved"),
        (lambda place: shutil.rmtree(place.state), "empty", ""),
        (_too_new, "newer", "update cockpit"),
        (_too_old, "older", "up to date"),
        (_broken, "broken", "damaged or not a cockpit database"),
        (_emptied, "older", ""),
        (_linked, "broken", "a link"),
        (lambda place: place.state.chmod(0o777), "broken", "Other users can write"),
    ],
    ids=["gone", "no state", "newer", "older", "broken", "emptied", "link", "open to others"],
)
def test_what_cannot_be_read_is_a_row_that_says_so(place, reader, spoil, condition, words):
    with open_store(place) as store:
        ask(store, begin(store, place.home), "p-1")
    assert reader.look().condition == "open"
    spoil(place)
    state = reader.look()
    assert (state.condition, state.proposals) == (condition, ())
    assert words in state.problem
    assert reader.look().condition == condition, "a look after it says the same"


def test_a_locked_store_says_so_soon_and_comes_back(place, reader):
    with open_store(place) as store:
        ask(store, begin(store, place.home), "p-1")
    other = sqlite3.connect(place.database, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("UPDATE proposals SET reason=''")
    try:
        state = reader.look()
        assert (state.condition, state.proposals) == ("locked", ())
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert reader.look().condition == "open"


def test_hostile_names_and_branches_are_read_as_they_are(user_state, tmp_path):
    hostile = "a\x1b]52;c;eA==\x07b\u202e [red]x"
    place = make_project(tmp_path / hostile, branch="x\x1b[31m\u202ey")
    with open_store(place) as store:
        ask(store, begin(store, place.home, branch="\x9b31m"), "p-1", title=f"do {hostile}")
    (project,) = list_known()
    reader = ProjectReader(project, FixedClock())
    state = reader.look()
    assert (state.project.name, state.waiting) == (hostile, 1)
    assert state.branch == "x\x1b[31m\u202ey"


@pytest.mark.parametrize("body", ["[1]", "[" * 5_000 + "]" * 5_000, "{", b"\xff"])
def test_a_proposal_that_cannot_be_read_breaks_its_own_project_only(place, reader, body):
    with open_store(place) as store:
        ask(store, begin(store, place.home), "p-1")
    with closing(sqlite3.connect(place.database)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type='trigger' AND tbl_name='proposals'"
        ).fetchall()
        for (name,) in names:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE proposals SET body_json=?", (body,))
        connection.commit()
    state = reader.look()
    assert (state.condition, state.proposals) == ("broken", ())
    assert state.problem
