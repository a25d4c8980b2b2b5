"""``cockpit web`` in a real Chromium, as a window and as a phone: ``make test-browser``.

No test module by its name: a plain test run needs no browser. Pictures lie in ``.pytest_cache/browser``.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from api.web.chromium import PATIENCE_S, Page, browser
from api.web.test_web import wait_for_screens
from api.web.web_world import web

PICTURES = Path(__file__).resolve().parents[3] / ".pytest_cache" / "browser"


def decide(page: Page, press: object, then: str) -> None:
    """Press a key that decides until it does: before the proposal is armed it does nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while then not in page.text():
        assert time.monotonic() < deadline, page.text()
        press()  # type: ignore[operator]
        until = time.monotonic() + 1.5
        while then not in page.text() and time.monotonic() < until:
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("width", "height", "mobile"), [(1280, 800, False), (390, 844, True)], ids=["window", "phone"]
)
def test_approve_discuss_and_watch(tmp_path: Path, width: int, height: int, mobile: bool) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    name = "phone" if mobile else "window"

    def enter() -> None:
        page.tap("[data-key=enter]") if mobile else page.key("Enter", 13)

    def escape() -> None:
        page.tap("[data-key=escape]") if mobile else page.key("Escape", 27)

    with web(tmp_path / "web") as served, browser(tmp_path / "profile") as page:
        page.size(width, height, mobile=mobile)
        page.go(served.link)
        served.read_link()
        page.until("ype a task:")
        columns = page.run("terminal.cols")
        assert 40 <= columns <= 50 if mobile else columns > 120, columns
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("getComputedStyle(document.querySelector('#keys')).display") == (
            "flex" if mobile else "none"
        )
        page.picture(PICTURES / f"{name}-start.png")
        page.type("write the notes")
        page.until("write the notes")
        enter()
        page.until("# First")  # on a phone the tab of proposals has come to the front
        page.picture(PICTURES / f"{name}-proposal.png")
        decide(page, escape, "ype your reply")
        page.picture(PICTURES / f"{name}-discuss.png")
        page.type("shorter please")
        page.until("shorter please")
        enter()
        page.until("# Short")
        decide(page, enter, "That is all")
        page.picture(PICTURES / f"{name}-done.png")
        assert (served.root / "notes.md").read_text() == "# Short\n"
        page.size(height, width, mobile=mobile)  # turned
        deadline = time.monotonic() + PATIENCE_S
        while page.run("terminal.cols") == columns:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        page.until("That is all")
        assert page.run("document.cookie") == ""
        assert page.problems == []
        page.go("about:blank")  # the tab leaves: its screen ends
        wait_for_screens(served, 0)
