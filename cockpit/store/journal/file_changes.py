"""Notice that another process wrote to a file.

Through inotify, without waking up while nothing happens; elsewhere through watchfiles, which looks ten times
a second whether the system reported a write.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_EVENTS = 0x2 | 0x80 | 0x100
"""``IN_MODIFY``, ``IN_MOVED_TO`` and ``IN_CREATE`` of ``<sys/inotify.h>``."""
_HEAD = struct.Struct("iIII")
_READ = 65_536
_STEP_MS = 100
"""Milliseconds between two looks of watchfiles."""


class _Watch:
    """One watch of the system, read on the event loop, until :meth:`close`.

    Raises ``OSError`` where the system has no inotify or no watch left.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._library, self._descriptor = _start_inotify()
        try:
            self._loop.add_reader(self._descriptor, self._read)
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Stop watching; calling it twice is allowed."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            events = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return
        self._take(_entries(events))

    def _take(self, events: Iterable[tuple[int, int, bytes]]) -> None:
        """Handle events: of each the number of the watched folder, the kind and the file name."""
        raise NotImplementedError


class FileWatch(_Watch):
    """Calls ``notify`` on the event loop after every write to one file, until :meth:`close`.

    Raises ``OSError`` where the system has no inotify or no watch left.
    """

    def __init__(self, path: Path, notify: Callable[[], None]) -> None:
        super().__init__()
        self._name = os.fsencode(path.name)
        self._notify = notify
        try:
            # The folder and not the file: SQLite may create the file after the watch.
            _add_folder(self._library, self._descriptor, path.parent)
        except OSError:
            self.close()
            raise

    def _take(self, events: Iterable[tuple[int, int, bytes]]) -> None:
        # An event without a name says that events were lost: the file's may be among them.
        if any(name in (self._name, b"") for _, _, name in events):
            self._notify()


async def watch_without_inotify(path: Path, notify: Callable[[], None]) -> None:
    """Call ``notify`` after every write to one file, until cancelled.

    Raises ``OSError`` or ``RuntimeError`` where the system reports no writes.
    """
    from watchfiles import Change, awatch

    def is_the_file(_: Change, name: str) -> bool:
        return os.path.basename(name) == path.name  # noqa: PTH119 - for every file of the folder

    async for _ in awatch(
        path.parent,
        watch_filter=is_the_file,
        debounce=_STEP_MS,
        step=_STEP_MS,
        recursive=False,
    ):
        notify()


def _start_inotify() -> tuple[Any, int]:
    """Return the system's library and a descriptor that watches nothing yet."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError("This system has no inotify.")
    descriptor = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify gives no more instances")
    return library, descriptor


def _add_folder(library: Any, descriptor: int, folder: Path) -> int:
    """Watch a folder; return the number that its events carry."""
    import ctypes

    number = int(library.inotify_add_watch(descriptor, os.fsencode(folder), _EVENTS))
    if number < 0:
        raise OSError(ctypes.get_errno(), f"inotify cannot watch {folder}")
    return number


def _entries(events: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of the watch, the kind and the file name of each event."""
    place = 0
    while place + _HEAD.size <= len(events):
        number, mask, _, length = _HEAD.unpack_from(events, place)
        place += _HEAD.size
        yield number, mask, events[place : place + length].rstrip(b"\0")
        place += length
