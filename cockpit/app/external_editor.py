"""The person's own editor: ``$VISUAL``, ``$EDITOR``, else ``vi``."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cockpit.core.errors import CockpitError


class EditorFailed(CockpitError):
    """The editor did not run or left nothing that can be used."""

    code = "editor"


def command(environ: Mapping[str, str]) -> list[str]:
    """The editor as an argv list. Raises :class:`EditorFailed` when it is not written soundly."""
    name = next((n for n in ("VISUAL", "EDITOR") if environ.get(n, "").strip()), "")
    try:
        return shlex.split(environ[name]) if name else ["vi"]
    except ValueError as error:
        raise EditorFailed(f"${name} cannot be read: {error}. Set it to a program.") from error


def edited(text: str, *, argv: list[str], suffix: str = ".md") -> str:
    """Open ``text`` in the editor, wait, and return what was saved. Blocks; for a thread.

    Raises :class:`EditorFailed`; then the text is as it was.
    """
    handle, name = tempfile.mkstemp(prefix="cockpit-", suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        try:
            done = subprocess.run([*argv, name], check=False)
        except OSError as error:
            raise EditorFailed(
                f"The editor {argv[0]} does not start: {error.strerror or error}. Set $EDITOR."
            ) from error
        if done.returncode != 0:
            raise EditorFailed(
                f"The editor {argv[0]} ended with {done.returncode}; nothing changed."
            )
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            found = file.read()
    finally:
        path.unlink(missing_ok=True)
    # Editors end a file with a newline that nobody typed.
    return found[:-1] if found.endswith("\n") and not text.endswith("\n") else found


@contextmanager
def kept_if_refused(
    text: str, told: Callable[[str], None], *, suffix: str = ".md"
) -> Iterator[None]:
    """What a person wrote is not lost with a :class:`CockpitError` inside: ``told`` is told of the file
    that then holds it."""
    try:
        yield
    except CockpitError:
        handle, name = tempfile.mkstemp(prefix="cockpit-", suffix=suffix)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        told(f"What you wrote is kept in {name}.")
        raise
