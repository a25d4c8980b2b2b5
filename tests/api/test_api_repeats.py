"""Repeats, versions and pages under generated requests: idempotency keys, entity tags and cursors."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from api_world import ask, begin_session, fill_store, issue, told
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from cockpit.access.token_scopes import SCOPES
from cockpit.api.application import application
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain

pytestmark = [pytest.mark.slow, pytest.mark.search]

LISTS = (
    "/api/proposals",
    "/api/sessions",
    "/api/tasks",
    "/api/chains",
)
HEADER = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)
QUIET = settings(
    max_examples=examples(12),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class World:
    """A server in memory over a store with a row of each kind."""

    def __init__(self, store: Store, client: TestClient) -> None:
        self.store = store
        self.client = client
        self.bearers = {name: issue(store, name, *SCOPES) for name in ("ci", "desk")}
        self.ids = fill_store(store)

    def count_tasks(self) -> int:
        return self.store.read_now(
            lambda connection: int(connection.execute("SELECT count(*) FROM tasks").fetchone()[0])
        )


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    with Store.open(folder / "cockpit.db") as store:
        app = application(store, RuntimeSettings())
        with TestClient(app, base_url="http://127.0.0.1:1", client=("127.0.0.1", 2)) as client:
            yield World(store, client)
            assert not store.read_now(verify_chain.verify).broken


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made


def test_a_key_answers_once_for_a_request_of_a_namespace(world: World) -> None:
    """Any order of requests, keys and namespaces: as many tasks as different (namespace, key) pairs."""
    model: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    @QUIET
    @given(
        name=st.sampled_from(("ci", "desk")),
        key=st.one_of(st.sampled_from(("a", "b")), HEADER),
        title=st.sampled_from(("one", "two", "é 中 \\u2028")),
    )
    def send(name: str, key: str, title: str) -> None:
        before = world.count_tasks()
        headers = {**world.bearers[name], "Idempotency-Key": key}
        answer = world.client.post("/api/tasks", json={"title": title}, headers=headers)
        first = model.get((name, key))
        if first is None:
            assert answer.status_code == 201, answer.text
            assert "idempotency-replayed" not in answer.headers
            model[name, key] = (title, answer.json())
            assert world.count_tasks() == before + 1
            return
        assert world.count_tasks() == before
        if first[0] == title:
            assert (answer.status_code, answer.json()) == (201, first[1])
            assert answer.headers["idempotency-replayed"] == "true"
            assert answer.headers["location"] == f"/api/tasks/{answer.json()['id']}"
        else:
            told(answer, 422, "key_reused")

    send()
    assert len(model) > 3


def test_a_key_that_is_too_long_is_refused(world: World) -> None:
    headers = {**world.bearers["ci"], "Idempotency-Key": "k" * 201}
    answer = world.client.post("/api/tasks", json={"title": "t"}, headers=headers)
    told(answer, 400, "usage")
    assert world.count_tasks() == 1


def test_a_version_matches_itself_alone(world: World) -> None:
    """304 exactly where the tag is the resource's; 412 exactly where If-Match does not name it."""
    bearer = world.bearers["ci"]
    path = f"/api/tasks/{world.ids['task_id']}"

    @QUIET
    @given(
        other=HEADER.filter(lambda text: "," not in text and "*" not in text),
        form=st.sampled_from(("{tag}", "W/{tag}", '"x", {tag}', "*", "{other}", '"{other}"', "")),
        title=st.sampled_from(("one", "two")),
    )
    def look(other: str, form: str, title: str) -> None:
        tag = world.client.get(path, headers=bearer).headers["etag"]
        header = form.format(tag=tag, other=other)
        names = "{tag}" in form or form == "*"
        seen = world.client.get(path, headers={**bearer, "If-None-Match": header})
        assert seen.status_code == (304 if names else 200), header
        assert seen.headers["etag"] == tag
        match = {**bearer, "If-Match": header}
        changed = world.client.patch(path, json={"title": title}, headers=match)
        # A weak tag names a version for reading, not for changing it.
        if names and not form.startswith("W/"):
            assert changed.status_code == 200, changed.text
        else:
            told(changed, 412, "precondition_failed")
            assert world.client.get(path, headers=bearer).headers["etag"] == tag

    look()


def test_pages_have_each_row_once_whatever_is_added_meanwhile(world: World) -> None:
    """Any size of page, with rows that come between two pages: the rows of the start, in order, each once."""
    bearer = world.bearers["ci"]
    numbers = iter(range(10_000))

    def add() -> None:
        world.store.write_now(lambda tx: ask(tx, f"p-{next(numbers):04}"))

    for _ in range(7):
        add()

    @QUIET
    @given(
        path=st.sampled_from(("/api/proposals", "/api/sessions")),
        limit=st.integers(1, 9),
        adds=st.lists(st.booleans(), max_size=4),
    )
    def read(path: str, limit: int, adds: list[bool]) -> None:
        name = "proposal_id" if path == "/api/proposals" else "session_id"
        whole: list[str] = []
        cursor: str | None = ""
        while cursor is not None:  # all rows that are there, in the largest pages
            page = world.client.get(
                f"{path}?limit=100&cursor={quote(cursor)}", headers=bearer
            ).json()
            whole += [item[name] for item in page["items"]]
            cursor = page["next"]
        seen: list[str] = []
        cursor, steps = "", iter(adds)
        while cursor is not None:
            page = world.client.get(
                f"{path}?limit={limit}&cursor={quote(cursor)}", headers=bearer
            ).json()
            assert len(page["items"]) <= limit
            seen += [item[name] for item in page["items"]]
            cursor = page["next"]
            if next(steps, False):
                add()
        assert seen == whole

    read()


def test_a_cursor_of_elsewhere_is_refused_and_never_an_error(world: World) -> None:
    bearer = world.bearers["ci"]
    world.store.write_now(begin_session)
    real = world.client.get("/api/sessions?limit=1", headers=bearer).json()["next"]

    @QUIET
    @given(
        path=st.sampled_from(LISTS),
        cursor=st.one_of(
            st.text(max_size=60),
            st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode()),
            st.sampled_from((real, real[:-2], real + real)),
        ),
    )
    def read(path: str, cursor: str) -> None:
        answer = world.client.get(f"{path}?cursor={quote(cursor, safe='')}", headers=bearer)
        if answer.status_code != 200:
            told(answer, 400, "usage")

    read()
