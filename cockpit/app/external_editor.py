"""The user's own editor: ``$VISUAL``, ``$EDITOR``, else ``vi``."""

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
    """The editor did not start, or exited with an error."""

    code = "editor"


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the editor as an argv list. Raises :class:`EditorFailed` when its quotes do not match."""
    names = ("VISUAL", "EDITOR")
    name = next((name for name in names if environ.get(name, "").strip()), "")
    try:
        return shlex.split(environ[name]) if name else ["vi"]
    except ValueError as error:
        raise EditorFailed(f"Cannot read ${name}: {error}. Set it to a program.") from error


def edit_text(text: str, *, argv: list[str], suffix: str = ".md") -> str:
    """Open ``text`` in the editor and return the saved text. Blocks: call it in a thread.

    Raises :class:`EditorFailed`.
    """
    handle, name = tempfile.mkstemp(prefix="cockpit-", suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        try:
            process = subprocess.run([*argv, name], check=False)
        except OSError as error:
            raise EditorFailed(
                f"The editor {argv[0]} does not start: {error.strerror or error}. Set $EDITOR."
            ) from error
        if process.returncode != 0:
            raise EditorFailed(
                f"The editor {argv[0]} exited with code {process.returncode}; nothing changed."
            )
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            saved = file.read()
    finally:
        path.unlink(missing_ok=True)
    # Editors end a file with a newline that the user did not type.
    return saved[:-1] if saved.endswith("\n") and not text.endswith("\n") else saved


@contextmanager
def save_text_on_error(
    text: str, notify: Callable[[str], None], *, suffix: str = ".md"
) -> Iterator[None]:
    """Save ``text`` to a file when the block raises :class:`CockpitError`, so that it is not lost.

    ``notify`` gets a message that names the file.
    """
    try:
        yield
    except CockpitError:
        handle, name = tempfile.mkstemp(prefix="cockpit-", suffix=suffix)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        notify(f"Your text is saved in {name}.")
        raise
