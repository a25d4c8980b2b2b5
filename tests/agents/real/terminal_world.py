"""Programs in windows of tmux, with keys that are pressed and screens that are read, as a user has them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.real.real_world import PATHS, PATIENCE_S, model, prepare
from loopback.server import LoopbackThread

from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

COLUMNS, ROWS = 150, 45
_LOOK_S = 0.2
PRESS_S = 1.0
"""Between two presses of a key: a card counts once it has been seen for half a second without one."""
_KEY = "sk-test"


@dataclass
class Terminals:
    """A project with a home of its own, whose agents find their models on the loopback, and a tmux."""

    top: Path
    root: Path
    env: dict[str, str]

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ("tmux", "-S", str(self.top / "tmux"), "-f", "/dev/null", *words),
            env=self.env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def open(self, window: str, *words: str) -> None:
        """Open a window with a program; what it wrote stays when it has ended."""
        command = f"{shlex.join(words)}; echo ended with $?; exec sleep 3600"
        place = ("-n", window, "-c", str(self.root), command)
        if (self.top / "tmux").exists():
            self.tmux("new-window", "-d", "-t", "t:", *place)
        else:
            size = ("-x", str(COLUMNS), "-y", str(ROWS))
            self.tmux("new-session", "-d", "-s", "t", *size, *place)

    def press(self, window: str, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self.tmux("send-keys", "-t", f"t:{window}", *keys)

    def write(self, window: str, text: str) -> None:
        """Type a text and send it."""
        self.tmux("send-keys", "-t", f"t:{window}", "-l", text)
        self.until(window, text[-20:])
        self.press(window, "Enter")

    def screen(self, window: str) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-t", f"t:{window}")

    def until(self, window: str, *texts: str) -> str:
        """Wait until the window shows all of ``texts``; returns what it shows."""
        return self.wait(
            lambda: all(text in self.screen(window) for text in texts) and self.screen(window),
            lambda: f"never showed {texts}:\n{self.screen(window)}",
        )

    def wait(
        self, look: Callable[[], Any], words: Callable[[], object], look_s: float = _LOOK_S
    ) -> Any:
        """Wait for the first true value of ``look``, which is called every ``look_s`` seconds."""
        deadline = time.monotonic() + PATIENCE_S
        while not (seen := look()):
            assert time.monotonic() < deadline, words()
            time.sleep(look_s)
        return seen

    def go_to_next(self) -> None:
        """Go to the next session with a proposal that waits, unless one is in front."""

        def press() -> bool:
            if "PERMISSION" not in self.screen("cockpit"):
                self.press("cockpit", "M-n")
            return "PERMISSION" in self.screen("cockpit")

        self.wait(press, lambda: self.screen("cockpit"), PRESS_S)

    def refuse(self, words: str) -> None:
        """Answer the permission in front with no, and why; Escape counts like Enter."""

        def press() -> bool:
            if "for a plain no" not in self.screen("cockpit"):
                self.press("cockpit", "Escape")
            return "for a plain no" in self.screen("cockpit")

        self.wait(press, lambda: self.screen("cockpit"), PRESS_S)
        self.write("cockpit", words)

    def cockpit(self, *words: str) -> str:
        """Run a command of cockpit's, outside of any terminal."""
        done = subprocess.run(
            (sys.executable, "-P", "-m", "cockpit", *words),
            cwd=self.root, env=self.env, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def read(self, look: Callable[[Any], Any]) -> Any:
        """Look into the project's store while others write it."""
        state = Path(self.env["COCKPIT_STATE_DIR"]) / "projects"
        (database,) = state.glob("*/cockpit.db")
        with Store.open(database) as store:
            return store.read_now(look)

    def permissions(self, status: str) -> list[Proposal]:
        """Return the permissions with this status, the oldest first."""

        def select(connection: Any) -> list[Proposal]:
            rows = connection.execute(
                "SELECT proposal_id FROM proposals WHERE kind='permission' AND status=? ORDER BY rowid",
                (status,),
            ).fetchall()
            return [proposals.load(connection, identity) for (identity,) in rows]

        return list(self.read(select))

    def rows(self, action: str) -> list[dict[str, Any]]:
        """Return the details of the journal's rows of this action."""
        seen = self.read(lambda connection: journal.rows(connection, limit=100_000))
        return [row.raw_detail() for row in seen if row.action == action]


@contextmanager
def open_terminals(top: Path, *agents: str) -> Iterator[Terminals]:
    """Open the project with the ``agents`` logged in; the context's end ends all windows."""
    home, root, state = top / "home", top / "shop", top / "state"
    for folder in (home, root, state):
        folder.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = You\nemail = you@example.org\n")
    (home / ".config" / "cockpit").mkdir(parents=True)
    # Their models are on this machine, which their sandbox would not let them reach.
    (home / ".config" / "cockpit" / "config.toml").write_text("[sandbox]\nagents = false\n")
    programs = str(Path(sys.executable).parent)
    env = {
        "HOME": str(home),
        "PATH": os.pathsep.join((programs, PATHS)),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "COCKPIT_STATE_DIR": str(state),
    }
    with ExitStack() as stack:
        for name in agents:
            server = stack.enter_context(LoopbackThread([model(name)] * 200))
            env |= prepare(name, home, server)
        for words in (
            ("init", "--quiet", "--initial-branch", "main"),
            ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
        ):
            subprocess.run(("git", *words), cwd=root, env=env, check=True)
        trust_folder(home, root, agents)
        terminals = Terminals(top, root, env)
        try:
            yield terminals
        finally:
            if (top / "tmux").exists():
                terminals.tmux("kill-server")
            end_daemons(home)


def end_daemons(home: Path) -> None:
    """End what an agent has left running from this home: Codex starts a server that outlives its terminal."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            if words.startswith(os.fsencode(home)):
                os.kill(int(folder.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue  # it ended meanwhile, or is not ours


def trust_folder(home: Path, root: Path, agents: tuple[str, ...]) -> None:
    """Answer what the agents ask at their first start in a folder."""
    if "claude" in agents:
        path = home / ".claude.json"
        body = json.loads(path.read_text())
        body["theme"] = "dark"
        body["customApiKeyResponses"] = {"approved": [_KEY], "rejected": []}
        body["projects"] = {str(root): {"hasTrustDialogAccepted": True}}
        path.write_text(json.dumps(body))
    if "codex" in agents:
        with (home / ".codex" / "config.toml").open("a") as file:
            file.write(f'[projects."{root}"]\ntrust_level = "trusted"\n')
