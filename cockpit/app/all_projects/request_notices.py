"""Announce a request where its user is: on the desktop, at a webhook, at an ntfy topic; once per request.

The addresses are those of the user's own settings, never of a project's. What is sent is masked. A channel
that fails is reported, and holds nothing up. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import Clock, SystemClock
from cockpit.core.secrets import mask
from cockpit.core.state_folder import state_root
from widgets.text.clean import clean

if TYPE_CHECKING:
    from cockpit.config.load_settings import NotifySettings

FOLDER = "notices"
"""The folder of the state folder with a mark of each request and channel that was announced."""
TIMEOUT_S = 5.0
_LONGEST = 300
_MOST_MARKS = 1_000
_QUIET_S = 60.0
"""Seconds in which the same channel reports one failure."""


class Request(msgspec.Struct, frozen=True):
    """A proposal that waits, as a notification names it; neither masked nor cleaned yet."""

    project: str
    branch: str
    proposal_id: str
    kind: str
    risk: str
    title: str
    agent: str = ""
    session_id: str = ""


class Notifier:
    """Sends each request once on each channel, whichever screen that has the channel sees it first.

    ``on_error`` is called with text for the user. Give it an event loop: sending runs in the background.
    """

    def __init__(
        self,
        settings: NotifySettings,
        on_error: Callable[[str], object] = lambda text: None,
        *,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.on_error = on_error
        self._settings = settings
        self._environment = os.environ if environment is None else environment
        self._clock = clock or SystemClock()
        self._sending: set[asyncio.Task[None]] = set()
        self._failed_at: dict[str, float] = {}

    def notify(self, key: str, request: Request) -> None:
        """Announce a request in the background; ``key`` names it among those of all projects."""
        settings = self._settings
        if settings.desktop or settings.webhook or settings.ntfy:
            task = asyncio.create_task(self._send(key, request))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Wait until all was sent, or given up after some seconds."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _send(self, key: str, request: Request) -> None:
        settings, cleaned = self._settings, _clean(request)
        channels: dict[str, Callable[[], Awaitable[None]]] = {}
        if settings.desktop and self._has_desktop():
            channels["desktop"] = lambda: self._show_on_desktop(cleaned)
        if webhook := settings.webhook:
            channels["webhook"] = lambda: self._post("webhook", webhook, json=_body(cleaned))
        if topic := settings.ntfy:
            important = "high" if cleaned.risk == "high" else "default"
            channels["ntfy"] = lambda: self._post(
                "ntfy",
                topic,
                content=_sentence(cleaned).encode(),
                headers={"Title": "cockpit", "Priority": important},
            )
        try:
            claimed = await asyncio.to_thread(
                lambda: [name for name in channels if _claim(f"{key} {name}")]
            )
        except OSError as error:
            self._report("notices", f"Requests cannot be marked as announced: {error.strerror}.")
            return
        await asyncio.gather(*(channels[name]() for name in claimed))

    def _has_desktop(self) -> bool:
        """Return whether this screen can notify the desktop; it reports why not."""
        from cockpit.chains.notify import find_desktop

        if find_desktop(self._environment) is not None:
            return True
        self._report(
            "desktop",
            "This screen cannot notify the desktop: there is no `notify-send`, or no desktop.",
        )
        return False

    async def _show_on_desktop(self, request: Request) -> None:
        from cockpit.chains.notify import Notice, notify

        notice = Notice("cockpit", _sentence(request), urgent=request.risk == "high")
        try:
            shown = await notify(
                notice, "terminal", terminal=None, environment=self._environment, cwd=Path("/")
            )
        except OSError as error:
            self._report("desktop", f"The desktop was not notified: {error.strerror}.")
            return
        if not shown:
            self._report("desktop", "The desktop was not notified: it did not answer.")

    async def _post(self, name: str, address: str, **content: Any) -> None:
        """Send a request to an address, which errors do not name: it may contain a secret."""
        import httpx2  # late: most users have no such address

        setting = f"[notify] {name}"
        if not address.startswith(("http://", "https://")):
            self._report(name, f"{setting} is not an http or https address; nothing was sent.")
            return
        try:
            async with (
                asyncio.timeout(2 * TIMEOUT_S),
                httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client,
                client.stream("POST", address, **content) as answer,  # its body is never read
            ):
                status = answer.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError, ValueError) as error:
            self._report(name, f"{setting} was not reached: {type(error).__name__}.")
            return
        if status >= 300:
            self._report(name, f"{setting} answered {status}; the request was not announced there.")

    def _report(self, channel: str, text: str) -> None:
        """Report a failure of a channel, at most once a minute."""
        now = self._clock.monotonic()
        if now - self._failed_at.get(channel, float("-inf")) >= _QUIET_S:
            self._failed_at[channel] = now
            self.on_error(text)


def _clean(request: Request) -> Request:
    fields = {
        name: clean(mask(value), newlines=False)[:_LONGEST]
        for name, value in msgspec.structs.asdict(request).items()
    }
    return Request(**fields)


def _sentence(request: Request) -> str:
    where = " · ".join(part for part in (request.project, request.branch, request.agent) if part)
    return f"{where}: {request.title} ({request.kind}, {request.risk} risk)"


def _body(request: Request) -> dict[str, str]:
    return {"event": "proposal.waiting", **msgspec.structs.asdict(request)}


def _claim(key: str) -> bool:
    """Mark a request as announced on a channel; False where another screen did. Raises ``OSError``."""
    root = Path(state_root())
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = root / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(folder / text_digest(key)[:40], flags, 0o600))
    except FileExistsError:
        return False
    _prune(folder)
    return True


def _prune(folder: Path) -> None:
    """Remove the oldest half of the marks once there are many."""
    names = os.listdir(folder)  # noqa: PTH208 - names alone
    if len(names) <= _MOST_MARKS:
        return
    ages = []
    for name in names:
        with suppress(OSError):
            ages.append(((folder / name).lstat().st_mtime, name))
    for _, name in sorted(ages)[: _MOST_MARKS // 2]:
        with suppress(OSError):
            (folder / name).unlink()
