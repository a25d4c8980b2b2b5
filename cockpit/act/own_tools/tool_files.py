"""The files of tools: which folders hold them, what a file imports from its folder, and the digest of both.

Files are read without following links, and nothing of them is run. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import CockpitError

MAX_FILE_BYTES = 256 * 1024
"""The largest file of a tool."""
MAX_FILES = 64
"""The most files that one tool's file may load from its folder, itself included."""
MAX_TOOL_FILES = 200
"""The most files of one folder that are looked at."""


class ToolFileRefused(CockpitError):
    """A tool's file cannot be used; the message says which and why."""

    code = "tool_file"


class ToolFolder(Struct, frozen=True):
    """A folder whose Python files may define tools."""

    place: str
    """Whose it is: ``project``, ``user`` or ``skill:NAME``."""
    path: Path
    root: Path
    """The folder of whoever wrote it, such as the project's; no link may lie between the two."""


class ToolFile(Struct, frozen=True):
    """One file as it is now, with all that it loads from its folder."""

    folder: ToolFolder
    name: str
    """The file's name in its folder."""
    files: Mapping[str, bytes]
    """By path below the folder: the contents of the file and of what it imports from there."""
    digest: str
    """sha256 over the paths and contents of :attr:`files`."""

    @property
    def source(self) -> str:
        """The text of the file itself."""
        return self.files[self.name].decode("utf-8", "replace")

    @property
    def path(self) -> Path:
        return self.folder.path / self.name

    @property
    def label(self) -> str:
        """The file as messages name it."""
        return f"{self.folder.place}:{self.name}"


def list_tool_files(folder: ToolFolder) -> list[str]:
    """List the names of the files in ``folder`` that may define tools, in order."""
    if not _is_plain_folder(folder):
        return []
    with os.scandir(folder.path) as entries:
        names = [entry.name for entry in entries if is_tool_name(entry.name)]
    return sorted(names)[:MAX_TOOL_FILES]


def is_tool_name(name: str) -> bool:
    """Whether a file of that name may define tools."""
    return name.endswith(".py") and not name.startswith((".", "_", "test_", "conftest"))


def load_tool_file(folder: ToolFolder, name: str) -> ToolFile:
    """Read the file ``name`` of ``folder`` and what it imports from there.

    Raises :class:`ToolFileRefused` for links, files that are too large or too many, and files that are not
    Python.
    """
    if "/" in name or not is_tool_name(name):
        raise ToolFileRefused(f"{name[:100]!r} is not the name of a tool's file.")
    if not _is_plain_folder(folder):
        raise ToolFileRefused(
            f"{folder.path} is not a plain folder: a link leads there, or it is gone. Tools are loaded from"
            " plain folders only."
        )
    files: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        if len(files) >= MAX_FILES:
            raise ToolFileRefused(
                f"{name} loads more than {MAX_FILES} files of its folder. Split it, or install what it needs."
            )
        files[path] = _read_plain(folder.path, path)
        waiting += list(_list_imports(folder.path, path, files[path]))
    ordered = dict(sorted(files.items()))
    return ToolFile(folder, name, ordered, digest_files(ordered))


def digest_files(files: Mapping[str, bytes]) -> str:
    """Return the digest of paths and contents."""
    whole = hashlib.sha256()
    for path, data in sorted(files.items()):
        for part in (path.encode("utf-8", "surrogateescape"), data):
            whole.update(len(part).to_bytes(8, "big"))
            whole.update(part)
    return whole.hexdigest()


def parse_python(name: str, data: bytes) -> ast.Module:
    """Parse a file without running it. Raises :class:`ToolFileRefused`."""
    try:
        return ast.parse(data, filename=name)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" line {line}" if line else ""
        raise ToolFileRefused(
            f"{name}{where}: it is not valid Python ({getattr(error, 'msg', error)})."
        ) from error
    except (RecursionError, MemoryError) as error:
        raise ToolFileRefused(f"{name}: its code is nested too deeply.") from error


def _is_plain_folder(folder: ToolFolder) -> bool:
    """Whether the folder exists and no link lies between it and its root."""
    try:
        below = folder.path.relative_to(folder.root)
    except ValueError:
        return False
    expected = os.path.join(os.path.realpath(folder.root), *below.parts)  # noqa: PTH118 - compared as text
    return os.path.realpath(folder.path) == expected and os.path.isdir(expected)  # noqa: PTH112


def _read_plain(folder: Path, path: str) -> bytes:
    """Read a plain file below ``folder``, through no link."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *parents, last = path.split("/")
        for parent in parents:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(parent, flags, dir_fd=handle)
            os.close(handle)
            handle = below
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(last, flags, dir_fd=handle)
    except OSError as error:
        raise ToolFileRefused(
            f"{path} cannot be read: {error.strerror}. A link is never followed; put the file itself there."
        ) from error
    finally:
        os.close(handle)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ToolFileRefused(f"{path} is not a plain file.")
        data = opened.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolFileRefused(f"{path} is larger than {MAX_FILE_BYTES // 1024} KiB.")
    return data


def _list_imports(folder: Path, path: str, data: bytes) -> Iterator[str]:
    """List the files of the folder that the file imports, wherever in its code it does."""
    tree = parse_python(path, data)
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _locate(folder, alias.name.split("."), path)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            if node.level > len(package):
                raise ToolFileRefused(
                    f"{path} line {node.lineno}: a relative import leads out of its package. Name the module:"
                    " `import NAME`."
                )
            parts = [*base, *(node.module.split(".") if node.module else [])]
            if parts:
                yield from _locate(folder, parts, path)
            for alias in node.names:
                yield from _locate(folder, [*parts, alias.name], path)


def _locate(folder: Path, parts: Sequence[str], importer: str) -> Iterator[str]:
    """List the files that importing a module loads: its own, and those of the packages around it."""
    for count in range(1, len(parts) + 1):
        joined = "/".join(parts[:count])
        module, package = f"{joined}.py", f"{joined}/__init__.py"
        present = [path for path in (package, module) if os.path.lexists(folder / path)]
        if present and count == 1 and parts[0] in (*sys.stdlib_module_names, "cockpit", "pydantic"):
            raise ToolFileRefused(
                f"{importer} imports {parts[0]}, and {present[0]} beside it has the same name. Rename that"
                " file: tools get the real module."
            )
        yield from present[:1]
        if not present:
            return
