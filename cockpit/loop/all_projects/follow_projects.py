"""Follow the stores of all projects: one watch for all their folders, and a slow look behind it.

A commit in any project shows as a write to its ``-wal`` file. SQLite writes there before the commit can be
read, so a few looks follow soon after it. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from cockpit.core.clock import Clock, SystemClock
from cockpit.core.project.known_projects import KnownProject, list_known
from cockpit.core.state_folder import DATABASE
from cockpit.loop.all_projects.project_reader import ProjectReader, ProjectState
from cockpit.store.journal.file_changes import FoldersWatch

SLOW_LOOK_S = 1.0
"""Seconds between two looks at every project: for what is not a write, as a project that goes away."""
BLIND_LOOK_S = 0.2
"""Seconds between them where the system reports no writes."""
REFUSED_LOOK_S = 5.0
"""Seconds between two looks at a project that could not be read."""
_LOOKS_S = (0.003, 0.016, 0.05, 0.2)
"""Seconds after a write at which its commit may be readable."""
_THREADS = 4
_FILES = (DATABASE, f"{DATABASE}-wal")
MOST_OPEN = 48
"""Stores that stay open between two looks where there are more projects: those that were written to last.
SQLite opens three files for each, of the 256 or 1,024 that a process may have."""
_SLICE = 8
"""Projects that are read before the first of them are shown."""


class ProjectsFeed:
    """The states of all known projects, kept up to date.

    ``on_change`` is called on the event loop after every change, at most once a slice of projects.
    """

    def __init__(
        self,
        on_change: Callable[[], None],
        *,
        clock: Clock | None = None,
        list_projects: Callable[[], list[KnownProject]] = list_known,
    ) -> None:
        self.states: dict[str, ProjectState] = {}
        """By the names of the state folders, which are the keys of projects."""
        self.is_read = False
        """True once every project was read for the first time."""
        self.clock = clock or SystemClock()
        self._on_change = on_change
        self._list = list_projects
        self._readers: dict[str, ProjectReader] = {}
        self._again: dict[str, bool] = {}
        """The projects that are being read, and whether each is to be read once more."""
        self._timers: dict[str, list[asyncio.TimerHandle]] = {}
        self._refused_at: dict[str, float] = {}
        self._written: dict[str, None] = {}
        """The projects that were written to last, the newest at the end."""
        self._watch: FoldersWatch | None = None
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="cockpit-projects")
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def run(self) -> None:
        """Follow all projects until cancelled."""
        with suppress(OSError):  # a system without inotify, or without a watch left: look often
            self._watch = FoldersWatch(self._note_write)
        try:
            await self._look_at_all()
            self.is_read = True
            self._on_change()
            while True:
                await self.clock.sleep(SLOW_LOOK_S if self._watch is not None else BLIND_LOOK_S)
                await self._look_at_all()
        finally:
            await self._stop()

    def refresh(self, key: str) -> None:
        """Look at a project now, whatever the watch says."""
        reader = self._readers.get(key)
        if reader is not None and not self._is_over:
            task = asyncio.ensure_future(self._look(reader))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        self._is_over = True
        if self._watch is not None:
            self._watch.close()
        for timers in self._timers.values():
            for timer in timers:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Not on the event loop: a reader may be at its file, which may be slow.
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        for reader in self._readers.values():
            reader.close()

    # The list of projects

    async def _look_at_all(self) -> None:
        """Read the list again, then every project, the one that was written to last first."""
        loop = asyncio.get_running_loop()
        listed = await loop.run_in_executor(self._threads, self._list)
        by_key = {project.key: project for project in listed}
        for key in [key for key in self._readers if key not in by_key]:
            self._drop(key)
        for key, project in by_key.items():
            self._take(key, project)
        now = self.clock.monotonic()
        due = [
            self._readers[project.key]
            for project in sorted(listed, key=lambda each: each.seen_ns, reverse=True)
            if now - self._refused_at.get(project.key, float("-inf")) >= REFUSED_LOOK_S
        ]
        for first in range(0, len(due), _SLICE):
            async with asyncio.TaskGroup() as looks:
                for reader in due[first : first + _SLICE]:
                    looks.create_task(self._look(reader))

    def _take(self, key: str, project: KnownProject) -> None:
        reader = self._readers.get(key)
        if reader is None:
            self._readers[key] = ProjectReader(project, self.clock)
            self.states[key] = self._readers[key].state
            self._on_change()
        elif (reader.project.identity, reader.project.home) != (project.identity, project.home):
            reader.project = project
            self._refused_at.pop(key, None)
        if self._watch is not None:
            with suppress(OSError):  # it was removed meanwhile; again: nothing changes
                self._watch.add(project.state)

    def _drop(self, key: str) -> None:
        reader = self._readers.pop(key)
        self.states.pop(key, None)
        self._written.pop(key, None)
        for timer in self._timers.pop(key, ()):
            timer.cancel()
        if self._watch is not None:
            self._watch.discard(reader.project.state)
        if key not in self._again:
            reader.close()
        self._on_change()

    # Looks

    def _note_write(self, folder: Path | None, name: str) -> None:
        """Look soon at the project of a folder that was written to; at all where events were lost."""
        keys = list(self._readers) if folder is None else [folder.name]
        if folder is not None and name not in _FILES:
            return
        loop = asyncio.get_running_loop()
        for key in keys:
            self._note_written(key)
            timers = self._timers.get(key, [])
            for timer in timers[1:]:
                timer.cancel()
            # The first look comes soon however often the file is written to; the others wait for a pause.
            is_due = bool(timers) and timers[0].when() > loop.time()
            soon = timers[0] if is_due else loop.call_later(_LOOKS_S[0], self.refresh, key)
            later = [loop.call_later(pause, self.refresh, key) for pause in _LOOKS_S[1:]]
            self._timers[key] = [soon, *later]

    def _note_written(self, key: str) -> None:
        """Keep the store of a project open between looks, and close one that was written to before."""
        self._written.pop(key, None)
        self._written[key] = None
        while len(self._written) > MOST_OPEN:
            oldest = next(iter(self._written))
            del self._written[oldest]
            self.refresh(oldest)

    async def _look(self, reader: ProjectReader) -> None:
        """Read a project in a thread; while it is read, another call makes it be read once more."""
        key = reader.project.key
        if key in self._again:
            self._again[key] = True
            return
        self._again[key] = False
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._again[key] = False
                look = partial(_read, reader, rests=self._rests(key))
                state = await loop.run_in_executor(self._threads, look)
                if self._readers.get(key) is not reader:
                    reader.close()  # it left the list while it was read
                    return
                self._keep(key, state)
                if not self._again[key]:
                    return
        finally:
            del self._again[key]

    def _rests(self, key: str) -> bool:
        """Whether the store of a project is closed after each look."""
        return len(self._readers) > MOST_OPEN and key not in self._written

    def _keep(self, key: str, state: ProjectState) -> None:
        if state.condition in ("open", "empty"):
            self._refused_at.pop(key, None)
        else:
            self._refused_at[key] = self.clock.monotonic()
        if state != self.states.get(key):
            self.states[key] = state
            self._on_change()


def _read(reader: ProjectReader, *, rests: bool) -> ProjectState:
    state = reader.look()
    if rests:
        reader.rest()
    return state


def read_all(clock: Clock | None = None) -> Mapping[str, ProjectState]:
    """Read every known project once, by the names of their state folders."""
    states = {}
    for project in list_known():
        reader = ProjectReader(project, clock or SystemClock())
        try:
            states[project.key] = reader.look()
        finally:
            reader.close()
    return states
