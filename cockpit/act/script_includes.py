"""What a script loads or runs in turn: the files of the project that its text names.

Each kind of script is read by its own rules, and nothing is started. What a text leaves open (a name in a
variable, a module that is chosen as it runs) comes back as words. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct, field

from cockpit.access.shell_commands import SHELLS, RanCommand, list_commands

Kind = Literal["shell", "make", "just", "package", "python", "node", "ruby", "settings", ""]
Exists = Callable[[str], bool]
"""Whether a path from the project's root is a file."""

_LONGEST = 400_000
_RECIPES_AT_MOST = 400
_INCLUDE = re.compile(r"^[ ]*(?:-|s)?include[ \t]+(.+)$", re.MULTILINE)
_DEFINITION = re.compile(
    r"^[ ]*(?:export[ ]+)?([A-Za-z_]\w*)[ \t]*[:?+]{0,3}=[ \t]*(.*)$", re.MULTILINE
)
_VARIABLE = re.compile(r"\$[({]([A-Za-z_]\w*)[)}]")
_MAKE_SHELL = re.compile(
    r"\$\(shell[ \t]++((?:[^()]++|\([^()]*+\))*+)\)|^\w++[ \t]*+!=[ \t]*+(.*)$", re.M
)
_JUST_IMPORT = re.compile(r"^(?:import\??|mod\??[ \t]+\w+)[ \t]+['\"]([^'\"]+)['\"]", re.MULTILINE)
_OWN_FOLDER = re.compile(
    r"(?:\$\(dirname(?:[^)$]++|\$(?!\(dirname))*+\)"
    r"|\$\{(?:0|BASH_SOURCE)(?:[^}$]++|\$(?!\{(?:0|BASH_SOURCE)))*+\}"
    r"|\$\{?[A-Za-z_]*(?:DIR|HERE|ROOT|dir|here|root)\}?)/"
)
_UNKNOWN = re.compile(r"[$`*?\[{]")
_NODE_IMPORT = re.compile(
    r"(?:\brequire|\bimport)\s*\(\s*(['\"`])([^'\"`\n]+)\1\s*\)"
    r"|\b(?:import|export)\b(?:[^;'\"`ie]++|(?!\b(?:import|export)\b)[ie])*+(['\"])([^'\"\n]+)\3"
)
_NODE_OPEN = re.compile(r"\b(?:require|import)\s*\(\s*(?!['\"])[^\s)]|child_process|\beval\s*\(")
_NODE_ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".json")
_NODE_INDEX = ("/index.js", "/index.mjs", "/index.cjs", "/index.ts", "/index.json")
_RUBY_IMPORT = re.compile(
    r"^[^\S\n]*+(?:require_relative|load)\s*+\(?\s*+['\"]([^'\"\n]+)['\"]", re.MULTILINE
)
_PYTHON_OPEN = frozenset(
    """
    exec eval compile __import__ import_module run_path run_module spec_from_file_location system popen Popen
    check_call check_output call execv execvp execve spawn
    """.split()  # noqa: SIM905 - a list of quoted words a line each is no easier to read
)
_SHEBANG = re.compile(r"#!.*?\b(bash|dash|zsh|ksh|sh|python|node|ruby|make)[0-9.]*\b")
_ENDINGS: dict[str, Kind] = {
    ".sh": "shell", ".bash": "shell", ".py": "python", ".mk": "make", ".rb": "ruby",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx"), "node"),
}  # fmt: skip
_RUNS_SCRIPT = frozenset({"npm", "pnpm", "yarn", "bun"})


class Source(Struct, frozen=True):
    """A file that runs: its ``path`` from the root, its ``kind``, and the ``folder`` in which names that it
    gives begin (the one it runs in; of Python the first of ``sys.path``). ``entry`` is the script of a
    ``package.json``."""

    path: str
    kind: Kind = ""
    folder: str = ""
    entry: str = ""


class Includes(Struct):
    """What a source loads: ``sources`` to follow, files that are ``absent`` and would be loaded if they
    appeared, and ``unknown``: words for what the text leaves open."""

    sources: list[Source] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


ListSources = Callable[[RanCommand], list[Source]]


def list_includes(source: Source, text: str, exists: Exists, list_sources: ListSources) -> Includes:
    """List what ``source`` with this text loads; ``list_sources`` gives the files that a command runs."""
    includes = Includes()
    if len(text) > _LONGEST:
        includes.unknown.append(f"what {source.path} loads (it is too long)")
        return includes
    match source.kind or _kind_of(source.path, text):
        case "shell":
            _read_shell(source, text, includes, exists, list_sources)
        case "make":
            _read_make(source, text, includes, exists, list_sources)
        case "just":
            for name in _JUST_IMPORT.findall(text):
                path = posixpath.join(posixpath.dirname(source.path), name)
                includes.sources.append(Source(path, "just", source.folder))
            recipes = [line.strip().lstrip("@-") for line in text.split("\n") if line[:1] in " \t"]
            _read_recipes(source, recipes, includes, exists, list_sources)
        case "package":
            _read_package(source, text, includes, exists, list_sources)
        case "python":
            _read_python(source, text, includes, exists)
        case "node":
            _read_node(source, text, includes, exists)
        case "settings":
            return includes
        case "ruby":
            for name in _RUBY_IMPORT.findall(text):
                path = posixpath.join(posixpath.dirname(source.path), name)
                path = path if path.endswith(".rb") else f"{path}.rb"
                includes.sources.append(Source(path, "ruby", source.folder))
        case _ if text:
            includes.unknown.append(f"what {source.path} loads")
    return includes


def _kind_of(path: str, text: str) -> Kind:
    if match := _SHEBANG.match(text):
        kinds: dict[str, Kind] = {
            "python": "python",
            "node": "node",
            "ruby": "ruby",
            "make": "make",
        }
        return kinds.get(match[1], "shell")
    return _ENDINGS.get(posixpath.splitext(path)[1], "")


def _read_shell(
    source: Source, text: str, includes: Includes, exists: Exists, list_sources: ListSources
) -> None:
    for command in list_commands(text, source.folder):
        if _UNKNOWN.match(command.program) and command.program != "[":
            includes.unknown.append(f"{command.argv[0][-60:]} in {source.path}")
            paths = [
                posixpath.normpath(posixpath.join(command.cwd, word)) for word in command.argv[1:]
            ]
            includes.sources += [Source(path, "", command.cwd) for path in paths if exists(path)]
        for each in list_sources(command):
            _add_named(each, source, includes, exists)


def _add_named(each: Source, source: Source, includes: Includes, exists: Exists) -> None:
    """Add a file that a script names, where its name is known or begins with the script's own folder."""
    if not _UNKNOWN.search(each.path):
        includes.sources.append(each)
        return
    # Of `$(dirname "$0")/lib.sh` the rest is a name beside the script, mostly.
    place = [match.end() for match in _OWN_FOLDER.finditer(each.path)]
    rest = each.path[place[-1] :] if place else ""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), rest))
    if rest and not _UNKNOWN.search(rest) and exists(beside):
        includes.sources.append(Source(beside, each.kind, each.folder, each.entry))
    name = posixpath.relpath(each.path, source.folder) if source.folder else each.path
    includes.unknown.append(f"{name[-60:]} in {source.path}")


def _read_make(
    source: Source, text: str, includes: Includes, exists: Exists, list_sources: ListSources
) -> None:
    text = text.replace("\\\n", " ")
    values = {name: value.split(" #")[0].strip() for name, value in _DEFINITION.findall(text)}
    values |= {"MAKE": "make", "CURDIR": ".", "SHELL": "sh"}

    def expand(part: str) -> str:
        for _ in range(4):
            part = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), part)
        return part

    for line in _INCLUDE.findall(text):
        for name in expand(line.split("#")[0]).split():
            path = posixpath.normpath(posixpath.join(source.folder, name))
            if _UNKNOWN.search(name):
                includes.unknown.append(f"include {name[:60]} in {source.path}")
            else:
                includes.sources.append(Source(path, "make", source.folder))
    recipes = [line[1:].lstrip("@-+ \t") for line in text.split("\n") if line.startswith("\t")]
    recipes += [first or second for first, second in _MAKE_SHELL.findall(text)]
    lines = [expand(recipe).replace("$$", "$") for recipe in recipes]
    _read_recipes(source, lines, includes, exists, list_sources)


def _read_recipes(
    source: Source,
    lines: Sequence[str],
    includes: Includes,
    exists: Exists,
    list_sources: ListSources,
) -> None:
    if len(lines) > _RECIPES_AT_MOST:
        includes.unknown.append(f"{len(lines) - _RECIPES_AT_MOST} more lines of {source.path}")
    for line in lines[:_RECIPES_AT_MOST]:
        _read_shell(source, line, includes, exists, list_sources)


def _read_package(
    source: Source, text: str, includes: Includes, exists: Exists, list_sources: ListSources
) -> None:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, RecursionError, AttributeError):
        includes.unknown.append(f"the scripts of {source.path}")
        return
    for name in (f"pre{source.entry}", source.entry, f"post{source.entry}"):
        line = scripts.get(name) if isinstance(scripts, dict) else None
        if isinstance(line, str) and source.entry:
            _read_shell(source, line, includes, exists, list_sources)


def package_entry(program: str, words: Sequence[str]) -> str:
    """Return the script of ``package.json`` that ``npm run NAME`` and its like run; '' for none."""
    plain = [word for word in words if not word.startswith("-")]
    if program not in _RUNS_SCRIPT or not plain:
        return ""
    if plain[0] in ("run", "run-script", "rum", "urn"):
        return plain[1] if len(plain) > 1 else ""
    if program != "npm" or plain[0] in ("test", "start", "stop", "restart"):
        return plain[0]
    return {"t": "test", "tst": "test"}.get(plain[0], plain[0])


def module_sources(name: str, folder: str, exists: Exists) -> Includes:
    """Return the files that ``python -m NAME`` runs, where the project has them, and those that would be."""
    includes = Includes()
    base = posixpath.join(folder, *name.split("."))
    _add_module(name, [folder], folder, includes, exists)
    if exists(f"{base}/__init__.py") or exists(f"{base}/__main__.py"):
        includes.sources.append(Source(f"{base}/__main__.py", "python", folder))
    return includes


def _read_python(source: Source, text: str, includes: Includes, exists: Exists) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        includes.unknown.append(f"the imports of {source.path} (it cannot be read)")
        return
    own = posixpath.dirname(source.path)
    bases = list(dict.fromkeys((source.folder, "", "src")))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _add_module(alias.name, bases, source.folder, includes, exists)
        elif isinstance(node, ast.ImportFrom):
            _add_from(node, own, bases, source, includes, exists)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            is_method = name == "compile" and isinstance(node.func, ast.Attribute)
            if name in _PYTHON_OPEN and not is_method:
                includes.unknown.append(f"{name}(…) in {source.path}")


def _add_from(
    node: ast.ImportFrom,
    own: str,
    bases: Sequence[str],
    source: Source,
    includes: Includes,
    exists: Exists,
) -> None:
    names = [alias.name for alias in node.names if alias.name != "*"]
    module = node.module or ""
    if not node.level:
        _add_module(module, bases, source.folder, includes, exists)
        for name in names:
            _add_module(f"{module}.{name}", bases, "?", includes, exists)
        return
    folder = own
    for _ in range(node.level - 1):
        folder = posixpath.dirname(folder)
    for name in [module] if module else []:
        _add_module(name, [folder], "?", includes, exists)
    for name in names:
        _add_module(f"{module}.{name}" if module else name, [folder], "?", includes, exists)


def _add_module(
    name: str, bases: Sequence[str], first: str, includes: Includes, exists: Exists
) -> None:
    """Add the files of a module and its packages; what would be taken before others from ``first``, if it
    appeared there, is absent."""
    parts = [part for part in name.split(".") if part]
    if not parts:
        return
    for base in bases:
        present = False
        for count in range(1, len(parts) + 1):
            stem = posixpath.join(base, *parts[:count])
            for path in (f"{stem}/__init__.py", f"{stem}.py"):
                if exists(path):
                    includes.sources.append(Source(path, "python", base))
                    present = True
                    break
                if count == 1 and base == first:
                    includes.absent.append(path)
        if present:
            return


def _read_node(source: Source, text: str, includes: Includes, exists: Exists) -> None:
    own = posixpath.dirname(source.path)
    for match in _NODE_IMPORT.finditer(text):
        name = match[2] or match[4]
        if not name.startswith("."):
            continue  # a package: what is installed is not pinned
        stem = posixpath.normpath(posixpath.join(own, name))
        for path in _node_paths(stem):
            if exists(path):
                includes.sources.append(Source(path, "node", source.folder))
                break
            includes.absent.append(path)
        else:
            del includes.absent[-len(_NODE_ENDINGS + _NODE_INDEX) :]
            includes.unknown.append(f"{name[:60]} in {source.path}")
    if opened := _NODE_OPEN.search(text):
        name = re.split(r"[\s(]", opened[0])[0]
        includes.unknown.append(f"{name} in {source.path}")


def _node_paths(stem: str) -> Iterator[str]:
    for ending in (*_NODE_ENDINGS, *_NODE_INDEX):
        yield f"{stem}{ending}"


def is_shell(program: str) -> bool:
    """Whether a program reads its script as a shell does."""
    return program in SHELLS or program in ("source", ".")
