"""Every collection through the command line, a list of the screen, HTTP and MCP, from one table."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from app_world import calm, on_screen, until
from msgspec import Struct
from starlette.testclient import TestClient
from state_for_tests import kept_variables

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCOPES, NotAllowed
from cockpit.api.application import application
from cockpit.api.served_project import ServedProject
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.collections.registry import NAMES, load_collection
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher
from cockpit.mcp.collection_tools import COLLECTION_TOOLS
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

GUARD = '''
def check(call, session):
    """Refuse to deploy on Fridays."""
    return "no"
'''


class Expected(Struct, frozen=True):
    """What every face shows of a collection."""

    row: str
    """The name of a row."""
    says: str
    """Text that stands in the list, in its line."""
    detail: str
    """Text that stands only where the row is shown alone."""
    verbs: tuple[str, ...] = ()
    """What the row takes now."""


TABLE = {
    "guards": Expected(
        "project:fridays",
        "Refuse to deploy on Fridays.",
        "def check(call, session):",
        ("approve",),
    ),
}


@pytest.fixture
def filled(still: Runtime, project: Path, tmp_path: Path) -> Runtime:
    """A row of each collection."""
    guards = project / ".cockpit" / "guards"
    guards.mkdir(parents=True)
    (guards / "fridays.py").write_text(GUARD)
    return still


def issue(store: Store, *scopes: str) -> str:
    def grant(tx: Tx) -> str:
        return capability_tokens.issue(tx, namespace="ci", scopes=frozenset(scopes), by=PERSON)[1]

    return store.write_now(grant)


def test_every_collection_is_in_the_table() -> None:
    assert set(TABLE) == set(NAMES)
    for name in NAMES:
        collection = load_collection(name)
        keys = [verb.key for verb in collection.verbs]
        assert len(keys) == len(set(keys)), name
        for verb in collection.verbs:
            assert verb.risk == "low" or (verb.question and verb.who == "user"), (name, verb.name)


@pytest.mark.parametrize("name", TABLE)
def test_the_command_line_http_and_mcp_say_the_same(
    filled: Runtime, project: Path, tmp_path: Path, name: str
) -> None:
    collection, expected = load_collection(name), TABLE[name]
    env = {**kept_variables(), "HOME": str(tmp_path), "COCKPIT_CONFIG_DIR": str(tmp_path / "user")}

    def run(*words: str) -> str:
        done = run_cockpit.run(
            [*collection.command.split(), *words], cwd=project, env=env, patience_s=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_row(body: Any) -> bool:
        return expected.row in body.values() if isinstance(body, dict) else False

    line = next(each for each in run().splitlines() if each.startswith(expected.row))
    assert expected.says in line
    rows = json.loads(run("--json"))
    (listed,) = filter(is_row, rows)
    shown = run(expected.row)
    assert expected.detail in shown and expected.detail not in line
    document = json.loads(run(expected.row, "--json"))
    for verb in collection.verbs:
        assert f"\n  {verb.name}" in run("--help")

    place, settings = locate_project(project), RuntimeSettings(user_dir=tmp_path / "user")
    store = filled.store
    with TestClient(
        application(store, settings, project=ServedProject(store, settings, place))
    ) as http:

        def get(path: str, *scopes: str) -> Any:
            bearer = {"Authorization": f"Bearer {issue(store, *scopes)}"}
            return http.get(f"/api/{path}", headers=bearer)

        everything_else = [scope for scope in SCOPES if scope != collection.scope]
        if not collection.scope:
            assert get(name, *SCOPES).status_code == 404
        else:
            assert get(name, *everything_else).status_code == 403
            answer = get(name, collection.scope)
            assert answer.status_code == 200, answer.text
            assert listed in answer.json()["items"]
            one = get(f"{name}/{expected.row}", collection.scope)
            assert one.json() == document
            assert get(f"{name}/none-such", collection.scope).status_code == 404
        for verb in collection.verbs:
            path = f"/api/{name}/{expected.row}/{verb.name}"
            assert http.post(path).status_code in (404, 405)

    list_tool, show_tool = COLLECTION_TOOLS

    async def call() -> None:
        dispatcher = Dispatcher(store, place, settings)
        reader = ClientConnection(token=issue(store, *SCOPES))
        given = {"collection": name, "name": expected.row}
        if not collection.scope:
            with pytest.raises(CockpitError, match="alone"):
                await dispatcher.call(list_tool, reader, {"collection": name})
            return
        answer = await dispatcher.call(list_tool, reader, {"collection": name})
        assert listed in answer["rows"]
        assert (await dispatcher.call(show_tool, reader, given))["row"] == document
        stranger = ClientConnection(token=issue(store, *everything_else))
        with pytest.raises(NotAllowed):
            await dispatcher.call(show_tool, stranger, given)
        await dispatcher.close()

    asyncio.run(call())


async def test_every_list_of_the_screen_has_its_rows_and_verbs(filled: Runtime) -> None:
    async with on_screen(filled) as (pilot, app, main):
        for name, expected in TABLE.items():
            pane = name.replace("-", "_")
            main.act(pane)
            await until(pilot, lambda pane=pane: getattr(app.screen, "PANE", "") == pane)
            screen = app.screen
            assert isinstance(screen, CollectionScreen)
            collection = screen.collection

            def there(screen=screen, collection=collection, expected=expected) -> bool:
                return expected.row in [collection.name_of(row) for row in screen.rows]

            await until(pilot, there)
            await pilot.press("slash", *expected.row, "enter")
            await until(
                pilot,
                lambda screen=screen, collection=collection, expected=expected: (
                    screen.row is not None and collection.name_of(screen.row) == expected.row
                ),
            )
            await until(pilot, lambda screen=screen, e=expected: e.detail in screen._detail.plain)
            await calm(pilot)
            assert tuple(screen.verbs(screen.row)) == expected.verbs, name
            await pilot.press("escape", "escape")
            await until(pilot, lambda: app.screen is app.main)
