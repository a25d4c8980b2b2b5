"""The files that a command runs and names: their content is part of what is shown.

``sh build.sh`` shows a name; what runs is the file's content at that moment. Its digest goes into the
proposal, and the command is refused if the content is another one when it would run. What such a file loads
in turn is not followed. See ``docs/reference/actions.md``, previews.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.shell_commands import SHELLS, RanCommand, list_commands
from cockpit.core.secrets import mask

SHOWN_LINES = 40
"""Lines of a script that the proposal shows."""

_MOST_BYTES = 16 * 1024 * 1024
_INTERPRETERS = re.compile(
    r"(?:ba|da|z|k|c|tc|fi)?sh|source|\.|(?:python|pypy)[0-9.]*|node|nodejs|deno|bun|perl|ruby|php|lua|Rscript"
)
_RUN_FILES: Mapping[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "rake": ("Rakefile", "rakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "gradle": ("build.gradle", "build.gradle.kts"),
    "pre-commit": (".pre-commit-config.yaml",),
    "docker-compose": ("compose.yaml", "docker-compose.yml"),
}
"""Programs that run what a file of a fixed name says."""
_FILE_OPTIONS = {"make": ("-f", "--file", "--makefile"), "just": ("-f", "--justfile")}
_FOLDER_OPTIONS = {"make": ("-C", "--directory"), "npm": ("--prefix", "-C"), "just": ("-d",)}
_MODULE = re.compile(r"-[a-zA-Z]*m")


@dataclass(frozen=True, slots=True)
class NamedScript:
    """A file that a command runs: ``path`` as named, from the root; ``real`` where its links lead; the
    ``sha256`` of its content; its ``text``, '' for one that is not text."""

    path: str
    real: str
    sha256: str
    text: str = ""

    def pin(self) -> dict[str, str]:
        """Return what the proposal's payload keeps."""
        return {"path": self.path, "real": self.real, "sha256": self.sha256}

    def describe(self) -> str:
        """Return the proposal's field."""
        lines = self.text.count("\n") + (self.text[-1:] not in ("", "\n"))
        link = f" (a link to {self.real})" if self.real != self.path else ""
        return f"{self.path}{link}, {lines} lines, sha256 {self.sha256[:16]}"

    def excerpt(self) -> str:
        """Return the first lines, secrets masked, and how many more there are."""
        lines = mask(self.text).rstrip("\n").split("\n")
        rest = len(lines) - SHOWN_LINES
        more = [f"… {rest} more lines"] if rest > 0 else []
        return "\n".join([f"{self.path}:", *lines[:SHOWN_LINES], *more])


@dataclass(frozen=True, slots=True)
class NamedScripts:
    """The files of the project that a command runs and names; ``missing`` are named, but not there."""

    present: tuple[NamedScript, ...] = ()
    missing: tuple[str, ...] = ()

    def pins(self) -> list[dict[str, str]]:
        """Return what the proposal's payload keeps."""
        absent = [{"path": path, "real": "", "sha256": ""} for path in self.missing]
        return [*(script.pin() for script in self.present), *absent]


def find_scripts(argv: Sequence[str], confined: Confined) -> NamedScripts:
    """Find the files of the project that a command runs and names, in a shell's script too."""
    names = dict.fromkeys(
        name for command in list_commands(argv) for name in _list_names(command, confined)
    )
    scripts = {name: read_script(name, confined) for name in names}
    return NamedScripts(
        tuple(script for script in scripts.values() if script is not None),
        tuple(name for name, script in scripts.items() if script is None),
    )


def read_script(path: str, confined: Confined) -> NamedScript | None:
    """Read a file of the project as it is now; None where there is no such file."""
    try:
        name = confined.relative(path)
        real = confined.inside(name).relative_to(confined.root).as_posix()
        with confined.open_read(name) as file:
            data = file.read(_MOST_BYTES)
    except (PathRefused, OSError):
        return None
    text = "" if b"\0" in data[:8_000] else data.decode("utf-8", "replace")
    return NamedScript(name, real, hashlib.sha256(data).hexdigest(), text)


def why_changed(pins: Iterable[Mapping[str, str]], confined: Confined) -> str:
    """Say which pinned file is another one now; '' when all are as they were shown."""
    for pin in pins:
        now = read_script(pin["path"], confined)
        if not pin["sha256"]:
            if now is not None:
                return (
                    f"{pin['path']}, which this command would run, was not there when it was shown"
                )
            continue
        if now is None:
            return f"{pin['path']}, which this command runs, is gone since it was shown"
        if now.sha256 != pin["sha256"] or now.real != pin["real"]:
            return (
                f"{pin['path']}, which this command runs, has changed since it was shown (sha256"
                f" {pin['sha256'][:16]}, now {now.sha256[:16]})"
            )
    return ""


def _list_names(command: RanCommand, confined: Confined) -> list[str]:
    program, words = command.program, list(command.argv[1:])
    folder = command.cwd
    names: list[str] = []
    if not command.argv:
        return []
    if "/" in command.argv[0]:
        names.append(posixpath.join(folder, command.argv[0]))
    if program in _RUN_FILES:
        folder = posixpath.join(folder, _value(words, _FOLDER_OPTIONS.get(program, ())))
        file = _value(words, _FILE_OPTIONS.get(program, ()))
        candidates = (file,) if file else _RUN_FILES[program]
        names += [posixpath.join(folder, candidate) for candidate in candidates]
    elif _INTERPRETERS.fullmatch(program):
        operands = [*_list_operands(program, words), *command.reads]
        names += [posixpath.join(folder, name) for name in operands]
    paths = [_from_root(name, confined.root) for name in names if name]
    return [path for path in paths if not path.startswith(("/", "..", "-"))]


def _list_operands(program: str, words: list[str]) -> list[str]:
    """Return the script in an interpreter's arguments. A module (``-m``) is mostly an installed one."""
    is_shell = program in SHELLS
    for word in words:
        if program.startswith(("python", "pypy")) and _MODULE.fullmatch(word):
            return []
        if re.fullmatch(r"-[a-z]*c", word) or (not is_shell and word in ("-e", "--eval")):
            return []
        if not word.startswith(("-", "+")):
            return [word]
    return []


def _value(words: Sequence[str], options: Sequence[str]) -> str:
    """Return the value of the last of these options; '' without one."""
    value = ""
    for place, word in enumerate(words):
        for option in options:
            if word == option and place + 1 < len(words):
                value = words[place + 1]
            elif option.startswith("--") and word.startswith(f"{option}="):
                value = word.partition("=")[2]
            elif not option.startswith("--") and word.startswith(option) and word != option:
                value = word[len(option) :]
    return value


def _from_root(name: str, root: Path) -> str:
    whole = posixpath.normpath(posixpath.join(str(root), name))
    return posixpath.relpath(whole, str(root)) if whole.startswith(f"{root}/") else name
