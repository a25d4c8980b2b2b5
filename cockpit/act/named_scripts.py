"""The files that a command runs by name, and the digest of the project's files where it runs its code.

``sh build.sh`` shows a name; what runs is the file's content at that moment. Its digest goes into the
proposal, and the command is refused if the content is another one when it would run. What a test runner, a
Makefile or a script loads in its turn can be any file of the project: so such a proposal says that it runs
what the project's tests and scripts say, with the digest of all of them. See
``docs/reference/actions.md``, previews.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from cockpit.access.commands.command_table import SHELLS
from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.shell_commands import RanCommand, list_commands
from cockpit.core.fenced_text import code_span, fence_text
from cockpit.core.secrets import mask

SHOWN_LINES = 40
"""Lines of a script that the proposal shows."""
MOST_FILES = 20_000
"""Files of a project whose digest is taken; of a larger one the proposal says that there is none."""

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
_RUNS_CODE = frozenset(
    (
        "pytest",
        "py.test",
        "unittest",
        "cargo",
        "go",
        "mvn",
        "dotnet",
        "jest",
        "vitest",
        "mocha",
        "coverage",
    )
)
"""Programs that run the project's code and name no file of it."""
_MODULE = re.compile(r"-[a-zA-Z]*m")
_LEFT_OUT = frozenset(
    {".git", "node_modules", "__pycache__", "venv", ".venv", ".mypy_cache", ".pytest_cache"}
)


class NamedScript(Struct, frozen=True):
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
        """Return the first lines as Markdown, secrets masked, and how many more there are.

        They are fenced: a paragraph would join lines, and code behind a comment would look like one.
        """
        lines = mask(self.text).rstrip("\n").split("\n")
        rest = len(lines) - SHOWN_LINES
        more = [f"… {rest} more lines"] if rest > 0 else []
        path = code_span(self.path.replace("\n", "␤"))
        return "\n\n".join([f"{path}:", fence_text("\n".join(lines[:SHOWN_LINES])), *more])


class NamedScripts(Struct, frozen=True):
    """The files of the project that a command runs by name; ``missing`` are not there.

    ``runs_code``: it runs what the project's files say, of which ``tree`` is the digest ('' for too many).
    """

    present: tuple[NamedScript, ...] = ()
    missing: tuple[str, ...] = ()
    runs_code: bool = False
    tree: str = ""

    def pins(self) -> list[dict[str, str]]:
        """Return what the proposal's payload keeps."""
        absent = [{"path": path, "real": "", "sha256": ""} for path in self.missing]
        return [*(script.pin() for script in self.present), *absent]

    def body(self) -> str:
        """Return the proposal's body as Markdown: the beginning of each script."""
        return "\n\n".join(script.excerpt() for script in self.present)

    def notes(self) -> list[str]:
        """Return the proposal's sentence about what it runs; none where it runs no code of the project."""
        if not self.runs_code:
            return []
        which = f"sha256 {self.tree[:16]}" if self.tree else "too many files for a digest"
        return [f"It runs what the project's tests and scripts say ({which})."]


def find_scripts(argv: Sequence[str], confined: Confined) -> NamedScripts:
    """Find the files of the project that a command runs by name, in a shell's script too. Blocks."""
    present: dict[str, NamedScript] = {}
    missing: dict[str, None] = {}
    runs_code = False
    for command in list_commands(argv):
        paths = list(_list_named(command, str(confined.root)))
        runs_code = runs_code or bool(paths) or _runs_code(command)
        for path in paths:
            script = read_script(path, confined)
            if script is None:
                missing[path] = None
            else:
                present[path] = script
    tree = digest_tree(str(confined.root)) if runs_code else ""
    return NamedScripts(tuple(present.values()), tuple(missing), runs_code, tree)


def digest_tree(root: str) -> str:
    """Return the digest of the names and contents of a project's files; '' for too many. Blocks.

    Left out are repositories, caches and installed packages. A file is read again only once it changed.
    """
    whole = hashlib.sha256()
    for count, (path, about) in enumerate(_walk(root)):
        if count >= MOST_FILES:
            return ""
        marks = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
        content = str(marks)
        if about.st_size <= _MOST_BYTES:
            content = _digest_file(os.path.join(root, path), marks)
        whole.update(os.fsencode(f"{path}\0{content}\n"))
    return whole.hexdigest()


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _LEFT_OUT)
        for name in sorted(files):
            whole = os.path.join(folder, name)
            try:
                about = os.lstat(whole)
            except OSError:
                continue
            if stat.S_ISREG(about.st_mode):
                yield os.path.relpath(whole, root), about


@lru_cache(maxsize=2 * MOST_FILES)
def _digest_file(path: str, marks: tuple[int, ...]) -> str:
    digest = hashlib.sha256()
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


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


def _list_named(command: RanCommand, root: str) -> Iterator[str]:
    """Yield the files that one command runs by name, from the root."""
    if not command.argv:
        return
    program, words, folder = command.program, list(command.argv[1:]), command.cwd
    names = [command.argv[0]] if "/" in command.argv[0] else []
    if program in _RUN_FILES:
        folder = posixpath.join(folder, _value(words, _FOLDER_OPTIONS.get(program, ())))
        file = _value(words, _FILE_OPTIONS.get(program, ()))
        names += [file] if file else _RUN_FILES[program]
    elif _INTERPRETERS.fullmatch(program):
        names += [*_list_operands(program, words), *command.reads]
    for name in filter(None, names):
        path = _from_root(posixpath.join(folder, name), root)
        if not path.startswith(("/", "..", "-")):
            yield path


def _runs_code(command: RanCommand) -> bool:
    """Whether a command runs code of the project without the name of a file."""
    return command.program in _RUNS_CODE or (
        _INTERPRETERS.fullmatch(command.program) is not None
        and any(map(_MODULE.fullmatch, command.argv[1:]))
    )


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


def _from_root(name: str, root: str) -> str:
    whole = posixpath.normpath(posixpath.join(root, name))
    return posixpath.relpath(whole, root) if whole.startswith(f"{root}/") else name
