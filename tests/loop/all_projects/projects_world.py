"""Several projects of one user, in a state folder of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loop.stored_session import store_session
from state_for_tests import put_store

from cockpit.core.clock import Clock, CountingIds, FixedClock
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals


def make_project(folder: Path, *, branch: str = "main") -> ProjectPaths:
    """Make a repository as git would, and register it; git itself is not needed for what is read of it."""
    git = folder / ".git"
    for each in (git / "objects", git / "refs"):
        each.mkdir(parents=True)
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    place = ProjectPaths(root=folder, home=folder, git=True)
    place.prepare()
    return place


def open_store(place: ProjectPaths, clock: Clock | None = None) -> Store:
    return Store.open(put_store(place.database), clock or FixedClock(), CountingIds())


def begin(store: Store, root: Path, **fields: Any) -> str:
    """Store a session; returns its id."""
    return store.write_now(lambda tx: store_session(tx, root, **fields).session_id)


def ask(
    store: Store, session_id: str, proposal_id: str, *, title: str = "write notes.md",
    risk: str = "low", body: str = "the notes", kind: str = "action", **more: Any,
) -> None:  # fmt: skip
    """Store a proposal that waits."""
    content = {"type": "write_file", "fields": [], "body": body, "payload": {}, **more}

    def step(tx: Tx) -> None:
        proposals.create(
            tx, proposal_id=proposal_id, kind=kind, session_id=session_id, wave_id="",
            title=title, risk=risk, body=content,
        )  # fmt: skip

    store.write_now(step)


def status(place: ProjectPaths, proposal_id: str) -> str:
    """Return the status of a proposal, as another process reads it."""
    with Store.open(place.database) as store:
        return store.read_now(lambda c: proposals.load(c, proposal_id)).status
