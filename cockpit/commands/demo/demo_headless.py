"""The demo without a terminal: the same two tasks, decided by the demo's policy, with a report."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from cockpit.commands.demo import demo_policy
from cockpit.commands.demo.demo_guide import BUG_WORDS, DISCUSS_WORDS
from cockpit.commands.demo.demo_report import project_report, session_report
from cockpit.commands.demo.sample_project import Sample
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import SafeStream, output_width, say, show
from cockpit.config.load_settings import Settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow

_LIMITS = Limits(max_waves=20, deadline_s=60.0)


async def play(place: ProjectPaths, settings: Settings, sample: Sample, script: str) -> Exit:
    """Run both tasks, print their stories and the report; return 0 where all checks pass."""
    async with open_runtime(place, settings.runtime) as runtime:
        _title("1 of 2: a review. The reviewer is cockpit's offline rules, not a model.")
        words = f"review main..{sample.branch}"
        review = await _session(runtime, words, model="offline", discuss=DISCUSS_WORDS)
        _title(
            "2 of 2: a bug. A script plays the model; its reads, edits, runs and commits are real."
        )
        bug = await _session(runtime, BUG_WORDS, model=script)
        _title("Report")
        for report in await runtime.store.read(
            lambda connection: [
                session_report(connection, session_id) for session_id in (review, bug)
            ]
        ):
            show(report + "\n")
        text, broken = await project_report(runtime.store, sample, (review, bug))
    show(f"{sample.root}\n{text}")
    for problem in broken:
        say(f"cockpit: the demo went wrong: {problem}.")
    return Exit.FAILED if broken else Exit.DONE


async def _session(runtime: Runtime, words: str, *, model: str, discuss: str = "") -> str:
    """Run one task to its end; return the session's id. Raises the error that ended it."""
    session_id = await runtime.start(
        words, model=model, policy="ask", interactive=False, limits=_LIMITS
    )
    story = _Story()
    helpers = [
        asyncio.create_task(demo_policy.decide(runtime, session_id, discuss=discuss)),
        asyncio.create_task(story.follow(runtime, session_id)),
    ]
    try:
        await runtime.run(session_id)
    finally:
        for task in helpers:
            task.cancel()
        ended = await asyncio.gather(*helpers, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
    rest = await runtime.store.read(
        lambda connection: journal.rows(connection, after=story.seq, session_id=session_id)
    )
    story.print_rows(rest)
    return session_id


class _Story:
    """Prints the story of one session on stdout."""

    def __init__(self) -> None:
        self.seq = 0
        self._teller = Storyteller(hints=False, width=output_width())
        self._telling = SafeStream(sys.stdout)

    async def follow(self, runtime: Runtime, session_id: str) -> None:
        """Print new rows until cancelled."""
        async for rows in follow(runtime.store, session_id=session_id):
            self.print_rows(rows)

    def print_rows(self, rows: Sequence[journal.Row]) -> None:
        for row in rows:
            self.seq = row.seq
            if text := self._teller.tell(row):
                self._telling.write(text)


def _title(words: str) -> None:
    show(f"\n── {words} {'─' * max(0, 96 - len(words))}\n")
