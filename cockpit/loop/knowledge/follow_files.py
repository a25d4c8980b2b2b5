"""Follow a project's files from a process that has something else to do: a screen, or a run.

The watcher waits in a thread of its own, which also sets it up: a large project takes time for that. The
event loop gets the changed paths alone. See ``docs/reference/knowledge.md``, background.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from cockpit.core.errors import CockpitError

STEP_MS = 250
"""Milliseconds between two looks at what the system reports; changes that follow join the first."""
_DEBOUNCE_MS = 2_000
_TIMEOUT_MS = 5_000


class FileFollower:
    """Hands changed paths to ``take``, in the event loop in which it was started."""

    def __init__(self, root: Path, take: Callable[[set[Path]], Awaitable[object]]) -> None:
        self._root, self._take = root, take
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self.problem = ""
        """Why it follows no longer; empty while it does."""

    @property
    def is_following(self) -> bool:
        """Whether changes are noticed."""
        return self._ready.is_set() and self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin, beside the event loop that runs."""
        queue: asyncio.Queue[set[Path] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def post(paths: set[Path] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(queue.put_nowait, paths)

        self._task = loop.create_task(self._take_all(queue))
        thread = threading.Thread(
            target=self._watch, args=(post,), name="follow-files", daemon=True
        )
        thread.start()

    def stop(self) -> None:
        """End; the thread ends by itself within a look."""
        self._stop.set()
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._task.cancel()

    async def _take_all(self, queue: asyncio.Queue[set[Path] | None]) -> None:
        while (paths := await queue.get()) is not None:
            try:
                await self._take(paths)
            except CockpitError as error:
                self.problem = str(
                    error
                )  # the next search looks at all files, and says what is wrong

    def _watch(self, post: Callable[[set[Path] | None], None]) -> None:
        from watchfiles import watch

        self._ready.set()
        try:
            for changes in watch(
                self._root,
                debounce=_DEBOUNCE_MS,
                step=STEP_MS,
                rust_timeout=_TIMEOUT_MS,
                stop_event=self._stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                post({Path(path) for _, path in changes})
        except (OSError, RuntimeError) as error:
            # More folders than the system lets one watch: each search looks at all files, as before.
            self.problem = f"files are not followed: {error}"
        post(None)
