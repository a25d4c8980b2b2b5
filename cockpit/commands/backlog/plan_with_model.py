"""Free text to a plan: a session of the model, without the screen, up to its proposal.

See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from msgspec import Struct

from cockpit.commands.exit_codes import Exit, exit_code_of_session
from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.report_error import report_error
from cockpit.commands.sessions.headless import RowPrinter, run_and_print
from cockpit.commands.terminal import is_terminal, say
from cockpit.commands.unconfined import settle_unconfined
from cockpit.loop.planner.plan_target import PLAN_TYPE
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal


class Planned(Struct, frozen=True):
    """How a planning session ended."""

    session_id: str
    proposal: Proposal | None
    """The plan that it proposed; None where it proposed none."""
    code: Exit


def plan_with_model(words: str, flags: Mapping[str, object], *, as_json: bool) -> Planned:
    """Let the model plan ``words`` and print how it goes; return what it proposed."""
    return asyncio.run(_plan(words, flags, as_json))


async def _plan(words: str, flags: Mapping[str, object], as_json: bool) -> Planned:
    place = find_project()
    settings = load_project_settings(place, flags)
    ensure_root_token(place, quiet=not is_terminal(sys.stderr))
    await settle_unconfined(settings, None)
    async with open_project_runtime(place, settings.runtime) as runtime:
        before = await runtime.store.read(journal.last_seq)
        session_id = await runtime.start(words, interactive=False, task_type=PLAN_TYPE)
        try:
            printer = RowPrinter("json" if as_json else "text", before, prints_review=True)
        except BaseException:  # a signal: nothing runs the session yet
            await asyncio.shield(
                runtime.store.write(lambda tx: sessions.stop_unowned(tx, session_id))
            )
            raise
        ending = await run_and_print(runtime, session_id, printer)
        proposal = await runtime.store.read(
            lambda c: proposals.find_latest_of_kind(c, session_id, "action", but="")
        )
        code = await runtime.store.read(lambda c: exit_code_of_session(c, session_id))
    if ending.error is not None:
        report_error(ending.error)
    if code is not Exit.DONE:
        say(
            f"Resume with `cockpit run --continue {session_id}`, or on the screen with"
            f" `cockpit -r {session_id}`."
        )
    return Planned(session_id, proposal, code)
