"""``/plan FILE`` in the prompt: a written plan becomes a proposal, which is decided like any other."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.application import CockpitApp
    from cockpit.store.db.transaction import Tx

COMMAND = "/plan"
ARGUMENTS = "FILE, or the plan itself"

_SAID = re.compile(r"/plan(?:\s+(?P<source>.*))?", re.DOTALL)
_MOST_BYTES = 1_000_000


class PlanUnread(CockpitError):
    """The file of a plan cannot be read."""

    code = "usage"


def plan_source(text: str) -> str | None:
    """What words in the prompt say is to be planned; None for any other words."""
    said = _SAID.fullmatch(text.strip())
    return None if said is None else (said["source"] or "").strip().removeprefix("@")


async def propose(app: CockpitApp, text: str, source: str) -> None:
    """Propose the plan in the file that ``source`` names, or that it is; ``text`` was typed for it.

    What is wrong with it is told, and the words return to the prompt.
    """
    from cockpit.access.principals import PERSON
    from cockpit.backlog.planning.propose_plan import propose as proposed

    def step(tx: Tx) -> object:
        return proposed(tx, plan, PERSON)

    try:
        plan = await asyncio.to_thread(_read, app.engine.place.root, source)
        await app.engine.store.write(step)
    except CockpitError as error:
        app.give_back(text)
        app.tell(str(error))


def _read(root: Path, source: str) -> str:
    """The file's text. A text of more than a line is the plan itself."""
    if not source:
        raise PlanUnread("Say which file holds the plan: /plan docs/plan.md.")
    if "\n" in source:
        return source
    path = root / Path(source).expanduser()
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanUnread(f"{source} cannot be read: {why}.") from error
