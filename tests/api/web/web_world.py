"""``cockpit web`` as a process of its own, over a project whose agent proposes to write notes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import run_cockpit
from faults.terminal_trials import MARK, make_project

PATIENCE_S = 60.0
get = partial(httpx2.get, timeout=PATIENCE_S, verify=False)
"""Without certificates, which take 30 ms to load: the addresses are http."""
SCENARIO = """
[[turn]]
pace = 0.01
text = "I look at the notes and then I write them."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# First\\n" }
[[turn]]
when = { called = ["write_file"], contains = ["shorter please"] }
text = "Shorter, then."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Short\\n" }
[[turn]]
when = { called = ["write_file"], contains = ["shorter please", "→ [^\\n]*(is written|DID)"] }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Notes written." }
"""


@dataclass
class Web:
    """A server, where it serves, and what it told its user so far."""

    process: subprocess.Popen[str]
    root: Path
    mark: str
    link: str = ""

    def read_link(self) -> str:
        """Wait for the link that the server prints next."""
        assert self.process.stderr is not None
        line = next(line for line in self.process.stderr if "/open/" in line)
        self.link = next(word for word in line.split() if "/open/" in word)
        return self.link

    @property
    def address(self) -> str:
        return self.link.partition("/open/")[0]

    def login(self) -> tuple[str, str]:
        """Follow the link: the page's address, and the Cookie header."""
        answer = get(self.link)
        assert answer.status_code == 303, answer.text
        self.read_link()
        return self.address + answer.headers["location"], answer.headers["set-cookie"].split(";")[0]


@contextmanager
def web(
    folder: Path, command: Sequence[str] = (), *words: str, policy: str = "ask"
) -> Iterator[Web]:
    """A server on a free port, in a project whose proposals wait for the user."""
    env = make_project(folder)
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "user" / "config.toml").write_text(f'[approval]\npolicy = "{policy}"\n')
    env[MARK] = f"web-{os.getpid()}-{folder.name}"
    process = subprocess.Popen(
        [*(command or run_cockpit.PROGRAM), "web", "--port", "0", *words],
        cwd=folder / "calc",
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    served = Web(process, folder / "calc", env[MARK])
    try:
        served.read_link()
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
