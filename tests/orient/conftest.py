"""A real store with one session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from orient_world import World

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.context import profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Store.open(tmp_path / "cockpit.db", FixedClock(step_s=1.0), CountingIds()) as store:

        def begin(tx: Tx) -> World:
            profile = profiles.ensure_default(tx, 150_000)
            session = sessions.create(
                tx,
                task_type="implement",
                title="a title",
                words="do it",
                target={},
                model="offline",
                policy="ask",
                interactive=False,
                root=tmp_path,
                rev=None,
                profile_id=profile.profile_id,
                limits={},
                project="made",
                branch="main",
            )
            return World(store, session.session_id, profile)

        yield store.write_now(begin)
