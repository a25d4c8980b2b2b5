"""``cockpit web`` end to end, with a client of WebSockets for the browser: links, cookies, keys, ends."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import httpx2
import pytest
from api.web.web_world import PATIENCE_S, Web, get, web
from faults.terminal_trials import list_processes
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from cockpit.api.web.screens import ENDED, MALFORMED, ShownOutput
from cockpit.core.terminal.far_terminal import mark

pytestmark = pytest.mark.slow
SETTLE_S = 0.5
"""Seconds that the page must have shown something before a key can decide about it."""


class Tab:
    """A tab of a browser: what it was sent, and keys that say how much of it was drawn for a while."""

    def __init__(self, page: str, cookie: str, size: tuple[int, int] = (46, 40)) -> None:
        address = page.replace("http", "ws", 1)
        origin = page.partition("/s/")[0]
        self.line: ClientConnection = connect(
            f"{address}screen",
            additional_headers={"Cookie": cookie, "Origin": origin},
            open_timeout=PATIENCE_S,
            close_timeout=PATIENCE_S,
            compression=None,
            legacy=True,
        )
        self.wrote = b""
        self._pieces: list[tuple[int, float]] = []
        self.send(size=size)

    def send(self, **message: object) -> None:
        self.line.send(json.dumps(message))

    def press(self, keys: str) -> None:
        until = time.monotonic() - SETTLE_S
        settled = max((size for size, at in self._pieces if at <= until), default=0)
        self.send(keys=keys, seen=len(self.wrote), settled=settled, gap=10_000)

    def read(self, patience_s: float) -> None:
        """Take what comes next."""
        got = self.line.recv(timeout=max(0.01, patience_s))
        assert isinstance(got, bytes)
        self.wrote += got
        self._pieces.append((len(self.wrote), time.monotonic()))

    def until(self, *texts: str, after: int = 0) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while not any(text.encode() in self.wrote[after:] for text in texts):
            self.read(deadline - time.monotonic())
        return len(self.wrote)

    def wait_closed(self) -> int:
        """Read to the end: the code that the server closed with."""
        try:
            while True:
                self.line.recv(timeout=PATIENCE_S)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code


def screens(served: Web) -> int:
    """How many screens' processes run."""
    running = list_processes(served.mark).values()
    return sum(line.split()[-1] == "cockpit" for line in running)


def wait_for_screens(served: Web, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while screens(served) != count:
        assert time.monotonic() < deadline, list_processes(served.mark)
        time.sleep(0.05)  # each look goes through all processes of the machine


def _open_links(served: Web) -> None:
    """A link works once, and only its cookie opens the page."""
    used = served.link
    assert httpx2.head(used, verify=False).status_code == 401  # a look does not use it up
    answer = get(used)
    parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", f"path={answer.headers['location']}".lower()} <= parts
    page, cookie = served.address + answer.headers["location"], answer.headers["set-cookie"]
    cookie = cookie.partition(";")[0]
    served.read_link()
    assert served.link != used
    assert get(used).status_code == 401
    assert get(f"{served.address}/open/guess").status_code == 401
    assert get(page).status_code == 401
    assert get(page, headers={"Cookie": f"{cookie}x"}).status_code == 401
    shown = get(page, headers={"Cookie": cookie})
    assert shown.status_code == 200 and "page.js" in shown.text
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    names = {
        part.split('"')[1] for part in shown.text.split() if part.startswith(("src=", "href="))
    }
    for name in names:
        assert get(page + name, headers={"Cookie": cookie}).status_code == 200, name
    assert get(f"{page}../../server.py", headers={"Cookie": cookie}).status_code == 401
    assert get(f"{page}%2e%2e/x", headers={"Cookie": cookie}).status_code == 404
    other, _ = served.login()
    assert get(other, headers={"Cookie": cookie}).status_code == 401
    refused = get(page, headers={"Cookie": cookie, "Host": "evil.example"})
    assert refused.status_code == 421


def _refuse_others(served: Web, page: str, cookie: str) -> None:
    """A terminal is for the page alone."""
    own = {"Origin": served.address}
    for name, headers, status in (
        (f"{page}screen", {"Cookie": cookie, "Origin": "http://evil.example"}, 403),
        (f"{page}screen", {"Cookie": cookie, "Origin": "http://127.0.0.1:1"}, 403),
        (f"{page}screen", {"Cookie": cookie}, 403),
        (f"{page}screen", {"Cookie": "cockpit_screen=guess", **own}, 401),
    ):
        with pytest.raises(InvalidStatus) as refused:
            connect(name.replace("http", "ws", 1), additional_headers=headers)
        assert refused.value.response.status_code == status, headers
    assert screens(served) == 0


def test_a_page_is_for_who_has_its_link_and_no_screen_outlives_its_tab(tmp_path: Path) -> None:
    with web(tmp_path / "web") as served:
        _open_links(served)
        page, cookie = served.login()
        _refuse_others(served, page, cookie)
        strange = Tab(page, cookie, (100_000, 1))
        assert strange.wait_closed() == MALFORMED
        tab = Tab(page, cookie)
        tab.until("ype a task:")
        at = len(tab.wrote)
        tab.press("write the notes\r")
        tab.until("# First", after=at)
        early = Tab(page, cookie)  # a tab of its own, closed before anything is drawn in it
        wait_for_screens(served, 2)
        early.line.close()
        wait_for_screens(served, 1)
        at = len(tab.wrote)
        tab.send(size=(120, 40))
        tab.until("# First", after=at)  # drawn again, in the new size
        _decide(tab, "\x1b", "ype your reply")
        at = len(tab.wrote)
        tab.press("shorter please\r")
        tab.until("# Short", after=at)
        _decide(tab, "\r", "That is all")
        assert (served.root / "notes.md").read_text() == "# Short\n"
        last = Tab(page, cookie, (120, 40))
        last.until("ype a task:", "waiting", "That is all")
        with pytest.raises(ConnectionClosed) as ended:
            _decide(tab, "\x04", "no text of the screen")
        assert ended.value.rcvd is not None and ended.value.rcvd.code == ENDED
        wait_for_screens(served, 1)
    assert last.wait_closed() == 1001
    assert list_processes(served.mark) == {}


def test_numbers_count_once_the_bytes_before_them_were_drawn() -> None:
    output = ShownOutput()
    assert output.take(b"abc" + mark("7").encode() + b"de\x1b_cock") == b"abcde"
    assert output.take(b"pit;8\x1b\\f") == b"f"
    assert output.sent == 6
    assert [output.find_settled(size) for size in (0, 2, 3, 4, 5, 6)] == [0, 0, 7, 7, 8, 8]


def _decide(tab: Tab, key: str, then: str) -> None:
    """Press a key that decides until it does: before the proposal is armed it does nothing."""
    deadline = time.monotonic() + PATIENCE_S
    at = len(tab.wrote)
    while then.encode() not in tab.wrote[at:]:
        assert time.monotonic() < deadline, tab.wrote[-2000:]
        tab.press(key)
        with contextlib.suppress(TimeoutError):
            until = time.monotonic() + 1.0
            while then.encode() not in tab.wrote[at:]:
                tab.read(until - time.monotonic())
