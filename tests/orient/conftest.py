"""A real store with one session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from orient_world import World
from state_for_tests import put_store
from store.store_world import begin as create_session

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.context import profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Store.open(
        put_store(tmp_path / "cockpit.db"), FixedClock(step_s=1.0), CountingIds()
    ) as store:

        def begin(tx: Tx) -> World:
            profile = profiles.ensure_default(tx, 150_000)
            return World(store, create_session(tx), profile)

        yield store.write_now(begin)
