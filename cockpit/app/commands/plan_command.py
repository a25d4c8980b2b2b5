"""``/plan`` in the prompt: a written plan, or what is to be built, becomes a proposal like any other.

A file or a list of tasks is read as it is; words go to the model, in a session that plans. Specified in
``docs/reference/plans.md``.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.app.commands.command_record import PromptCommand
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.host import Host
    from cockpit.store.db.transaction import Tx

_FILE = re.compile(r"\S+\.(?:md|markdown|txt)|\S*/\S*", re.IGNORECASE)
_MOST_BYTES = 1_000_000


class PlanUnread(CockpitError):
    """The file of a plan cannot be read."""

    code = "usage"


async def propose_plan(host: Host, words: str) -> None:
    """Propose the plan in the file that ``words`` name, or that they are; others are for the model to plan.

    Raises ``CockpitError``: the file cannot be read, or no session can be started.
    """
    from cockpit.access.principals import PERSON
    from cockpit.backlog.planning.plan import PlanEmpty
    from cockpit.backlog.planning.propose_plan import propose

    def write(tx: Tx) -> object:
        return propose(tx, plan, PERSON)

    source = words.removeprefix("@")
    is_file = await asyncio.to_thread(_is_file, host.engine.place.root, source)
    plan = await asyncio.to_thread(_read_plan, host.engine.place.root, source, is_file)
    try:
        await host.engine.store.write(write)
    except PlanEmpty:
        if is_file:
            raise
        await _plan_with_model(host, source)


async def _plan_with_model(host: Host, words: str) -> None:
    """Start a session in which the model plans ``words``, and follow it."""
    session_id = await host.engine.start(words, task_type="plan")
    host.attach(session_id)
    host.runs.ensure_running(session_id)


def _is_file(root: Path, source: str) -> bool:
    """Whether ``source`` names a file, which may be missing, and is not a text."""
    if not source or "\n" in source:
        return False
    if _FILE.fullmatch(source):
        return True
    try:
        return (root / Path(source).expanduser()).is_file()
    except (OSError, ValueError):
        return False  # too long or with characters that no file name has, so it is a text


def _read_plan(root: Path, source: str, is_file: bool) -> str:
    """Return the text of the file, or the source where it is a text itself."""
    if not source:
        raise PlanUnread(
            "Nothing to plan. Say what to build: /plan add OAuth login. Or name a file: /plan docs/plan.md."
        )
    if not is_file:
        return source
    path = root / Path(source).expanduser()
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanUnread(f"Cannot read {source}: {reason}.") from error


COMMANDS = (PromptCommand("plan", "what to build, a FILE, or the plan itself", propose_plan),)
