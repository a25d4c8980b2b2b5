"""Events that fail too often are dead letters: seen, retried, and handled in a new wave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import run_cockpit

from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project
from cockpit.decide.model import ModelError
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.context import facts, packets
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import events, sessions, waves

pytestmark = pytest.mark.slow

WRITE = """
[[turn]]
when = { wave = 2 }
text = "I write it."
[[turn.call]]
name = "write_file"
arguments = { path = "a.txt", content = "a\\n" }
[[turn]]
when = { wave = 3 }
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "written" }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    who = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    return root


def cockpit(root: Path, *words: str, expect: int = 0) -> Any:
    done = run_cockpit.run(words, cwd=root, env=dict(os.environ), patience_s=120)
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if "--json" in words else done.stdout


def test_a_wave_that_fails_too_often_is_given_up_and_can_be_retried(
    project: Path, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario.toml"
    place, settings = locate_project(project), RuntimeSettings(user_dir=tmp_path / "user")

    async def give_up() -> tuple[str, str, str]:
        """Return the session, its source and the last error."""
        scenario.write_text(WRITE)
        async with open_runtime(place, settings) as runtime:
            session_id = await runtime.start(
                "write a.txt",
                model=f"script:{scenario}",
                policy="all",
                interactive=False,
                limits=Limits(),
                task_type="implement",
            )
        scenario.write_text("not TOML [")
        async with open_runtime(place, settings) as runtime:
            store = runtime.store
            source = store.read_now(lambda c: sessions.load(c, session_id)).source
            phases, counts = [], []
            for _ in range(5):
                with pytest.raises((CockpitError, ModelError)):
                    await runtime.run(session_id)
                wave = store.read_now(lambda c: waves.find_latest(c, session_id))
                assert wave is not None
                phases.append(wave.phase)
                counts.append(store.read_now(lambda c: events.count_new(c, source)))
            assert phases == ["failed_retryable"] * 4 + ["failed_terminal"]
            assert counts == [0] * 5
            with pytest.raises(CockpitError, match="--retry` lets the session") as given_up:
                await runtime.run(session_id)
            assert given_up.value.code == "dead_letter"
            assert store.read_now(lambda c: sessions.load(c, session_id)).status == "failed"
        return session_id, source, str(given_up.value)

    session_id, source, error = asyncio.run(give_up())
    (dead,) = cockpit(project, "debug", "events", "--state", "dead", "--json")
    assert (dead["source"], dead["attempts"]) == (source, 5)
    assert dead["event_id"] in error
    shown = cockpit(project, "debug", "events", dead["event_id"], "--json")
    assert "write a.txt" in shown["payload"]["text"]
    assert "scenario" in shown["last_error"]
    assert dead["event_id"] in cockpit(project, "debug", "events")
    cockpit(project, "debug", "events", dead["event_id"], "--retry")
    cockpit(project, "debug", "events", dead["event_id"], "--retry", expect=1)
    cockpit(project, "debug", "events", "--retry", expect=2)

    async def succeed() -> None:
        scenario.write_text(WRITE)
        async with open_runtime(place, settings) as runtime:
            store = runtime.store
            ended = await runtime.run(session_id)
            assert (ended.status, ended.result["status"]) == ("completed", "done")
            assert (project / "a.txt").read_text() == "a\n"
            texts = store.read_now(lambda c: _texts_of_wave(c, f"{session_id}-w2"))
            assert any("write a.txt" in text for text in texts)
            assert any("Wave 1 was given up" in text for text in texts)
            rows = store.read_now(lambda c: events.select_recent(c, 9))
            assert {event.state for event in rows} == {"handled"}
            assert store.read_now(verify_chain.verify).ok

    asyncio.run(succeed())
    (action,) = cockpit(project, "debug", "outbox", "--json")
    assert (action["phase"], action["action_type"]) == ("confirmed", "write_file")
    whole = cockpit(project, "debug", "outbox", action["action_id"], "--json")
    assert [receipt["status"] for receipt in whole["receipts"]] == ["success"]
    assert cockpit(project, "debug", "outbox", "--phase", "failed_terminal", "--json") == []
    assert "receipt 1  success" in cockpit(project, "debug", "outbox", action["action_id"])


def _texts_of_wave(connection: Any, wave_id: str) -> list[str]:
    packet = packets.load(connection, wave_id).packet
    fact_ids = [entry.fact_id for _, entry in packet.rendered()]
    return [text.full for text in facts.load_texts(connection, fact_ids).values()]
