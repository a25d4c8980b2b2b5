"""How much of its budget a prompt takes, whole: 10,500 files of two lines each, read by a real session.

Small files are the hard case: what a prompt writes around a fact is as long as the fact. And the tokens of
each task type's first prompt, with one file in the project and a task of five words.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Row, row

from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.decide.measure_prompt import count_prompt
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context.packets import Packet
from cockpit.store.sessions import waves

MOST_EMPTY = 2_500
"""Tokens that the first prompt of ``implement`` may take: a small model has 8,000."""
WORDS = {"review_pr": "/review-pr HEAD~1..HEAD"}
"""Words of the types that need others than a request."""
ON_GITHUB = ("create_issue", "create_pr", "fix_issue")
"""Types whose sessions begin by asking GitHub."""
ENDS = """
[[turn]]
[[turn.call]]
name = "finish"
arguments = { status = "blocked", summary = "measured" }
"""
BUDGETS = (60_000, 150_000)
FILES = {"first": 9_000, "second": 1_500}
"""Files by folder; a wave reads one folder, because it has at most 10,000 jobs."""
READS = """
[[turn]]
text = "I read the first folder."
[[turn.call]]
name = "request_context"
arguments = { purpose = "bench", question = "what is there?", scope = ["file:first/*.py"] }
[[turn]]
when = { wave_from = 2 }
text = "And the second."
[[turn.call]]
name = "request_context"
arguments = { purpose = "bench", question = "what is there?", scope = ["file:second/*.py"] }
[[turn]]
when = { wave_from = 3 }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "read" }
"""


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        for name, count in FILES.items():
            (root / name).mkdir(parents=True)
            for number in range(count):
                text = f"# part {number}\nVALUE = {number}\n"
                (root / name / f"part_{number:05}.py").write_text(text, encoding="utf-8")
        script = Path(folder) / "scenario.toml"
        script.write_text(READS, encoding="utf-8")
        lines = [
            line
            for budget in BUDGETS
            for line in asyncio.run(_measure(root, script, Path(folder) / "user", budget))
        ]
        return lines + asyncio.run(_measure_empty(Path(folder)))


async def _measure(root: Path, script: Path, user: Path, budget: int) -> list[Row]:
    settings = RuntimeSettings(policy="all", user_dir=user, token_budget=budget)
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start("look", model=f"script:{script}", interactive=False)
        session = await runtime.run(session_id)
        if session.result.get("status") != "done":
            raise RuntimeError(f"the bench's session ended {session.result}")
        sizes = await _sizes(runtime, session_id)
    largest, packet = max(sizes, key=lambda size: size[0])
    if packet.dropped < sum(FILES.values()) / 4:
        raise RuntimeError(f"only {packet.dropped} facts were dropped: the budget was not pressed")
    band = next(band for band in packet.bands if band.name == "situational")
    at = f"at {budget:,}"
    return [
        row(f"rendered / budgeted {at}, the answer included", largest / budget, "ratio", most=1.0),
        row(
            f"the files' band / its ceiling {at}", band.used / band.max_tokens, "ratio", least=0.99
        ),
        row(f"counted fact by fact / rendered {at}", packet.token_used / largest, "ratio", least=1),
        row(f"files in the prompt {at}, of {sum(FILES.values()):,}", len(band.entries), ""),
    ]


async def _sizes(runtime: Runtime, session_id: str) -> Sequence[tuple[int, Packet]]:
    """Tokens of each wave's prompt, counted again, with the room for its answer; and its packet."""
    sizes = []
    for wave in await runtime.store.read(lambda seen: waves.select_for_session(seen, session_id)):
        prompt, packet = await runtime.rendered_prompt(wave.wave_id)
        again = await runtime.store.read(lambda seen, w=wave.wave_id: recompile_packet(seen, w))
        if not again.ok:
            raise RuntimeError(f"the packet of wave {wave.ordinal} does not compile again")
        sizes.append((count_prompt(prompt, count_tokens) + prompt.max_output_tokens, packet))
    return sizes


async def _measure_empty(folder: Path) -> list[Row]:
    """Count the first prompt of a session of each task type."""
    root, script = folder / "empty", folder / "ends.toml"
    root.mkdir()
    script.write_text(ENDS, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=B", "-c", "user.email=b@example.invalid"]
    subprocess.run([*git, "init", "-q"], check=True)
    for sign in "-+":
        (root / "calc.py").write_text(f"def add(a, b):\n    return a {sign} b\n", encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", f"Use {sign}"], check=True)
    lines = []
    settings = load_settings(None, env={"COCKPIT_CONFIG_DIR": str(folder / "user")}).runtime
    async with open_runtime(locate_project(root), settings) as runtime:
        for name in sorted(set(runtime.engine.task_types) - set(ON_GITHUB)):
            session_id = await runtime.start(
                WORDS.get(name, "Fix the sign of add."),
                task_type=None if name in WORDS else name,
                model=f"script:{script}",
                policy="all",
                interactive=False,
            )
            await runtime.run(session_id)
            prompt, _ = await runtime.rendered_prompt(waves.wave_id_of(session_id, 1))
            most = MOST_EMPTY if name == "implement" else None
            tokens = count_prompt(prompt, count_tokens)
            title = f"first prompt of {name}, {len(prompt.tools)} tools"
            lines.append(row(title, tokens, "tokens", most=most))
    return lines
