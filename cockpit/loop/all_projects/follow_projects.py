"""Follow the stores of all projects: several looks a second at their files, and a slow one at all else.

A commit in any project shows as a write to its ``-wal`` file. Of a project whose files are as they were,
nothing is opened. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from cockpit.core.clock import Clock, SystemClock
from cockpit.core.project.known_projects import KnownProject, list_known
from cockpit.loop.all_projects.project_reader import ProjectReader, ProjectState

LOOK_S = 0.1
"""Seconds between two looks at the files of all stores."""
SLOW_LOOK_S = 1.0
"""Seconds between two looks at every project: for what is not a write, as a project that goes away."""
REFUSED_LOOK_S = 5.0
"""Seconds between two looks at a project that could not be read."""
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
        self._asked: set[str] = set()
        self._refused_at: dict[str, float] = {}

    async def run(self) -> None:
        """Follow all projects until cancelled."""
        looked_at = float("-inf")
        while True:
            now = self.clock.monotonic()
            is_slow = now - looked_at >= SLOW_LOOK_S
            if is_slow:
                looked_at = now
                self._take(await asyncio.to_thread(self._list))
            await self._look(is_slow)
            if not self.is_read:
                self.is_read = True
                self._on_change()
            await self.clock.sleep(LOOK_S)

    def refresh(self, key: str) -> None:
        """Look at a project with the next look, whatever its files say."""
        self._asked.add(key)

    def _take(self, listed: Iterable[KnownProject]) -> None:
        """Follow exactly the ``listed`` projects, the one that was written to last first."""
        ordered = sorted(listed, key=lambda project: project.seen_ns, reverse=True)
        before, self._readers = self._readers, {}
        for project in ordered:
            reader = before.pop(project.key, None) or ProjectReader(project, self.clock)
            if (reader.project.identity, reader.project.home) != (project.identity, project.home):
                reader.project = project
                self._refused_at.pop(project.key, None)
            self._readers[project.key] = reader
        gone, new = before.keys(), self._readers.keys() - self.states.keys()
        for key in gone:
            self.states.pop(key, None)
        for key in new:
            self.states[key] = self._readers[key].state
        if gone or new:
            self._on_change()

    async def _look(self, is_slow: bool) -> None:
        wanted, self._asked = self._asked, set()
        now = self.clock.monotonic()
        due = [
            reader
            for key, reader in self._readers.items()
            if key in wanted or now - self._refused_at.get(key, float("-inf")) >= REFUSED_LOOK_S
        ]
        if not is_slow:
            due = [
                reader for reader in due if reader.project.key in wanted or reader.has_new_files()
            ]
        for first in range(0, len(due), _SLICE):
            readers = due[first : first + _SLICE]
            states = await asyncio.to_thread(lambda readers=readers: [r.look() for r in readers])  # type: ignore[misc] # bound per turn
            changed = [self._keep(state) for state in states]
            if any(changed):
                self._on_change()

    def _keep(self, state: ProjectState) -> bool:
        """Keep the state of a project that was just read; returns whether it is another one."""
        key = state.project.key
        if state.condition in ("open", "empty"):
            self._refused_at.pop(key, None)
        else:
            self._refused_at[key] = self.clock.monotonic()
        is_other = key in self._readers and state != self.states.get(key)
        if is_other:
            self.states[key] = state
        return is_other


def read_all(clock: Clock | None = None) -> Mapping[str, ProjectState]:
    """Read every known project once, by the names of their state folders."""
    ticking = clock or SystemClock()
    return {project.key: ProjectReader(project, ticking).look() for project in list_known()}
