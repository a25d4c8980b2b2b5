"""Notice that another process wrote to a file: through inotify, without waking up while nothing happens.

watchfiles looks ten times a second whether the system reported a write: too late for a screen that follows
another process, and too often for one that is idle.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_EVENTS = 0x2 | 0x80 | 0x100
"""``IN_MODIFY``, ``IN_MOVED_TO`` and ``IN_CREATE`` of ``<sys/inotify.h>``."""
_OVERFLOW = 0x4000
_IGNORED = 0x8000
"""``IN_Q_OVERFLOW`` and ``IN_IGNORED``: events were lost; a folder is no longer watched."""
_HEAD = struct.Struct("iIII")
_READ = 65_536


class FoldersWatch:
    """Calls ``notify`` on the event loop after every write to files of many folders, until :meth:`close`.

    ``notify`` gets the folder and the name of the file; (None, '') where the system lost events. One watch
    of the system serves all folders. Raises ``OSError`` where the system has no inotify or no watch left.
    """

    def __init__(self, notify: Callable[[Path | None, str], None]) -> None:
        self._notify = notify
        self._folders: dict[int, Path] = {}
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

    def add(self, folder: Path) -> None:
        """Watch one more folder; again: nothing changes. Raises ``OSError``."""
        import ctypes

        number = int(
            self._library.inotify_add_watch(self._descriptor, os.fsencode(folder), _EVENTS)
        )
        if number < 0:
            raise OSError(ctypes.get_errno(), f"inotify cannot watch {folder}")
        self._folders[number] = folder

    def _read(self) -> None:
        try:
            events = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return
        for number, mask, name in _entries(events):
            if mask & _OVERFLOW:
                self._notify(None, "")
            elif mask & _IGNORED:
                self._folders.pop(number, None)
            elif (folder := self._folders.get(number)) is not None:
                self._notify(folder, os.fsdecode(name))


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


def _entries(events: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of the watch, the kind and the file name of each event."""
    place = 0
    while place + _HEAD.size <= len(events):
        number, mask, _, length = _HEAD.unpack_from(events, place)
        place += _HEAD.size
        yield number, mask, events[place : place + length].rstrip(b"\0")
        place += length
