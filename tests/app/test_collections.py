"""Every collection through the command line, a list of the screen, HTTP and MCP, from one table."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from app_world import calm, on_screen, until
from chain_scenes import ChainScene
from learn.learn_world import World, fact
from loop.trust.trust_world import TrustWorld
from msgspec import Struct
from starlette.testclient import TestClient
from state_for_tests import LOAD_SKILLS, kept_variables

from cockpit.access import capability_tokens
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCOPES, NotAllowed
from cockpit.api.application import application
from cockpit.api.served_project import ServedProject
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.backlog.tools.task_tools import CreateTask
from cockpit.backlog.tools.tool_table import find_work_tool
from cockpit.collections.registry import NAMES, WITH_OWN_PAGES, load_collection
from cockpit.core.clock import FixedClock, SystemClock
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project
from cockpit.core.skills import skill_layers
from cockpit.core.state_folder import VARIABLE
from cockpit.loop.runtime import Runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher
from cockpit.mcp.collection_tools import COLLECTION_TOOLS
from cockpit.store.backlog import handoffs
from cockpit.store.db.transaction import Tx
from cockpit.store.notes import notes
from cockpit.store.sessions import events, outbox

pytestmark = pytest.mark.slow

TYPE = """+++
name = "bug"
context_hints = ["Rates live in rates.py"]
+++
"""

TOOL = '''
from cockpit import tool


@tool
def count_words(text: str) -> int:
    """Count words."""
    return len(text.split())
'''
GUARD = '''
def check(call, session):
    """Refuse to deploy on Fridays."""
    return "no"
'''


class Expected(Struct, frozen=True):
    """What every face shows of a collection."""

    says: str
    """Text that stands in the list, in the line of a row."""
    detail: str
    """Text that stands only where the row is shown alone."""
    verbs: tuple[str, ...] = ()
    """What the row takes now."""


TABLE = {
    "agents": Expected("claude", "agentclientprotocol"),
    "chains": Expected("cockpit/ch-1", "the configured one"),
    "events": Expected("ns:ci:jobs", "payload"),
    "feedback": Expected("1.00", "decision quality"),
    "guards": Expected("Refuse to deploy on Fridays.", "def check(call, session):", ("approve",)),
    "handoffs": Expected("Rounded in one place.", "and one test"),
    "notes": Expected("Amounts are in cents.", "written by the user", ("edit", "merge", "forget")),
    "outbox": Expected("run make test", "it did not run"),
    "packets": Expected("150,000", "compiled"),
    "profiles": Expected("1", "priority"),
    "projects": Expected("api", "identity"),
    "proposals": Expected("pending", "file:shapes.py"),
    "sessions": Expected("a title", "── wave 1"),
    "settings": Expected("max_waves", "a project", ("change",)),
    "skills": Expected("Design and change interfaces", "what enters the packet"),
    "task-types": Expected("/bug", "what a layer above changes"),
    "tasks": Expected("Round to the cent", "feature · P2"),
    "tokens": Expected("work.read", "created_at", ("revoke",)),
    "tools": Expected("count_words", "return len", ("approve",)),
    "trust": Expected("read file tests/*.py", "file:tests/test_1.py", ("accept", "revoke")),
}


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No project of another test."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))


@pytest.fixture
def clock() -> FixedClock:
    """From today on: the command line reads the same rows by the time of this machine."""
    return FixedClock(SystemClock().now())


@pytest.fixture
def filled(
    still: Runtime,
    clock: FixedClock,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Runtime:
    """A row of each collection."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    types = tmp_path / "user" / "task-types"
    types.mkdir(parents=True)
    (types / "bug.md").write_text(TYPE)
    tools = project / ".cockpit" / "tools"
    tools.mkdir(parents=True)
    (tools / "words.py").write_text(TOOL)
    guards = project / ".cockpit" / "guards"
    guards.mkdir()
    (guards / "fridays.py").write_text(GUARD)
    world = TrustWorld(still.store, project, count=500)
    for _ in range(2):
        world.learn(lambda session, number: world.read(session, f"file:tests/test_{number}.py"))
    world.read(world.begin(policy="ask"), "file:shapes.py")

    clock.advance(60)  # its session is the last one
    judged = World(still.store)
    wave = judged.begin([fact("file", "shapes.py")])
    judged.decide(wave)
    judged.end(wave)

    ChainScene(still.store, project).begin()

    def fill(tx: Tx) -> None:
        notes.write(tx, "decision", "Amounts are in cents.")
        issue(tx, "work.read")
        find_work_tool("create_task").run(tx, PERSON, CreateTask("Round to the cent"))
        handoffs.set_handoff(tx, "T-1", "PASS", "Rounded in one place.", [], "and one test", by="a")
        payload = {"n": 1}
        events.ingest(
            tx, source="ns:ci:jobs", source_event_id="1", event_type="job", payload=payload
        )
        outbox.plan(
            tx,
            wave_id=wave.wave_id,
            session_id=wave.session_id,
            position=0,
            key="k-1",
            action_type="run",
            title="run make test",
            payload=payload,
        )

    still.store.write_now(fill)
    return still


def issue(tx: Tx, *scopes: str) -> str:
    return capability_tokens.issue(tx, namespace="ci", scopes=frozenset(scopes), by=PERSON)[1]


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
    env = {
        **kept_variables(),
        "HOME": str(tmp_path),
        **LOAD_SKILLS,
        VARIABLE: str(tmp_path / "state"),
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
    }

    def run(*words: str) -> str:
        done = run_cockpit.run(
            [*collection.command.split(), *words], cwd=project, env=env, patience_s=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    line = next(each for each in run().splitlines() if expected.says in each)
    row = line.split()[0]
    (listed,) = [each for each in json.loads(run("--json")) if row in map(str, each.values())]
    shown = run(row)
    assert expected.detail in shown and expected.detail not in line
    document = json.loads(run(row, "--json"))
    document.pop("no_longer_on_branch", None)  # the command alone looks at a chain's branch
    help_text = run("--help")
    for verb in collection.verbs:
        assert f"\n  {verb.name}" in help_text or not verb.has_command

    place, settings = locate_project(project), RuntimeSettings(user_dir=tmp_path / "user")
    store = filled.store
    with TestClient(
        application(store, settings, project=ServedProject(store, settings, place))
    ) as http:

        def get(path: str, *scopes: str) -> Any:
            bearer = {"Authorization": f"Bearer {store.write_now(lambda tx: issue(tx, *scopes))}"}
            return http.get(f"/api/{path}", headers=bearer)

        everything_else = [scope for scope in SCOPES if scope != collection.scope]
        if not collection.scope:
            assert get(name, *SCOPES).status_code == 404
        else:
            assert get(name, *everything_else).status_code == 403
            answer = get(name, collection.scope)
            assert answer.status_code == 200, answer.text
            one = get(f"{name}/{row}", collection.scope)
            if name in WITH_OWN_PAGES:  # they have more of it
                assert row in [str(next(iter(each.values()))) for each in answer.json()["items"]]
                assert row in one.json().values()
            else:
                assert listed in answer.json()["items"]
                assert one.json() == document
            assert get(f"{name}/none-such", collection.scope).status_code in (404, 422)
        for verb in collection.verbs:
            path = f"/api/{name}/{row}/{verb.name}"
            assert http.post(path).status_code in (404, 405)

    list_tool, show_tool = COLLECTION_TOOLS

    async def call() -> None:
        dispatcher = Dispatcher(store, place, settings)
        reader = ClientConnection(token=store.write_now(lambda tx: issue(tx, *SCOPES)))
        given = {"collection": name, "name": row}
        if not collection.scope:
            with pytest.raises(CockpitError, match="alone"):
                await dispatcher.call(list_tool, reader, {"collection": name})
            return
        answer = await dispatcher.call(list_tool, reader, {"collection": name})
        assert listed in answer["rows"]
        assert (await dispatcher.call(show_tool, reader, given))["row"] == document
        stranger = ClientConnection(token=store.write_now(lambda tx: issue(tx, *everything_else)))
        with pytest.raises(NotAllowed):
            await dispatcher.call(show_tool, stranger, given)
        await dispatcher.close()

    asyncio.run(call())


async def test_every_list_of_the_screen_has_its_rows_and_verbs(filled: Runtime) -> None:
    async with on_screen(filled) as (pilot, app, main):
        for name, expected in TABLE.items():
            if name in WITH_OWN_PAGES:
                continue
            pane = name.replace("-", "_")
            main.act(pane)
            await until(pilot, lambda pane=pane: getattr(app.screen, "PANE", "") == pane)
            screen = app.screen
            assert isinstance(screen, CollectionScreen)
            collection = screen.collection

            def name_there(screen=screen, collection=collection, expected=expected) -> str:
                for row in screen.rows:
                    cells = [cell(row) for cell in collection.cells_of([row]).values()]
                    if any(expected.says in cell for cell in cells):
                        return cells[0]
                return ""

            await until(pilot, name_there)
            row_name = name_there()
            await pilot.press("slash", *row_name, "enter")

            def is_there(screen=screen, collection=collection, name=row_name) -> bool:
                return screen.row is not None and collection.name_of(screen.row) == name

            await until(pilot, is_there)
            await until(pilot, lambda screen=screen, e=expected: e.detail in screen._detail.plain)
            await calm(pilot)
            assert tuple(screen.verbs(screen.row)) == expected.verbs, name
            await pilot.press("escape", "escape")
            await until(pilot, lambda: app.screen is app.main)
