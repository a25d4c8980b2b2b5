"""Free text to a plan: a session of the model, without the screen, up to its proposal.

See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from cockpit.commands.exit_codes import Exit, exit_code_of_session
from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.report_error import report_error
from cockpit.commands.sessions.headless import run_session, say_how_to_resume
from cockpit.commands.terminal import is_terminal
from cockpit.commands.unconfined import settle_unconfined
from cockpit.loop.planner.plan_target import PLAN_TYPE
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal


async def plan_with_model(
    words: str, flags: Mapping[str, object], *, as_json: bool
) -> tuple[str, Proposal | None, Exit]:
    """Let the model plan ``words`` and print how it goes.

    Returns the session's id, the plan that it proposed (None where it proposed none), and the exit code.
    """
    place = find_project()
    settings = load_project_settings(place, flags)
    ensure_root_token(place, quiet=not is_terminal(sys.stderr))
    await settle_unconfined(settings, None)
    async with open_project_runtime(place, settings.runtime) as runtime:
        before = await runtime.store.read(journal.last_seq)
        session_id = await runtime.start(words, interactive=False, task_type=PLAN_TYPE)
        output = "json" if as_json else "text"
        ending = await run_session(runtime, session_id, before, output, prints_review=True)
        proposal = await runtime.store.read(
            lambda c: proposals.find_latest_of_kind(c, session_id, "action", but="")
        )
        code = await runtime.store.read(lambda c: exit_code_of_session(c, session_id))
    if ending.error is not None:
        report_error(ending.error)
    if code is not Exit.DONE:
        say_how_to_resume(session_id)
    return session_id, proposal, code
