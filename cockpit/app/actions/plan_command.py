"""``/plan FILE`` in the prompt: a written plan becomes a proposal, which is decided like any other.

Specified in ``docs/reference/plans.md``.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.host import Host
    from cockpit.store.db.transaction import Tx

COMMAND = "/plan"
ARGUMENTS = "FILE, or the plan itself"

_PLAN = re.compile(r"/plan(?:\s+(?P<source>.*))?", re.DOTALL)
_MOST_BYTES = 1_000_000


class PlanUnread(CockpitError):
    """The file of a plan cannot be read."""

    code = "usage"


def plan_source(text: str) -> str | None:
    """Return the file or text after ``/plan`` in the prompt; None for any other message."""
    match = _PLAN.fullmatch(text.strip())
    return None if match is None else (match["source"] or "").strip().removeprefix("@")


async def propose_plan(host: Host, text: str, source: str) -> None:
    """Propose the plan in the file ``source``, or the plan that ``source`` itself is.

    On an error, ``text`` (the prompt as it was typed) returns to the prompt.
    """
    from cockpit.access.principals import PERSON
    from cockpit.backlog.planning.propose_plan import propose

    def write(tx: Tx) -> object:
        return propose(tx, plan, PERSON)

    try:
        plan = await asyncio.to_thread(_read_plan, host.engine.place.root, source)
        await host.engine.store.write(write)
    except CockpitError as error:
        host.restore_text(text)
        host.show_error(str(error))


def _read_plan(root: Path, source: str) -> str:
    """Return the text of the file. A source of more than one line is the plan itself."""
    if not source:
        raise PlanUnread("No plan file given. Name one: /plan docs/plan.md.")
    if "\n" in source:
        return source
    path = root / Path(source).expanduser()
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanUnread(f"Cannot read {source}: {reason}.") from error
