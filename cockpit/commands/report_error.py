"""An error, told to a person: one sentence, an exit code, and the traceback where it helps."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from cockpit.commands.exit_codes import Exit, exit_code_of_error
from cockpit.commands.terminal import ReaderGone, discard_buffered, say
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.decide.model import ModelError

LARGEST_LOG = 1_000_000


def report_error(error: Exception) -> Exit:
    """Say what happened; returns the exit code. An error nobody foresaw goes to the log."""
    if isinstance(error, ReaderGone):
        return _nobody_reads()
    debug = os.environ.get("COCKPIT_DEBUG", "") not in ("", "0")
    if debug:
        say(mask("".join(traceback.format_exception(error))).rstrip())
    if isinstance(error, CockpitError):
        say(f"cockpit: {mask(str(error))}")
        return exit_code_of_error(error)
    if isinstance(error, ModelError):
        say(f"cockpit: {mask(str(error))}")
        return Exit.WRONG_USE if error.code in ("config", "script") else Exit.FAILED
    place = _log(error)
    where = f"The details are in {place}." if place else "COCKPIT_DEBUG=1 shows the details."
    say(f"cockpit: something unforeseen happened ({type(error).__name__}). {where}")
    return Exit.FAILED


def _nobody_reads() -> Exit:
    discard_buffered(sys.stdout, sys.stderr)
    return Exit.PIPE_CLOSED


def log_file() -> Path:
    """Where errors nobody foresaw are kept."""
    from platformdirs import user_log_path

    return user_log_path("cockpit", appauthor=False) / "errors.log"


def _log(error: Exception) -> Path | None:
    """Append the traceback, masked; None where no log can be written."""
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LARGEST_LOG:
            path.replace(path.with_suffix(".old.log"))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as log:
            log.write(f"{datetime.now(UTC).isoformat()}\n")
            log.write(mask("".join(traceback.format_exception(error))) + "\n")
    except OSError:
        return None
    return path
