"""A chain over HTTP: started and drained by a program, and who may do that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_world import ADDRESS, PATIENCE_S, api_client, fill_store, issue, told
from api_world import Project as Served
from chains.chain_world import Chains, slowly
from starlette.testclient import TestClient

from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.api.served_project import ServedProject
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain

pytestmark = pytest.mark.slow

NEEDS = ("sessions.run", "work.read", "work.write")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chains:
    """A project, and the variables of whoever serves it."""
    made = Chains.made(tmp_path, 1)
    made.project.extra["COCKPIT_MODEL"] = made.project.script(slowly(made.scenario(1)))
    for name, value in made.project.env.items():
        monkeypatch.setenv(name, value)
    return made


@contextmanager
def serving(world: Chains) -> Iterator[tuple[TestClient, Served]]:
    """A server in memory; its end ends no chain."""
    place, settings = locate_project(world.root), RuntimeSettings()
    with Store.open(place.database) as store:
        project = ServedProject(store, settings, place)
        gate = Gate(application(store, settings, project=project), ADDRESS)
        with TestClient(gate, base_url=ADDRESS.url, client=("127.0.0.1", 2)) as client:
            yield client, Served(world.root, store)


def wait_for(look: Callable[[], Any]) -> Any:
    """Wait until ``look`` returns something true, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return seen


def test_a_program_starts_and_drains_a_chain(world: Chains) -> None:
    with serving(world) as (http, made):
        bot = made.bearer("bot", *NEEDS, "proposals.decide")
        keyed = {**bot, "Idempotency-Key": "nightly-7"}
        order = {"policy": "all", "parallel": 1, "max_workers": 900, "max_wall_s": 3600}
        # The text of a field is not an option of the command, whatever it begins with.
        tricked = http.post("/api/chains", json={"runner": "--approve=all"}, headers=bot)
        problem = told(tricked, 422, "chain_command_failed")
        assert "no runner '--approve=all'" in problem["detail"]
        assert "--request" not in problem["detail"] and world.rows("chain.changed") == []
        # Two at once with one key: one chain.
        with ThreadPoolExecutor(2) as threads:
            both = [
                threads.submit(http.post, "/api/chains", json=order, headers=keyed)
                for _ in range(2)
            ]
            begun, twin = (each.result() for each in both)
        assert begun.status_code == twin.status_code == 201, begun.text
        assert begun.json()["chain_id"] == twin.json()["chain_id"]
        chain = begun.json()
        assert begun.headers["location"] == f"/api/chains/{chain['chain_id']}"
        assert (chain["approve"], chain["batch"], chain["max_wall_s"]) == ("all", "1", 3600)
        assert chain["headless"] and chain["max_chains"] == 10  # never more than the settings
        # A server that died before it kept its answer: the chain is found by the request.
        made.store.write_now(lambda tx: tx.execute("DELETE FROM kept_answers"))
        found = http.post("/api/chains", json=order, headers=keyed)
        assert (found.status_code, found.json()["chain_id"]) == (201, chain["chain_id"])
        where = begun.headers["location"]
        stale = {**bot, "If-Match": '"other"'}
        told(http.post(f"{where}/stop", headers=stale), 412, "precondition_failed")
        drained = http.post(f"{where}/stop", headers=bot).json()
        assert drained["status"] == "draining"
        wait_for(lambda: http.get(where, headers=bot).json()["status"] == "stopped")
        _, drain, *_ = made.recorded("chain.changed")
        assert drain[0] == "bot"  # the journal names who asked, not the user
    # The server is gone; what the chain did is not, and the command line goes on with it.
    requests = world.rows("chain.noted")
    assert [row["chain_id"] for row in requests] == ["ch-1"]
    assert [row["what"] for row in world.rows("chain.changed")].count("created") == 1
    assert not world.read(verify_chain.verify).broken


async def test_only_callers_with_the_scope_start(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        fill_store(store)
        async with api_client(application(store, RuntimeSettings())) as client:
            runs, reads = issue(store, "bot", *NEEDS), issue(store, "bot", "work.read")
            both = issue(store, "bot", *NEEDS, "proposals.decide")
            user = issue(store, "main", *NEEDS, "proposals.decide")
            for bearer, body in (
                (reads, {}),
                (runs, {"policy": "all"}),
                # The user's own token is a file that any process can read.
                (user, {"policy": "all"}),
            ):
                answer = await client.post("/api/chains", json=body, headers=bearer)
                problem = told(answer, 403, "not_allowed")
                assert "may not starting" not in problem["detail"]
            for body, status, code in (
                ({"epic_id": "E-9"}, 404, "not_found"),
                ({"story_id": "S-9"}, 404, "not_found"),
                ({"epic_id": "E-1", "story_id": "S-1"}, 400, "malformed"),
                ({"parallel": 0}, 400, "malformed"),
                ({"policy": "everything"}, 400, "malformed"),
                ({"cwd": "/"}, 400, "malformed"),
                # This server has no checkout.
                ({}, 409, "illegal_transition"),
            ):
                told(await client.post("/api/chains", json=body, headers=both), status, code)
