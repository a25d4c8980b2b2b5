"""A written session of twelve waves with four edits, through the real loop on this repository."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from prompt_cache import Cache, blocks_of
from session_costs import Costs, as_transcript

from cockpit.core.project_paths import locate_project
from cockpit.loop.phases.wave_prompt import render_packet, render_stored_prompt
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.job_planner import REFRESH
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.store.context import facts, profiles
from cockpit.store.sessions import waves

EDITED = (
    "cockpit/orient/knapsack.py",
    "cockpit/orient/score_facts.py",
    "cockpit/orient/source_caps.py",
    "cockpit/orient/knapsack.py",
)


async def run_written() -> Mapping[str, Costs]:
    """Twelve waves with four edits, by a scripted model in the real loop, on this repository."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        here = Path(__file__).resolve().parent.parent
        subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{here}", str(root)], check=True)
        script = Path(folder) / "scenario.toml"
        script.write_text(_scenario(root), encoding="utf-8")
        settings = RuntimeSettings(policy="all", user_dir=Path(folder) / "user")
        async with open_runtime(locate_project(root), settings) as runtime:
            session_id = await runtime.start(
                "implement the change", model=f"script:{script}", interactive=False
            )
            session = await runtime.run(session_id)
            if session.result.get("status") != "done":
                raise RuntimeError(f"the bench's session ended {session.result}")
            return await runtime.store.read(lambda seen: _costs_of(runtime, seen, session_id))


def _scenario(root: Path) -> str:
    first = {path: (root / path).read_text("utf-8").splitlines()[0] for path in EDITED}
    calls: list[tuple[str, dict[str, object]]] = [
        ("request_context", _reads("cockpit/orient/knapsack.py", "cockpit/core/text.py")),
        ("request_context", _reads("cockpit/orient/score_facts.py")),
        ("edit_file", _edit(EDITED[0], first[EDITED[0]], first[EDITED[0]] + " Again.")),
        ("run", {"argv": ["true"], "reason": "test"}),
        ("edit_file", _edit(EDITED[1], first[EDITED[1]], first[EDITED[1]] + " Again.")),
        ("request_context", _reads("cockpit/orient/source_caps.py")),
        ("edit_file", _edit(EDITED[2], first[EDITED[2]], first[EDITED[2]] + " Again.")),
        ("run", {"argv": ["ls", "-la"], "reason": "look"}),
        ("request_context", _reads("cockpit/orient/greedy_fill.py")),
        ("edit_file", _edit(EDITED[3], first[EDITED[3]] + " Again.", first[EDITED[3]] + " Twice.")),
        ("run", {"argv": ["true"], "reason": "test again"}),
        ("finish", {"status": "done", "summary": "changed"}),
    ]
    turns = [
        "[[turn]]\n"
        f"when = {{ {'wave_from' if number == len(calls) else 'wave'} = {number} }}\n"
        f'text = "Wave {number}: I go on with the change, step by step."\n'
        f"[[turn.call]]\nname = {json.dumps(name)}\nraw_arguments = {json.dumps(json.dumps(arguments))}\n"
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    return "\n".join(turns)


def _reads(*paths: str) -> dict[str, object]:
    scope = [f"file:{path}" for path in paths]
    return {"purpose": "change it", "question": "what is there?", "scope": scope}


def _edit(path: str, old: str, new: str) -> dict[str, object]:
    return {"path": path, "old": old, "new": new}


def _costs_of(
    runtime: Runtime, connection: sqlite3.Connection, session_id: str
) -> Mapping[str, Costs]:
    """What the session's prompts cost, and a transcript of all that was said and read on request."""
    ways = {name: Costs() for name in ("transcript", "epochs", "fresh")}
    caches = {name: Cache("breakpoints") for name in ways}
    texts = {}
    for wave in waves.select_for_session(connection, session_id):
        prompt, packet = render_stored_prompt(connection, runtime.engine, wave.wave_id)
        ways["epochs"].add(caches["epochs"].send(blocks_of(prompt)))
        ways["epochs"].epochs += int(bool(packet.epoch and packet.epoch.begins))
        ways["epochs"].within_budget &= (
            packet.rendered_tokens or 0
        ) + prompt.max_output_tokens <= packet.token_budget
        profile = profiles.load(connection, packet.profile_id, packet.profile_version)
        linked = facts.select_linked(connection, session_id, wave.ordinal)
        texts.update(facts.load_texts(connection, [fact.fact_id for fact in linked]))
        fresh = compile_packet(
            columns_from_facts(linked), profile, wave.ordinal, rendering=packet.rendering
        )
        again = render_packet(
            fresh, texts, prompt.tools, wave=wave.ordinal, task_type="implement", target={}
        )
        ways["fresh"].add(caches["fresh"].send(blocks_of(again)))
        reread = _read_again(connection, session_id)
        kept = [fact for fact in linked if (fact.ordinal, fact.position) not in reread]
        ways["transcript"].add(
            caches["transcript"].send(blocks_of(as_transcript(kept, texts, prompt.tools)))
        )
    return ways


def _read_again(connection: sqlite3.Connection, session_id: str) -> set[tuple[int, int]]:
    """The places of files that cockpit read again because they had changed: no transcript has them."""
    rows = connection.execute(
        "SELECT ordinal, position FROM session_facts WHERE session_id=? AND job=?",
        (session_id, REFRESH),
    )
    return set(rows)
