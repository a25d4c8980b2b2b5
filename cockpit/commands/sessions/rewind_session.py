"""``cockpit sessions rewind``: what going back to a wave does, a question, and going back.

Specified in ``docs/reference/loop.md``, rewind.
"""

from __future__ import annotations

import asyncio

from cockpit.commands.caller_rights import find_user
from cockpit.commands.confirm import confirm
from cockpit.commands.open_project import (
    choose_session,
    find_project,
    open_store,
    require_records,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.text import pluralize
from cockpit.loop.rewind.apply_rewind import rewind
from cockpit.loop.rewind.plan_rewind import RewindPlan, plan_rewind
from cockpit.loop.tools.approve_tools import require_person


def rewind_session(session: str, wave: int, *, asks: bool, as_json: bool) -> None:
    """List what going back does, ask where ``asks``, and go back.

    Raises ``NotAllowed`` for anyone but the user, ``WrongUse`` without a terminal to ask on, and what
    ``plan_rewind`` and ``rewind`` raise.
    """
    require_records()
    place = find_project()
    with open_store(place) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        store.write_now(lambda tx: require_person(find_user(tx, "going back to a wave")))
        plan = asyncio.run(plan_rewind(store, session_id, wave))
        if not as_json:
            show("\n".join(_describe(plan)))
        confirm(f"Go back to wave {wave}?", yes=not asks, undone="nothing was changed")
        done = asyncio.run(rewind(store, place, plan))
    if as_json:
        show_json(
            {
                "session_id": done.session_id,
                "source": session_id,
                "wave": wave,
                "files": done.files,
                "stays": done.stays,
            }
        )
        return
    for text in done.stays[len(plan.stays) :]:
        say(text)
    say(f"Back at wave {wave}: {pluralize(len(done.files), 'file')} changed.")
    say(f"Write to it: cockpit run --continue {done.session_id} MESSAGE")


def _describe(plan: RewindPlan) -> list[str]:
    """Return the lines: files that get their earlier content, and what stays."""
    lines = [f"Session {plan.session_id}, back to wave {plan.wave}:"]
    if not plan.files:
        lines.append("  No file changes.")
    for each in plan.files:
        removed = "is removed: it did not exist"
        lines.append(
            f"  {each.path}  {removed if each.content is None else 'gets its earlier content'}"
        )
    if plan.stays:
        lines += ["This stays as it is:", *(f"  {each}" for each in plan.stays)]
    return lines
