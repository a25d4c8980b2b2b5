"""Going on with a chain that rests, in a process that outlives the screen."""

from __future__ import annotations

import asyncio
import sys

from cockpit.store.errors import CockpitError
from cockpit.store.place import Place

_LAST_WORDS = 400


class ChainNotResumed(CockpitError):
    """The chain's process ended with an error."""

    code = "chain_not_resumed"


async def go_on(place: Place, chain_id: str) -> None:
    """Run ``cockpit chain resume`` until the chain rests again; leaving the screen ends no chain.

    Raises :class:`ChainNotResumed` with its last words when it could not.
    """
    path = place.state / "chains" / f"{chain_id}.log"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        begins = log.tell()
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cockpit", "chain", "resume", chain_id),
            cwd=place.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    code = await child.wait()
    if code > 0:
        with path.open("rb") as said:
            said.seek(begins)
            words = said.read()[-_LAST_WORDS:].decode("utf-8", "replace").strip()
        raise ChainNotResumed(f"{chain_id} did not go on: {words or f'exit code {code}'}")
