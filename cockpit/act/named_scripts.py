"""The files that a command runs and names, and those that they load: their content is part of what is shown.

``sh build.sh`` shows a name; what runs is the file's content at that moment, and of the files that it loads.
Their digests go into the proposal, and the command is refused if a content is another one when it would run.
What cannot be followed is said. See ``docs/reference/actions.md``, previews.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.shell_commands import SHELLS, RanCommand, list_commands
from cockpit.act.script_includes import (
    Exists,
    Includes,
    Kind,
    Source,
    is_shell,
    list_includes,
    module_sources,
    package_entry,
)
from cockpit.core.fenced_text import code_span, fence_text
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
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("make", "gmake"), "make"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package"),
    **dict.fromkeys(("node", "nodejs", "deno"), "node"),
    **dict.fromkeys(("ruby", "rake"), "ruby"),
    **dict.fromkeys(("nox", "invoke"), "python"),
    "just": "just",
}
_RUNS_TESTS = frozenset({"pytest", "py.test"})
_TEST_SETTINGS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_LEFT_OUT = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})

MOST_FILES = 120
"""Files that are pinned for one command, those that it names included."""
MOST_ABSENT = 200
"""Names that are kept because a file of that name would be loaded if it appeared."""
MOST_TEXT = 1_500_000
"""Characters of scripts that are searched for what they load."""
_EMPTY = hashlib.sha256(b"").hexdigest()
_MOST_FOLDERS = 2_000
_SHOWN_LOADED = 30
_SHOWN_UNKNOWN = 6


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
    """The files of the project that a command runs and names, and those ``loaded`` by them.

    ``missing`` are named or would be loaded, but not there; ``unknown`` says what could not be followed.
    """

    present: tuple[NamedScript, ...] = ()
    missing: tuple[str, ...] = ()
    loaded: tuple[NamedScript, ...] = ()
    unknown: tuple[str, ...] = ()

    def pins(self) -> list[dict[str, str]]:
        """Return what the proposal's payload keeps."""
        absent = [{"path": path, "real": "", "sha256": ""} for path in self.missing]
        return [*(script.pin() for script in (*self.present, *self.loaded)), *absent]

    def body(self) -> str:
        """Return the proposal's body as Markdown: the beginning of each named script, and what they load."""
        parts = [script.excerpt() for script in self.present]
        if self.loaded:
            lines = [f"{script.path}  {script.sha256[:16]}" for script in self.loaded]
            rest = len(lines) - _SHOWN_LOADED
            more = [f"… {rest} more files"] if rest > 0 else []
            parts.append("These load:\n\n" + fence_text("\n".join([*lines[:_SHOWN_LOADED], *more])))
        return "\n\n".join(parts)

    def notes(self) -> list[str]:
        """Return the sentence of the proposal about what could not be followed; none when all was."""
        if not self.unknown:
            return []
        rest = len(self.unknown) - _SHOWN_UNKNOWN
        more = f", and {rest} more" if rest > 0 else ""
        named = ", ".join(self.unknown[:_SHOWN_UNKNOWN])
        return [f"Not followed, so it may change until this runs: {named}{more}."]


def find_scripts(argv: Sequence[str], confined: Confined) -> NamedScripts:
    """Find the files of the project that a command runs and names, in a shell's script too.

    What these load is followed, up to :data:`MOST_FILES` files.
    """
    root = confined.root

    def exists(path: str) -> bool:
        # A name that no file can have is that of none.
        return not path.startswith(("/", "..")) and os.path.isfile(root / path)  # noqa: PTH113

    walk = _Walk(confined)
    for command in list_commands(argv):
        includes = _list_sources(command, confined, exists)
        walk.add(includes, is_named=True)
    while walk.waiting:
        source = walk.waiting.popleft()
        script = walk.read(source)
        if script is not None and not script.text and script.sha256 != _EMPTY:
            walk.add(Includes(unknown=[f"what {script.path} loads (it is not text)"]))
        if script is not None and script.text and walk.has_room(script):
            walk.add(
                list_includes(
                    source,
                    script.text,
                    exists,
                    lambda command: _list_sources(command, confined, exists).sources,
                )
            )
    return walk.result()


class _Walk:
    """The files that are read so far, and those that wait."""

    def __init__(self, confined: Confined) -> None:
        self.waiting: deque[Source] = deque()
        self._confined = confined
        self._named: dict[str, None] = {}
        self._absent: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._scripts: dict[str, NamedScript | None] = {}
        self._taken: set[Source] = set()
        self._length = 0

    def add(self, includes: Includes, *, is_named: bool = False) -> None:
        """Take what a command names, or a file loads."""
        self._absent |= dict.fromkeys(includes.absent)
        self._unknown |= dict.fromkeys(includes.unknown)
        for source in includes.sources:
            if source.path.startswith(("/", "..", "-")) or source in self._taken:
                continue
            self._taken.add(source)
            self.waiting.append(source)
            if is_named:
                self._named[source.path] = None

    def has_room(self, script: NamedScript) -> bool:
        """Whether there is time to read what a file loads; says so where there is not."""
        self._length += len(script.text)
        if self._length <= MOST_TEXT:
            return True
        self._unknown[f"what {script.path} loads"] = None
        return False

    def read(self, source: Source) -> NamedScript | None:
        """Read a source once; None where there is no such file, or there are too many."""
        if source.path not in self._scripts:
            if len(self._scripts) >= MOST_FILES:
                self._unknown[f"more than {MOST_FILES} files"] = None
                return None
            self._scripts[source.path] = read_script(source.path, self._confined)
        return self._scripts[source.path]

    def result(self) -> NamedScripts:
        """Return the files in the order in which they were named."""
        present = {path: script for path, script in self._scripts.items() if script is not None}
        missing = [path for path, script in self._scripts.items() if script is None]
        absent = [path for path in self._absent if path not in present]
        if len(absent) > MOST_ABSENT:
            self._unknown[f"{len(absent) - MOST_ABSENT} more names that could appear"] = None
        return NamedScripts(
            tuple(script for path, script in present.items() if path in self._named),
            tuple(dict.fromkeys((*missing, *absent[:MOST_ABSENT]))),
            tuple(script for path, script in present.items() if path not in self._named),
            tuple(self._unknown),
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


def _list_sources(command: RanCommand, confined: Confined, exists: Exists) -> Includes:
    """List the files that one command runs and names."""
    includes = Includes()
    if not command.argv:
        return includes
    program, words = command.program, list(command.argv[1:])
    folder = command.cwd
    sources: list[tuple[str, Kind]] = []
    entry = ""
    if "/" in command.argv[0]:
        sources.append((command.argv[0], ""))
    if program in _RUN_FILES:
        inner = _value(words, _FOLDER_OPTIONS.get(program, ()))
        file = _value(words, _FILE_OPTIONS.get(program, ()))
        folder = posixpath.join(folder, inner)
        entry = package_entry(program, words)
        kind = _KINDS.get(program, "")
        sources += [(each, kind) for each in ([file] if file else _RUN_FILES[program])]
    elif _INTERPRETERS.fullmatch(program):
        sources += [(each, _kind_of(program)) for each in _list_operands(program, words)]
        sources += [(each, _kind_of(program)) for each in command.reads]
    module, rest = _module_of(program, words)
    tests = words if program in _RUNS_TESTS else rest if module in _RUNS_TESTS else None
    top = _from_root(folder or ".", confined.root)
    top = "" if top in (".", str(confined.root)) else top
    for name, kind in sources:
        path = _from_root(posixpath.join(folder, name), confined.root) if name else ""
        if path and not path.startswith(("/", "..", "-")):
            start = posixpath.dirname(path) if kind == "python" else top
            includes.sources.append(Source(path, kind, start, entry))
    if module and not posixpath.isabs(top):
        _merge(includes, module_sources(module, top, exists))
    if tests is not None and not posixpath.isabs(top):
        _merge(includes, _list_test_files(tests, top, confined.root, exists))
    return includes


def _merge(includes: Includes, more: Includes) -> None:
    includes.sources += more.sources
    includes.absent += more.absent
    includes.unknown += more.unknown


def _kind_of(program: str) -> Kind:
    if is_shell(program):
        return "shell"
    return "python" if program.startswith(("python", "pypy")) else _KINDS.get(program, "")


def _module_of(program: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the module of ``python -m MODULE`` and its arguments; '' without one."""
    if program == "coverage" and words[:1] == ["run"]:
        program, words = "python", words[1:]
    if not program.startswith(("python", "pypy")):
        return "", []
    for place, word in enumerate(words):
        if re.fullmatch(r"-[a-zA-Z]*m", word) and len(words) > place + 1:
            return words[place + 1], list(words[place + 2 :])
        if match := re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m(.+)", word):
            return match[1], list(words[place + 1 :])
        if not word.startswith("-") or word.startswith("-c"):
            break
    return "", []


def _list_test_files(words: Sequence[str], top: str, root: Path, exists: Exists) -> Includes:
    """List what pytest loads before and with the tests that it is given: settings and ``conftest.py``."""
    includes = Includes()
    named = [word.partition("::")[0] for word in words if not word.startswith("-")]
    places = [_from_root(posixpath.join(top, word), root) for word in named if word]
    places = [
        path
        for path in places
        if not path.startswith(("/", "..")) and os.path.exists(root / path)  # noqa: PTH110
    ]
    for path in places:
        if exists(path):
            includes.sources.append(Source(path, "python", posixpath.dirname(path)))
    folders = [path if (root / path).is_dir() else posixpath.dirname(path) for path in places]
    folders = folders or [top]
    above: dict[str, None] = {}
    for folder in folders:
        while folder and folder != ".":
            above[folder] = None
            folder = posixpath.dirname(folder)
    conftests = [posixpath.join(folder, "conftest.py") for folder in (*above, "")]
    below, is_whole = _find_below([root / folder for folder in folders if (root / folder).is_dir()])
    conftests += [path.relative_to(root).as_posix() for path in below]
    for path in dict.fromkeys(posixpath.normpath(path) for path in conftests):
        if exists(path):
            includes.sources.append(Source(path, "python", posixpath.dirname(path)))
        else:
            includes.absent.append(path)
    for name in _TEST_SETTINGS:
        if exists(name):
            includes.sources.append(Source(name, "settings"))
        else:
            includes.absent.append(name)
    includes.unknown.append("the tests that pytest collects")
    if not is_whole:
        includes.unknown.append("conftest.py in further folders")
    return includes


def _find_below(folders: Sequence[Path]) -> tuple[list[Path], bool]:
    """Find every ``conftest.py`` below folders; False when there are too many folders to look in."""
    paths: list[Path] = []
    count = 0
    for top in folders:
        for folder, names, files in os.walk(top):
            count += 1
            if count > _MOST_FOLDERS:
                return paths, False
            names[:] = sorted(
                name for name in names if name not in _LEFT_OUT and not name.startswith(".")
            )
            if "conftest.py" in files:
                paths.append(Path(folder, "conftest.py"))
    return paths, True


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
