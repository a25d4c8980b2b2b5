"""Resume a stopped chain in a process that outlives the screen.

Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cockpit.core.clock import Clock
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths

_OUTPUT_MOST = 400
_POLL_S = 0.2


class ChainNotResumed(CockpitError):
    """The process of the chain ended with an error."""

    code = "chain_not_resumed"


async def resume_chain(place: ProjectPaths, chain_id: str, clock: Clock) -> None:
    """Run ``cockpit chain resume`` until the chain stops; leaving the screen does not end it.

    Raises :class:`ChainNotResumed` with the end of the process's output.
    """
    path = place.state / "chains" / f"{chain_id}.log"
    try:
        log_start, process = _start_process(place, chain_id, path)
    except OSError as error:
        raise ChainNotResumed(
            f"{chain_id} was not resumed: {error.strerror or error}. Fix that, then run `cockpit "
            f"chain resume {chain_id}`."
        ) from error
    while (code := process.poll()) is None:
        await clock.sleep(_POLL_S)
    if code > 0:
        output = path.read_bytes()[log_start:][-_OUTPUT_MOST:].decode("utf-8", "replace").strip()
        raise ChainNotResumed(f"{chain_id} was not resumed: {output or f'exit code {code}'}")


def _start_process(
    place: ProjectPaths, chain_id: str, path: Path
) -> tuple[int, subprocess.Popen[bytes]]:
    """Return where the output of the process starts in its log, and the process."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        process = subprocess.Popen(
            (sys.executable, "-P", "-m", "cockpit", "chain", "resume", chain_id),
            cwd=place.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return log.tell(), process
