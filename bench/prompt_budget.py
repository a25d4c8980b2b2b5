"""How much of its budget a prompt takes, whole: 10,500 files of two lines each, read by a real session.

Small files are the hard case: what a prompt writes around a fact is as long as the fact.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Row, row

from cockpit.core.project_paths import locate_project
from cockpit.decide.measure_prompt import count_prompt
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context.packets import Packet
from cockpit.store.sessions import waves

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
        return [
            line
            for budget in BUDGETS
            for line in asyncio.run(_measure(root, script, Path(folder) / "user", budget))
        ]


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
