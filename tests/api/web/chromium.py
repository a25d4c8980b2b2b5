"""A real Chromium without a window, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

PATIENCE_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str:
    """The browser's program. Raises ``FileNotFoundError`` where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(
        f"None of {', '.join(NAMES)} is installed: the browser's tests need one."
    )


class Page:
    """One page of the browser."""

    def __init__(self, address: str) -> None:
        self._line = connect(address, max_size=None, compression=None, legacy=True)
        self._count = 0
        self.problems: list[str] = []
        self.ask("Page.enable")
        self.ask("Runtime.enable")
        self.ask("Log.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        self._count += 1
        self._line.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self._line.recv(timeout=PATIENCE_S))
            if answer.get("method") == "Log.entryAdded":
                self.problems.append(str(answer["params"]["entry"]))
            if answer.get("method") == "Runtime.exceptionThrown":
                self.problems.append(str(answer["params"]))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def size(self, width: int, height: int, *, mobile: bool) -> None:
        """Give the page the size of a window, or of a phone with touch."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile,
        )  # fmt: skip
        self.ask("Emulation.setTouchEmulationEnabled", enabled=mobile)
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)

    def go(self, address: str) -> None:
        """Load an address."""
        self.ask("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get(
            "value"
        )

    def text(self) -> str:
        """The terminal's rows, as the page has drawn them."""
        return str(
            self.run(
                "[...document.querySelectorAll('.xterm-rows > div')].map(row => row.textContent).join('\\n')"
            )
        ).replace("\xa0", " ")

    def until(self, text: str) -> str:
        """Wait until the terminal shows a text."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in (shown := self.text()):
            assert time.monotonic() < deadline, f"{text!r} never came:\n{shown}\n{self.problems}"
            time.sleep(0.05)
        return shown

    def type(self, text: str) -> None:
        """Type a text as a keyboard does."""
        self.ask("Input.insertText", text=text)

    def key(self, name: str, code: int) -> None:
        """Press and release a key of a keyboard."""
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )  # fmt: skip

    def tap(self, selector: str) -> None:
        """Touch an element."""
        x, y = self.run(
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def picture(self, path: Path) -> None:
        """Write what the page looks like, as PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Close the tab."""
        self.ask("Page.close")
        self._line.close()


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own; its one page."""
    command = [
        find_browser(), "--headless=new", "--remote-debugging-port=0", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank",
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            port_file = folder / "DevToolsActivePort"
            deadline = time.monotonic() + PATIENCE_S
            while not port_file.is_file() or len(port_file.read_text().split()) < 2:
                assert process.poll() is None and time.monotonic() < deadline, log.name
                time.sleep(0.05)
            port, path = port_file.read_text().split()
            with connect(f"ws://127.0.0.1:{port}{path}", compression=None) as control:
                control.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
                targets = json.loads(control.recv())["result"]["targetInfos"]
                target = next(each["targetId"] for each in targets if each["type"] == "page")
                yield Page(f"ws://127.0.0.1:{port}/devtools/page/{target}")
        finally:
            process.terminate()
            process.wait()
