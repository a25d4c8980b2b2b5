"""The files that cockpit may touch: those of the project, without git's and cockpit's own files.

A path is checked by its spelling and by where it really leads. It is opened by walking from the
project root one directory at a time without following links, so that a link swapped in between check
and use is detected. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cockpit.core.errors import CockpitError
from cockpit.core.state_folder import STATE_VARIABLES, state_root

_SYSTEM = ("/proc", "/sys", "/dev")
_MAX_PATH = 4_096
_LINKED = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


class PathRefused(CockpitError):
    """The path may not be used; the message says which path and why."""

    code = "path_refused"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r} was refused: {reason}")
        self.path = path
        self.reason = reason


class PathMissing(PathRefused):
    """The file does not exist."""

    code = "path_missing"

    def __init__(self, path: str) -> None:
        super().__init__(path, "there is no such file")
        self.args = (f"there is no file {path!r}",)


class Confined:
    """Paths inside one root directory.

    ``root`` may itself be reached through a link; it is resolved once. A root inside ``.git`` or a
    system directory raises :class:`PathRefused`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if any(_is_git(part) for part in self.root.parts) or _is_system(str(self.root)):
            raise PathRefused(str(root), "this directory is not a project")
        self._state: tuple[list[str | None], str] = ([], "")

    def inside(self, path: str, *, write: bool = False) -> Path:
        """Return the real absolute path of ``path``, which is relative to the root.

        Links that stay inside the root are followed for reading; for writing the last component must not be a
        link. The file need not exist. Raises :class:`PathRefused`.
        """
        return Path(self._resolved(path, self._spelled(path), write=write))

    def _resolved(self, path: str, parts: tuple[str, ...], *, write: bool = False) -> str:
        root = str(self.root)
        joined = "/".join((root, *parts))
        try:
            real = os.path.realpath(joined)
            if write and os.path.islink(joined):  # noqa: PTH114 - a Path costs more than the look
                raise PathRefused(path, "it is a symbolic link; name the file that it leads to")
        except (OSError, ValueError) as error:
            raise PathRefused(path, f"it cannot be resolved ({_why(error)})") from error
        if _is_system(real) or not _is_below(real, root):
            raise PathRefused(path, "it leads out of the project through a symbolic link")
        # A home directory under version control contains the state; a worktree of cockpit lies in it.
        state = self._find_state()
        if _is_below(real, state) and not _is_below(root, state):
            raise PathRefused(path, "cockpit's own state is never touched")
        if real != joined:
            self._machinery(path, tuple(part for part in real[len(root) :].split("/") if part))
        if os.path.islink(real):  # noqa: PTH114
            raise PathRefused(path, "its symbolic links go round in a circle")
        return real

    def _find_state(self) -> str:
        """Return the user's state folder, resolved once: the store in it stays open as it was found."""
        named = [os.environ.get(name) for name in STATE_VARIABLES]
        if self._state[0] != named:
            self._state = named, state_root()
        return self._state[1]

    def relative(self, path: str) -> str:
        """Return ``path`` as cockpit writes it everywhere: from the root, ``/`` between, no dots.

        Links are kept as they are spelled. Raises :class:`PathRefused` like :meth:`inside`.
        """
        parts = self._spelled(path)
        self._resolved(path, parts)
        return "/".join(parts) or "."

    def open_read(self, path: str) -> BinaryIO:
        """Open a regular file for reading, wherever links inside the root lead.

        Raises :class:`PathMissing`, and :class:`PathRefused` for devices, pipes, sockets, directories,
        unreadable files, and a path whose links changed while it was being opened.
        """
        real = self.inside(path)
        parts = real.relative_to(self.root).parts
        if not parts:
            raise PathRefused(path, "it is a directory")
        with self._walked(path, parts[:-1]) as directory:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                handle = os.open(parts[-1], flags, dir_fd=directory)
            except OSError as error:
                raise _open_failure(path, error) from error
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)
            raise PathRefused(path, f"it is {_kind(mode)}, not a regular file")
        return os.fdopen(handle, "rb")

    @contextlib.contextmanager
    def parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory of ``path``; yields its descriptor and the file's name in it.

        Writers create, rename and remove relative to the descriptor (``dir_fd=``), so that a link swapped in
        above cannot redirect the write. ``create`` makes missing directories. Raises :class:`PathRefused`.
        """
        parts = self.inside(path, write=True).relative_to(self.root).parts
        if not parts:
            raise PathRefused(path, "it is the project's directory itself")
        with self._walked(path, parts[:-1], create=create) as directory:
            yield directory, parts[-1]

    @contextlib.contextmanager
    def _walked(self, path: str, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        handle = os.open(self.root, flags)
        try:
            for part in parts:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                try:
                    below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=handle)
                except OSError as error:
                    raise _open_failure(path, error) from error
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)

    def _spelled(self, path: str) -> tuple[str, ...]:
        if not path or not path.strip():
            raise PathRefused(path, "it is empty")
        if "\0" in path:
            raise PathRefused(path, "it contains a NUL character")
        if len(path.encode("utf-8", "surrogateescape")) > _MAX_PATH:
            raise PathRefused(path[:60] + "…", "it is too long")
        if path.startswith("~"):
            raise PathRefused(path, "home directories are outside the project")
        if path.startswith("/"):
            raise PathRefused(path, "it is absolute; name it from the project's root")
        parts = tuple(part for part in PurePosixPath(path).parts if part != ".")
        if ".." in parts:
            raise PathRefused(path, "it climbs with '..'; name it from the project's root")
        self._machinery(path, parts)
        return parts

    def _machinery(self, path: str, parts: tuple[str, ...]) -> None:
        if any(_is_git(part) for part in parts):
            raise PathRefused(path, "git's own files are never touched")
        if len(parts) >= 2 and (_folded(parts[0]), _folded(parts[1])) == (".cockpit", "state"):
            raise PathRefused(path, "cockpit's own state is never touched")


@lru_cache(maxsize=4096)
def _folded(part: str) -> str:
    """Return a name as the most tolerant file system sees it: no case, no invisible characters,
    no trailing dots, spaces or stream names.
    """
    visible = "".join(c for c in part if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().split(":", 1)[0].rstrip(". ")


def _is_git(part: str) -> bool:
    return _folded(part) in {".git", "git~1"}


def _is_system(path: str) -> bool:
    return any(_is_below(path, place) for place in _SYSTEM)


def _is_below(path: str, place: str) -> bool:
    """Whether an absolute path without dots or links is ``place`` or inside it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def _open_failure(path: str, error: OSError) -> PathRefused:
    if error.errno == errno.ENOENT:
        return PathMissing(path)
    if error.errno in _LINKED:
        return PathRefused(path, "a directory or link on its way changed, or is not a directory")
    if error.errno == errno.ENXIO:
        return PathRefused(path, "it is a pipe or socket, not a regular file")
    return PathRefused(path, _why(error))


def _why(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
