"""The user's own editor: ``$VISUAL``, ``$EDITOR``, else ``vi``."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cockpit.core.errors import CockpitError
from cockpit.core.processes import kill_tree, list_descendants, signal_processes

_HUNG_UP = (-signal.SIGHUP, -signal.SIGTERM, 128 + signal.SIGHUP, 128 + signal.SIGTERM)
"""Exit codes of an editor whose terminal went away: what it had saved counts."""
_GRACE_S = 0.4
"""Seconds that an editor has to end when its terminal is gone."""


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


class Editor:
    """One run of the user's editor on a text."""

    def __init__(self, text: str, *, argv: list[str], suffix: str = ".md") -> None:
        self._text = text
        self._argv = argv
        self._suffix = suffix
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def run(self) -> str:
        """Return the saved text, once the editor ends. Blocks: call it in a thread.

        Raises :class:`EditorFailed`; not after :meth:`end`, which returns the text as it is then.
        """
        text = self._text
        handle, name = tempfile.mkstemp(prefix="cockpit-", suffix=self._suffix)
        path = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            code = self._wait_for_editor(name)
            if code not in (0, *_HUNG_UP) and not self._is_ended:
                raise EditorFailed(
                    f"The editor {self._argv[0]} exited with code {code}; nothing changed."
                )
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                saved = file.read()
        finally:
            path.unlink(missing_ok=True)
        # Editors end a file with a newline that the user did not type.
        return saved[:-1] if saved.endswith("\n") and not text.endswith("\n") else saved

    def _wait_for_editor(self, name: str) -> int:
        try:
            self._process = subprocess.Popen([*self._argv, name])
        except OSError as error:
            raise EditorFailed(
                f"The editor {self._argv[0]} does not start: {error.strerror or error}. Set $EDITOR."
            ) from error
        return self._process.wait()

    def end(self) -> None:
        """End the editor because its terminal is gone; :meth:`run` then returns. Blocks for a moment."""
        self._is_ended = True
        if self._process is None:
            return
        # An editor in a window of its own does not hear of the terminal; a shell does not tell its editor.
        pids = [self._process.pid, *list_descendants(self._process.pid)]
        signal_processes(pids, signal.SIGTERM)
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            kill_tree(self._process.pid)
            signal_processes(pids, signal.SIGKILL)


def edit_text(text: str, *, argv: list[str], suffix: str = ".md") -> str:
    """Open ``text`` in the editor and return the saved text. Blocks: call it in a thread.

    Raises :class:`EditorFailed`.
    """
    return Editor(text, argv=argv, suffix=suffix).run()


_WITH_COLON = frozenset({"hx", "helix", "zed", "subl", "micro"})
_WITH_GOTO = frozenset({"code", "codium", "cursor", "windsurf"})


def file_command(argv: list[str], path: Path, line: int) -> list[str]:
    """Return the command that opens a file at a line, as this editor takes it."""
    program = Path(argv[0]).name
    place = f"{path}:{line}"
    if program in _WITH_GOTO:
        return [*argv, "--goto", place]
    return [*argv, place] if program in _WITH_COLON else [*argv, f"+{line}", str(path)]


def open_file(path: Path, line: int, *, argv: list[str]) -> None:
    """Open a file at a line in the editor, and wait for its end. Raises :class:`EditorFailed`."""
    try:
        process = subprocess.run(file_command(argv, path, line), check=False)
    except OSError as error:
        raise EditorFailed(
            f"The editor {argv[0]} does not start: {error.strerror or error}. Set $EDITOR."
        ) from error
    if process.returncode != 0:
        raise EditorFailed(f"The editor {argv[0]} exited with code {process.returncode}.")


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
