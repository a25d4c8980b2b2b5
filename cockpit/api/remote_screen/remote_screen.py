"""The screen of another machine in this terminal, from the first line to the last.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import time
from codecs import getincrementaldecoder
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from cockpit.api.remote_screen.connect_to_server import CannotConnect, RefusedByServer, open_line
from cockpit.api.remote_screen.drawn_output import ANSWER, DrawnOutput
from cockpit.api.remote_screen.output_filter import OutputFilter
from cockpit.api.remote_screen.own_terminal import OwnTerminal, TerminalGone
from cockpit.api.remote_screen.server_address import Server
from cockpit.api.web.screen_messages import (
    ENDED,
    FULL,
    KEEP_S,
    MALFORMED,
    STUCK,
    Hello,
    Message,
)
from cockpit.core.read_record import decode_json
from cockpit.core.terminal.far_terminal import NO_GAP_MS

INTERRUPTED = 130
TICK_S = 0.25
LEAVE = (b"\x1d", b"\x1b[93;5u")
"""Ctrl+], as terminals send it: leaves at once, whatever the server does."""
_GIVE_UP = (*LEAVE, b"\x03", b"\x1b[99;5u")
"""While no line is there, Ctrl+C leaves as well."""
_PIECE = 4_000
"""Characters of one message."""
_ACKNOWLEDGE = 32_768
_MOST_WAITING = 1_000
"""Messages that wait for the line; then keys are dropped."""
_HOLD_S = 0.02
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)
_WHY = {
    FULL: "has as many screens open as it may. Close one of them first.",
    STUCK: "ended the screen: it took no keys any more.",
    MALFORMED: "does not understand this cockpit. Use the same version on both machines.",
}


class LineLost(RefusedByServer):
    """The line was lost, and did not come back."""

    code = "cannot_connect"


def describe_terminal(environment: Mapping[str, str], size: tuple[int, int], theme: str) -> Hello:
    """Return the terminal as the server is told of it; values that no terminal has are left out."""

    def plain(name: str) -> str:
        value = environment.get(name, "")[:64]
        return (
            value
            if all(each.isascii() and (each.isalnum() or each in "._+-") for each in value)
            else ""
        )

    return Hello(
        size=size,
        term=plain("TERM") or "xterm",
        colorterm=plain("COLORTERM"),
        program=plain("TERM_PROGRAM"),
        no_color=bool(environment.get("NO_COLOR")),
        theme=theme,
    )


class RemoteScreen:
    """One terminal, and the screen that a server shows on it."""

    def __init__(
        self,
        server: Server,
        token: str,
        trust: ssl.SSLContext | None,
        terminal: OwnTerminal,
        hello: Hello,
    ) -> None:
        self._server, self._token, self._trust = server, token, trust
        self._terminal = terminal
        self._hello = hello
        self._left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._line: ClientConnection | None = None
        self._drawn = DrawnOutput()
        self._is_open = False
        """Whether the server shows the screen now."""
        self._sending: asyncio.Queue[Message] = asyncio.Queue()
        self._drawing = asyncio.Lock()
        self._acknowledged = (0, 0)
        self._typed_at = float("-inf")
        self._held = b""
        self._decode_keys = getincrementaldecoder("utf-8")("replace").decode
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Show the screen until it ends or the user leaves; return the exit code.

        Raises ``CannotConnect`` where the first line does not open, ``RefusedByServer`` and ``LineLost``.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, self._leave)
        loop.add_signal_handler(signal.SIGWINCH, self._send_size)
        loop.add_signal_handler(signal.SIGCONT, self._come_back)
        serving = asyncio.create_task(self._serve())
        try:
            await asyncio.wait((serving, self._left), return_when=asyncio.FIRST_COMPLETED)
            return self._left.result() if self._left.done() else await serving
        except TerminalGone:
            return INTERRUPTED
        finally:
            serving.cancel()
            if self._line is not None:
                self._line.transport.abort()
            with suppress(OSError, ValueError):
                self._terminal.watch_no_keys()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(serving, *self._tasks, return_exceptions=True)

    def _leave(self) -> None:
        if not self._left.done():
            self._left.set_result(INTERRUPTED)

    # Lines

    async def _serve(self) -> int:
        line = await self._open()
        self._terminal.take()
        self._terminal.watch_keys(self._hear_keys)
        while True:
            code = await self._show(line)
            if code == ENDED:
                return 0
            if code in _WHY:
                raise RefusedByServer(f"{self._server.name} {_WHY[code]}")
            line = await self._reconnect(time.monotonic())

    async def _open(self) -> ClientConnection:
        line = await open_line(self._server, self._token, self._trust)
        self._line = line
        return line

    async def _reconnect(self, lost_at: float) -> ClientConnection:
        """Open a line again, until the server keeps the screen no longer."""
        pauses = iter(_PAUSES_S)
        pause_s = next(pauses)
        while True:
            left_s = KEEP_S - (time.monotonic() - lost_at)
            if left_s <= 0:
                raise LineLost(
                    f"The connection to {self._server.name} was lost, and did not come back within"
                    f" {KEEP_S:g} seconds. Connect again; its sessions can be resumed."
                )
            await self._note(
                f"connection lost · reconnecting for {left_s:.0f} s · no key goes anywhere · ^c leaves"
            )
            await asyncio.sleep(pause_s)
            pause_s = next(pauses, pause_s)
            with suppress(CannotConnect):
                return await self._open()

    async def _show(self, line: ClientConnection) -> int | None:
        """Show what comes over a line; return the code that the server ended it with, or None."""
        self._drawn = drawn = DrawnOutput(answers=self._drawn.answers)
        self._sending = asyncio.Queue()
        self._acknowledged = (0, 0)
        shown, decode = OutputFilter(), getincrementaldecoder("utf-8")("replace").decode
        self._terminal.take()
        helpers = [asyncio.create_task(self._send(line)), asyncio.create_task(self._tick())]
        try:
            hello = replace(self._hello, size=self._terminal.size())
            await line.send(msgspec.json.encode(hello).decode())
            async for message in line:
                if isinstance(message, str):
                    self._hear_server(message)
                    continue
                async with self._drawing:
                    text = shown.take(decode(message))
                    await self._terminal.write(text.encode("utf-8", "replace"))
                    await self._terminal.write(drawn.write(len(message)))
                self._acknowledge(_ACKNOWLEDGE)
        except ConnectionClosed:
            pass  # the code says why
        finally:
            self._is_open = False
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        return line.close_code

    def _hear_server(self, message: str) -> None:
        try:
            news = decode_json(message, dict[str, object])
        except (msgspec.DecodeError, UnicodeError):
            return
        if isinstance(reason := news.get("refused"), str):
            raise RefusedByServer(f"{self._server.name} ended the screen: {reason}")
        if isinstance(name := news.get("screen"), str):
            self._hello = replace(self._hello, screen=name)
            self._is_open = True

    async def _send(self, line: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                message = await self._sending.get()
                await line.send(msgspec.json.encode(message).decode())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._drawn.give_up()
            self._acknowledge(1)

    def _acknowledge(self, least: int) -> None:
        """Tell the server what the terminal has drawn, when that is ``least`` bytes more than it knows."""
        seen, settled = self._drawn.seen, self._drawn.settled()
        if self._is_open and seen + settled - sum(self._acknowledged) >= least:
            self._acknowledged = (seen, settled)
            self._sending.put_nowait(Message(seen=seen, settled=settled))

    # The terminal

    def _hear_keys(self, typed: bytes) -> None:
        if not typed:
            self._leave()
            return
        typed = self._held + typed
        self._held = b""
        answers = typed.count(ANSWER)
        typed = typed.replace(ANSWER, b"")
        for _ in range(answers):
            if question := self._drawn.answer():
                self._do(self._write(question))
        if answers:
            self._acknowledge(_ACKNOWLEDGE)
        if self._drawn.is_asking and (begun := _count_begun(typed)):
            typed, self._held = typed[:-begun], typed[-begun:]
            self._do(self._release_held(self._held))
        self._press(typed)

    async def _release_held(self, held: bytes) -> None:
        """Take what looked like the beginning of an answer for keys, when nothing followed."""
        await asyncio.sleep(_HOLD_S)
        if self._held == held:
            self._held = b""
            self._press(held)

    def _press(self, typed: bytes) -> None:
        if not typed:
            return
        if typed in LEAVE or (not self._is_open and typed in _GIVE_UP):
            self._leave()
            return
        keys = self._decode_keys(typed)
        if not self._is_open or self._sending.qsize() > _MOST_WAITING:
            return
        now = time.monotonic()
        gap_s, self._typed_at = now - self._typed_at, now
        gap = int(min(gap_s * 1_000, NO_GAP_MS))
        self._acknowledged = (self._drawn.seen, self._drawn.settled())
        for at in range(0, len(keys), _PIECE):
            self._sending.put_nowait(
                Message(
                    keys=keys[at : at + _PIECE],
                    seen=self._acknowledged[0],
                    settled=self._acknowledged[1],
                    gap=0 if at else gap,
                )
            )

    def _send_size(self) -> None:
        if self._is_open:
            seen, settled = self._acknowledged
            self._sending.put_nowait(
                Message(size=self._terminal.size(), seen=seen, settled=settled)
            )

    def _come_back(self) -> None:
        """Begin with a new line after the program was stopped: a shell may have drawn on the terminal."""
        if self._line is not None:
            self._line.transport.abort()

    async def _note(self, text: str) -> None:
        async with self._drawing:
            await self._terminal.note(text)

    async def _write(self, data: bytes) -> None:
        async with self._drawing:
            with suppress(TerminalGone):  # the keys' end says so
                await self._terminal.write(data)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _count_begun(typed: bytes) -> int:
    """Return how many bytes at the end may be the beginning of an answer."""
    return next((n for n in (3, 2, 1) if len(typed) >= n and ANSWER[:n] == typed[-n:]), 0)


async def show_remote_screen(
    server: Server, token: str, trust: ssl.SSLContext | None, theme: str
) -> int:
    """Show a server's screen in this process's terminal; return the exit code.

    Raises ``CannotConnect``, ``RefusedByServer`` and ``LineLost``; the terminal is as before then.
    """
    terminal = OwnTerminal()
    try:
        hello = describe_terminal(os.environ, terminal.size(), theme)
        return await RemoteScreen(server, token, trust, terminal, hello).run()
    finally:
        terminal.close()
