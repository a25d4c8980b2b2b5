"""Going on with a chain that rests, in a process that outlives the screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cockpit.core.clock import Clock
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths

_LAST_WORDS = 400
_LOOK_S = 0.2


class ChainNotResumed(CockpitError):
    """The chain's process ended with an error."""

    code = "chain_not_resumed"


async def go_on(place: ProjectPaths, chain_id: str, clock: Clock) -> None:
    """Run ``cockpit chain resume`` until the chain rests again; leaving the screen ends no chain.

    Raises :class:`ChainNotResumed` with its last words when it could not.
    """
    path = place.state / "chains" / f"{chain_id}.log"
    try:
        begins, child = _begin(place, chain_id, path)
    except OSError as error:
        raise ChainNotResumed(
            f"{chain_id} did not go on ({error.strerror or error}). When that is mended: `cockpit "
            f"chain resume {chain_id}`."
        ) from error
    while (code := child.poll()) is None:
        await clock.sleep(_LOOK_S)
    if code > 0:
        words = path.read_bytes()[begins:][-_LAST_WORDS:].decode("utf-8", "replace").strip()
        raise ChainNotResumed(f"{chain_id} did not go on: {words or f'exit code {code}'}")


def _begin(place: ProjectPaths, chain_id: str, path: Path) -> tuple[int, subprocess.Popen[bytes]]:
    """The process, and where its words begin in the file that they are kept in."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        child = subprocess.Popen(
            (sys.executable, "-P", "-m", "cockpit", "chain", "resume", chain_id),
            cwd=place.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return log.tell(), child
