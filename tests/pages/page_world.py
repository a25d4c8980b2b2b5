"""A scratch project in which the commands of a page are run, as one who follows the page does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import run_cockpit
from copied_repository import copy_repository, git
from page_blocks import Block, Names, read_steps
from state_for_tests import kept_variables

from cockpit.commands.demo.sample_project import make_sample

PATIENCE_S = 90
_SHELL = re.compile(r"[|&;<>$~*`]")


_AGENT = Path(__file__).resolve().parents[1] / "agents" / "chain_agent.py"
_AGENTS = {"claude": "stdio", "claude-agent-acp": "acp", "codex-acp": "acp", "my-agent": "acp"}
"""Programs of agents that answer for the real ones, by the protocol that they speak."""


def _make(root: Path) -> None:
    asyncio.run(make_sample(root))
    git(root, "branch", "-m", "feature/retry-backoff", "topic")


class World:
    """The demo's sample project, a home of its own, and ``cockpit`` on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.root = copy_repository(_make, folder / "parcel")
        self.home = folder / "home"
        self.config = self.home / ".config" / "cockpit"
        self.config.mkdir(parents=True)
        self.names = Names()
        programs = folder / "bin"
        programs.mkdir()
        self.put(programs / "cockpit", run_cockpit.PROGRAM)
        self.put(programs / "curl", (sys.executable, str(Path(__file__).with_name("curl.py"))))
        agent = shutil.copy(_AGENT, programs)  # a folder of the PATH, which the sandbox shows
        for name, protocol in _AGENTS.items():
            self.put(programs / name, (sys.executable, agent, protocol))
        variables = shlex.quote(str(folder / "variables"))
        self._recall = f"test ! -f {variables} || . {variables};"
        self._keep = f"code=$?; export -p >{variables}; exit $code"
        self._staying = ExitStack()
        self.env = {
            **kept_variables(),
            "HOME": str(self.home),
            "COCKPIT_CONFIG_DIR": str(self.config),
            "COCKPIT_STATE_DIR": str(folder / "state"),
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "TERM": "xterm-256color",
            "COLUMNS": "120",
        }

    def put(self, path: Path, command: Sequence[str]) -> None:
        """Write a program that is another one, with its first arguments."""
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project, or one below ``~/``."""
        path = self.home / name[2:] if name.startswith("~/") else self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, command: str, stdin: str = "") -> tuple[int, str]:
        """Run a command to its end; returns its exit code, and what it printed."""
        options = {"cwd": self.root, "env": self.env}
        if command.startswith("cockpit ") and not _SHELL.search(command.partition(" #")[0]):
            done = run_cockpit.run(
                shlex.split(command, comments=True)[1:],
                stdin=stdin,
                patience_s=PATIENCE_S,
                **options,
            )
        else:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", f"set -a; {self._recall} {command}\n{self._keep}"],
                input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, **options,
            )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def close(self) -> None:
        """End what still runs."""
        self._staying.close()

    def follow(self, block: Block) -> None:
        """Run the commands of a block, and compare what they print with what the page shows."""
        steps = read_steps(block)
        for step in steps:
            command = self.names.fill_in(step.command)
            if "stays" in block.says:
                terminal = self._staying.enter_context(self._terminal(command))
                self._wait(command, terminal[1], block.says["stays"])
                continue
            if "until" in block.says:
                self._watch(command, block.says["until"])
                continue
            if command.startswith("cd "):
                self.root = self.root / command.removeprefix("cd ").strip()
                continue
            is_last = step is steps[-1]
            answers = block.says.get("answers") if is_last else None
            code, printed = self.run(command) if answers is None else self._answer(command, answers)
            expected = int(block.says.get("exit", "0")) if is_last else 0
            assert code == expected, f"{command} ended with {code}:\n{printed}"
            assert self.names.find_shown(step, printed), f"{command} printed\n{printed}"

    def _answer(self, command: str, answers: str) -> tuple[int, str]:
        """Run a command in a terminal, and type ``answers`` when it asks."""
        with self._terminal(command) as (process, above):
            os.write(above, "\n".join([*answers.split(","), ""]).encode())
            printed = "".join(iter(lambda: _read(above), ""))
            return process.wait(PATIENCE_S), printed.replace("\r\n", "\n")

    def _watch(self, command: str, words: str) -> None:
        """Run a command in a terminal until it shows ``words``, then end it."""
        with self._terminal(command) as (process, above):
            self._wait(command, above, words)
            os.killpg(process.pid, signal.SIGTERM)
            for _ in iter(lambda: _read(above), ""):
                pass  # until its last words are out
            process.wait(PATIENCE_S)

    def _wait(self, command: str, terminal: int, words: str) -> None:
        shown = ""
        while words not in shown:
            more = _read(terminal)
            assert more, f"{command} showed\n{shown}"
            shown += more

    @contextmanager
    def _terminal(self, command: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        above, below = pty.openpty()
        fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.root, env=self.env, stdin=below, stdout=below,
            stderr=below, start_new_session=True,
        )  # fmt: skip
        os.close(below)
        try:
            yield process, above
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            os.close(above)
            process.wait(PATIENCE_S)


def _read(terminal: int) -> str:
    """Return what is on a terminal next; empty when its programs have ended, or are silent too long."""
    ready, _, _ = select.select([terminal], [], [], PATIENCE_S)
    try:
        return os.read(terminal, 65536).decode(errors="replace") if ready else ""
    except OSError:
        return ""
