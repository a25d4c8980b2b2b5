"""A token that another program wrote into the store, or changed there, opens nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from state_for_tests import put_store

from cockpit.access.capability_tokens import TokenRefused, ensure_root, holder, issue, revoke
from cockpit.access.principals import PERSON, Caller
from cockpit.access.token_scopes import SCOPES
from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store

FORGED = "ckp_of-an-agent"
ALL = json.dumps(list(SCOPES))


class World:
    """A store with a token of a service that may read, one that was revoked, and the root token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scopes = frozenset({"orientation.read"})
        with self.open() as store:
            store.write_now(lambda tx: ensure_root(tx, folder))
            token, self.secret = store.write_now(
                lambda tx: issue(tx, namespace="ci", scopes=scopes, by=PERSON, expires_s=60)
            )
            gone, self.gone = store.write_now(
                lambda tx: issue(tx, namespace="old", scopes=scopes, by=PERSON)
            )
            store.write_now(lambda tx: revoke(tx, gone.cap_id, PERSON))
        self.cap_id, self.gone_id = token.cap_id, gone.cap_id
        self.root = (folder / "root.token").read_text(encoding="utf-8").strip()

    def open(self) -> Store:
        return Store.open(put_store(self.folder / "cockpit.db"), FixedClock(), CountingIds())

    def edit(self, sql: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "cockpit.db")) as connection, connection:
            connection.execute(sql, values)

    def holder(self, secret: str) -> Caller:
        with self.open() as store:
            now = "2026-01-01T00:00:00Z"
            return store.read_now(lambda connection: holder(connection, secret, now))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_tokens_that_cockpit_issued_open_what_they_allow(world: World) -> None:
    assert world.holder(world.secret).scopes == {"orientation.read"}
    assert world.holder(world.root).namespace == "main"
    with pytest.raises(TokenRefused, match="is revoked"):
        world.holder(world.gone)


EDITS = [
    ("scopes_json=?", (ALL,)),
    ("namespace=?", ("main",)),
    ("expires_at=NULL", ()),
    ("expires_at=?", ("2999-01-01T00:00:00Z",)),
]


@pytest.mark.parametrize(("change", "values"), EDITS)
def test_a_token_with_more_rights_than_it_was_given_opens_nothing(world, change, values):
    world.edit(f"UPDATE capability_tokens SET {change} WHERE cap_id=?", *values, world.cap_id)
    with pytest.raises(TokenRefused, match="not in the store as cockpit issued it"):
        world.holder(world.secret)


def test_a_token_with_another_secret_opens_nothing(world: World) -> None:
    for cap_id in (world.cap_id, world.gone_id):
        world.edit(
            "UPDATE capability_tokens SET secret_hash=?, revoked_at=NULL WHERE cap_id=?",
            text_digest(FORGED + cap_id), cap_id,
        )  # fmt: skip
        with pytest.raises(TokenRefused, match="not in the store as cockpit issued it"):
            world.holder(FORGED + cap_id)


def test_a_token_that_was_revoked_is_not_valid_again(world: World) -> None:
    world.edit("UPDATE capability_tokens SET revoked_at=NULL WHERE cap_id=?", world.gone_id)
    with pytest.raises(TokenRefused, match="not in the store as cockpit issued it"):
        world.holder(world.gone)


def test_a_token_that_was_written_into_the_store_opens_nothing(world: World) -> None:
    world.edit(
        "INSERT INTO capability_tokens(cap_id, namespace, scopes_json, secret_hash, expires_at, issued_by,"
        " created_at) VALUES ('cap-x', 'main', ?, ?, NULL, 'first start', '2026-01-01T00:00:00Z')",
        ALL, text_digest(FORGED),
    )  # fmt: skip
    with pytest.raises(TokenRefused, match="not in the store as cockpit issued it"):
        world.holder(FORGED)
