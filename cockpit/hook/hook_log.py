"""``hook.log`` in the state folder: one line for each failure of a hook, limited in size."""

from __future__ import annotations

import os
import time

LARGEST = 256_000
"""Bytes; a longer log moves to ``hook.log.old``, whose former content goes."""
_LINE = 500


def append_line(state: str, words: str) -> None:
    """Append one line to the log in the folder ``state``. Failures are silent: no reader is left to tell."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    from cockpit.core.secrets import mask  # here: most calls log nothing

    text = mask(" ".join(words.split()))[:_LINE]
    line = f"{moment} {os.getpid()} {text}\n".encode("utf-8", "replace")
    path = os.path.join(state, "hook.log")
    try:
        if os.path.islink(path):
            return
        if os.path.exists(path) and os.path.getsize(path) > LARGEST:
            os.replace(path, f"{path}.old")
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(log, line)
        finally:
            os.close(log)
    except OSError:
        return
