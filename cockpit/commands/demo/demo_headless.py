"""The demo without a terminal: the same two tasks, decided by the demo's policy, and a report."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from cockpit.commands.demo import demo_policy
from cockpit.commands.demo.demo_guide import BUG_WORDS, DISCUSS_WORDS
from cockpit.commands.demo.demo_report import project_report, session_report
from cockpit.commands.demo.sample_project import Sample
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import SafeStream, say, show
from cockpit.config.load_settings import Settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow

_LIMITS = Limits(max_waves=20, deadline_s=60.0)


async def play(place: ProjectPaths, settings: Settings, sample: Sample, script: str) -> Exit:
    """Play both tasks, telling them as they go, then the report. The exit code says whether all of
    it came to a good end."""
    async with open_runtime(place, settings.runtime) as runtime:
        _title("1 of 2: a review. The reviewer is cockpit's offline rules, not a model.")
        words = f"review main..{sample.branch}"
        review = await _session(runtime, words, model="offline", discuss=DISCUSS_WORDS)
        _title("2 of 2: a bug. A script speaks; what it reads, edits, runs and commits is real.")
        bug = await _session(runtime, BUG_WORDS, model=script)
        _title("Report")
        for told in await runtime.store.read(
            lambda connection: [session_report(connection, one) for one in (review, bug)]
        ):
            show(told + "\n")
        text, broken = await project_report(runtime.store, sample, (review, bug))
    show(f"{sample.root}\n{text}")
    for problem in broken:
        say(f"cockpit: the demo went wrong: {problem}.")
    return Exit.FAILED if broken else Exit.DONE


async def _session(runtime: Runtime, words: str, *, model: str, discuss: str = "") -> str:
    """One task from its first word to its end; returns the session's id. Raises what ended it."""
    session_id = await runtime.start(
        words, model=model, policy="ask", interactive=False, limits=_LIMITS
    )
    story = _Story()
    beside = [
        asyncio.create_task(demo_policy.decide(runtime, session_id, discuss=discuss)),
        asyncio.create_task(story.follow(runtime, session_id)),
    ]
    try:
        await runtime.run(session_id)
    finally:
        for task in beside:
            task.cancel()
        ended = await asyncio.gather(*beside, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
    rest = await runtime.store.read(
        lambda connection: journal.rows(connection, after=story.seq, session_id=session_id)
    )
    story.tell(rest)
    return session_id


class _Story:
    """Tells one session's rows on stdout, each once and in order."""

    def __init__(self) -> None:
        self.seq = 0
        self._teller = Storyteller(hints=False)
        self._telling = SafeStream(sys.stdout)

    async def follow(self, runtime: Runtime, session_id: str) -> None:
        """Tell what comes, until cancelled."""
        async for rows in follow(runtime.store, session_id=session_id):
            self.tell(rows)

    def tell(self, rows: Sequence[journal.Row]) -> None:
        for row in rows:
            self.seq = row.seq
            if text := self._teller.tell(row):
                self._telling.write(text)


def _title(words: str) -> None:
    show(f"\n── {words} {'─' * max(0, 96 - len(words))}\n")
