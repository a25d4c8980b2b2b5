"""Run a command of cockpit beside the screen, and return what it prints.

The screen has one implementation of an export or of the doctor's checks: the command's.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

from cockpit.core.errors import CockpitError
from cockpit.core.failure_lines import clip_start
from cockpit.core.project_paths import ProjectPaths

_OUTPUT_MOST = 400


class CommandFailed(CockpitError):
    """A command of cockpit ended with an error."""

    code = "command_failed"


async def run_cockpit(
    place: ProjectPaths, arguments: Sequence[str], *, fine_codes: Sequence[int] = (0,)
) -> str:
    """Run ``cockpit ARGUMENTS`` in the project to its end and return what it printed, without styles.

    It has no input and no terminal, so it can decide nothing for the user. Raises :class:`CommandFailed`
    with the end of its errors for an exit code that is not one of ``fine_codes``.
    """
    command = f"cockpit {shlex.join(arguments)}"
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "cockpit", *arguments),
            cwd=place.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CommandFailed(f"`{command}` did not start: {error.strerror or error}.") from error
    try:
        out, errors = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode not in fine_codes:
        words = errors.decode("utf-8", "replace").strip().removeprefix("cockpit: ")
        reason = clip_start(words, _OUTPUT_MOST) or f"exit code {process.returncode}"
        raise CommandFailed(f"`{command}` failed: {reason}")
    return out.decode("utf-8", "replace")
