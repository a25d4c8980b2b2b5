"""Report an error to the user: one sentence, an exit code, and the traceback where it helps."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from cockpit.commands.exit_codes import Exit, exit_code_of_error
from cockpit.commands.terminal import ReaderGone, discard_buffered, say
from cockpit.core.errors import CockpitError, find_machine_fault
from cockpit.core.secrets import mask
from cockpit.decide.model import ModelError

LARGEST_LOG = 1_000_000
"""Bytes after which the error log is rotated once."""


def report_error(error: Exception) -> Exit:
    """Print what failed on stderr and return the exit code. An unexpected error goes to the error log.

    ``COCKPIT_DEBUG=1`` prints the traceback as well. Secrets are masked in all of it.
    """
    if isinstance(error, ReaderGone):
        discard_buffered(sys.stdout, sys.stderr)
        return Exit.PIPE_CLOSED
    if os.environ.get("COCKPIT_DEBUG", "") not in ("", "0"):
        say(mask("".join(traceback.format_exception(error))).rstrip())
    if isinstance(error, ModelError):
        say(f"cockpit: {mask(str(error))}")
        return Exit.WRONG_USE if error.code in ("config", "script") else Exit.FAILED
    if isinstance(error, CockpitError):
        say(f"cockpit: {mask(str(error))}")
        return exit_code_of_error(error)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # Only a name from outside is so long; each place that looks at a path would have to say this.
        say(f"cockpit: {str(error.filename)[:60]}… is too long for the name of a file.")
        return Exit.WRONG_USE
    if fault := find_machine_fault(error):
        say(f"cockpit: {fault}. Make room, then run it again.")
        return Exit.WAITING
    path = _append_to_log(error)
    details = f"See {path}." if path else "Run it again with COCKPIT_DEBUG=1 to see the traceback."
    say(f"cockpit: unexpected error ({type(error).__name__}). {details}")
    return Exit.FAILED


def log_file() -> Path:
    """Return the path of the log of unexpected errors."""
    from platformdirs import user_log_path

    return user_log_path("cockpit", appauthor=False) / "errors.log"


def _append_to_log(error: Exception) -> Path | None:
    """Append the masked traceback to the log; None where the log cannot be written."""
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
