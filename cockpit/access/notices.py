"""Tell the user what happened or waits: at the terminal, on the desktop, at a webhook, at an ntfy topic.

The addresses are those of the user's own settings, never of a project's. What is told is masked. A channel
that fails is reported, and holds nothing up. See ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import Clock, SystemClock
from cockpit.core.fenced_text import make_visible
from cockpit.core.project.own_programs import find_program
from cockpit.core.state_folder import state_root

FOLDER = "notices"
"""The folder of the state folder with a mark of each notice and channel that was told."""
BELL = "\a"
BELL_CHANNEL = "bell"
TIMEOUT_S = 5.0
_LONGEST = 300
_MOST_MARKS = 1_000
_QUIET_S = 60.0
"""Seconds in which the same channel reports one failure."""
_PROGRAM = "notify-send"
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY")
_NOTES_777 = ("foot", "rxvt", "contour")
"""Terminals, by the start of TERM, that know notes as OSC 777."""
_NOTES_9 = ("iTerm.app", "WezTerm", "ghostty", "kitty")
"""Terminals, by TERM_PROGRAM or TERM, that know notes as OSC 9."""
_MARKS = ("KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR", "ITERM_SESSION_ID")
"""Variables of terminals that know notes as OSC 9; tmux hands them on to what runs in it."""


class NotifySettings(Struct, frozen=True):
    """``[notify]``: where a request is announced besides the terminal. Only the user's own files set it."""

    desktop: bool = False
    webhook: str | None = None
    """An address that gets each request as JSON."""
    ntfy: str | None = None
    """The address of an ntfy topic."""


def read_channels(names: Sequence[str]) -> NotifySettings:
    """Return where the channels of ``[notify] to`` lead; the bell is the screen's own."""
    topics = [name.removeprefix("ntfy:") for name in names if name.startswith("ntfy:")]
    addresses = [name for name in names if name.startswith(("http://", "https://"))]
    return NotifySettings("desktop" in names, next(iter(addresses), None), next(iter(topics), None))


class Notice(Struct, frozen=True):
    """What the user is told; neither masked nor cleaned yet."""

    text: str
    title: str = "cockpit"
    urgent: bool = False
    key: str = ""
    """Names it among all notices: one with a key is told once on each channel, whichever screen sees it."""
    details: Mapping[str, str] = {}
    """What a webhook is sent."""


def proposal_notice(
    key: str,
    *,
    project: str,
    branch: str,
    proposal_id: str,
    kind: str,
    risk: str,
    title: str,
    agent: str,
    session_id: str,
) -> Notice:
    """Return what the user is told of a proposal that waits; ``key`` names it among those of all projects."""
    where = " · ".join(part for part in (project, branch, agent) if part)
    details = {
        "event": "proposal.waiting",
        "project": project,
        "branch": branch,
        "proposal_id": proposal_id,
        "kind": kind,
        "risk": risk,
        "title": title,
        "agent": agent,
        "session_id": session_id,
    }
    text = f"{where}: {title} ({kind}, {risk} risk)"
    return Notice(text, urgent=risk == "high", key=key, details=details)


class Notifier:
    """Tells notices on the channels of the user's settings, and at the terminal that ``ring`` writes to.

    ``on_error`` is called with text for the user. Give it an event loop: :meth:`notify` sends in the
    background.
    """

    def __init__(
        self,
        settings: NotifySettings,
        on_error: Callable[[str], object] = lambda text: None,
        *,
        ring: Callable[[str], object] | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.on_error = on_error
        self._settings = settings
        self._ring = ring
        self._environment = os.environ if environment is None else environment
        self._clock = clock or SystemClock()
        self._sending: set[asyncio.Task[None]] = set()
        self._failed_at: dict[str, float] = {}

    def notify(self, notice: Notice) -> None:
        """Tell a notice in the background."""
        task = asyncio.create_task(self.send(notice))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Wait until all was sent, or given up after some seconds."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def send(self, notice: Notice) -> None:
        """Tell a notice on every channel that there is."""
        if self._ring is not None:
            words = f"{notice.title}: {notice.text}"
            self._ring(f"{terminal_note(words, self._environment)}{BELL}")
        channels = self._choose(notice)
        if notice.key:
            try:
                sent_before = await asyncio.to_thread(
                    lambda: [name for name in channels if not _claim(f"{notice.key} {name}")]
                )
            except OSError as error:
                self._report(
                    "notices", f"Requests cannot be marked as announced: {error.strerror}."
                )
                return
            channels = {name: channels[name] for name in channels if name not in sent_before}
        await asyncio.gather(*(send() for send in channels.values()))

    def _choose(self, notice: Notice) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return how the notice is told on each channel beside the terminal."""
        settings = self._settings
        channels: dict[str, Callable[[], Awaitable[None]]] = {}
        if settings.desktop:
            channels["desktop"] = lambda: self._show_on_desktop(notice)
            if not has_desktop(self._environment):
                self._report(
                    "desktop",
                    "This screen cannot notify the desktop: there is no `notify-send`, or no desktop.",
                )
                del channels["desktop"]  # another screen may have one
        if webhook := settings.webhook:
            body = {name: _clean(value) for name, value in notice.details.items()}
            channels["webhook"] = lambda: self._post("webhook", webhook, json=body)
        if topic := settings.ntfy:
            headers = {"Title": "cockpit", "Priority": "high" if notice.urgent else "default"}
            content = _clean(notice.text).encode()
            channels["ntfy"] = lambda: self._post("ntfy", topic, content=content, headers=headers)
        return channels

    async def _show_on_desktop(self, notice: Notice) -> None:
        # Late: the settings, which load this module, are read before the first frame.
        from cockpit.access.run_program import ProgramMissing, run_program

        program = find_program(_PROGRAM, self._environment.get("PATH")) or _PROGRAM
        argv = (program, *desktop_arguments(notice))
        try:
            ended = await run_program(
                argv, cwd=Path("/"), timeout_s=TIMEOUT_S, env=dict(self._environment)
            )
        except (OSError, ProgramMissing) as error:
            self._report("desktop", f"The desktop was not notified: {error}.")
            return
        if not ended.ok:
            self._report("desktop", "The desktop was not notified: it did not answer.")

    async def _post(self, name: str, address: str, **content: Any) -> None:
        """Send a notice to an address, which errors do not name: it may contain a secret."""
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


def terminal_note(text: str, environment: Mapping[str, str]) -> str:
    """Return what shows a note of the terminal's; empty where it is not known to have them.

    Foreign text in it cannot end it or start another. tmux knows no notes: the sequence passes through it,
    where its ``allow-passthrough`` is on.
    """
    note = f"\x1b]9;cockpit: {_clean(text)}\x07"
    if environment.get("TMUX"):
        is_known = any(environment.get(name) for name in _MARKS)
        return f"\x1bPtmux;\x1b{note}\x1b\\" if is_known else ""
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(_NOTES_777):
        return f"\x1b]777;notify;cockpit;{_clean(text).replace(';', ',')}\x07"
    return note if program in _NOTES_9 or any(name in term for name in _NOTES_9) else ""


def has_desktop(environment: Mapping[str, str]) -> bool:
    """Return whether there is a desktop, and the program that notifies it."""
    is_there = any(environment.get(name) for name in _DESKTOP)
    return is_there and find_program(_PROGRAM, environment.get("PATH")) is not None


def desktop_arguments(notice: Notice) -> tuple[str, ...]:
    """Return the arguments with which ``notify-send`` shows the notice."""
    urgency = "critical" if notice.urgent else "normal"
    # notify-send reads markup in the body; a task's title must stay text.
    body = _clean(notice.text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return ("--app-name=cockpit", f"--urgency={urgency}", "--", _clean(notice.title), body)


def _clean(text: str) -> str:
    from cockpit.core.secrets import mask  # late: as above

    words = " ".join(make_visible(mask(text)).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _claim(key: str) -> bool:
    """Mark a notice as told on a channel; False where another screen told it. Raises ``OSError``."""
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
