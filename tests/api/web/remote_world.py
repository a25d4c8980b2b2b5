"""``cockpit --connect`` on a real terminal, and tokens of the project that ``cockpit web`` shows."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import run_cockpit
from api.web.web_world import PATIENCE_S, Web
from faults.terminal_trials import MARK, Screen, list_processes, state_of
from state_for_tests import kept_variables

from cockpit.access.capability_tokens import Token, issue, revoke
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCREEN_OPEN
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.details.store import ScreenOpened
from cockpit.store.sessions import proposals


class Client(Screen):
    """A terminal with the client on it. It answers questions for its state, as terminals do."""

    answers: bool = True
    answered = 0

    def read(self, patience_s: float) -> bool:
        is_there = super().read(patience_s)
        while self.answers and (place := self.wrote.find(b"\x1b[5n", self.answered)) >= 0:
            self.answered = place + 4
            with contextlib.suppress(OSError):
                os.write(self.main, b"\x1b[0n")
        return is_there

    def echo(self, text: str) -> None:
        """Type into the empty prompt, wait until that is drawn, and clear it: keys before are handled."""
        at = len(self.wrote)
        self.press(text.encode())
        self.until(text, after=at)
        self.press(b"\x7f" * len(text))

    def wait(self) -> int:
        """Read until the program has ended; return its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.program.poll() is None:
            assert time.monotonic() < deadline, self.wrote[-1500:]
            self.read(0.05)
        while self.read(0.05) and self._has_more():
            continue
        return self.program.returncode

    def _has_more(self) -> bool:
        before = len(self.wrote)
        return self.read(0.1) and len(self.wrote) > before


def token(
    served: Web, *scopes: str, namespace: str = "laptop", expires_s: float | None = None
) -> tuple[Token, str]:
    """Issue a token of the project."""
    with state_of(served.root.parent), Store.open(locate_project(served.root).database) as store:
        return store.write_now(
            lambda tx: issue(
                tx,
                namespace=namespace,
                scopes=frozenset(scopes or (SCREEN_OPEN,)),
                by=PERSON,
                expires_s=expires_s,
            )
        )


def revoke_token(served: Web, cap_id: str) -> None:
    """Revoke a token of the project."""
    with state_of(served.root.parent), Store.open(locate_project(served.root).database) as store:
        store.write_now(lambda tx: revoke(tx, cap_id, PERSON))


def waiting(served: Web) -> list[str]:
    """The ids of the proposals that wait."""
    with state_of(served.root.parent), Store.open(locate_project(served.root).database) as store:
        return [each.proposal_id for each in store.read_now(proposals.select_pending)]


def openings(served: Web) -> list[tuple[str, bool]]:
    """Who opened a screen, and whether it was kept for them, in order."""
    with state_of(served.root.parent), Store.open(locate_project(served.root).database) as store:
        rows = store.read_now(journal.rows)
    return [(row.actor, row.detail.again) for row in rows if isinstance(row.detail, ScreenOpened)]


def wait_for_proposal(served: Web, client: Client) -> None:
    """Wait until a proposal waits in the store, whether the terminal has it or not."""
    deadline = time.monotonic() + PATIENCE_S
    while not waiting(served):
        assert time.monotonic() < deadline
        client.read(0.05)


def screens(served: Web) -> list[int]:
    """The processes of the server's screens."""
    running = list_processes(served.mark)
    return [pid for pid, line in running.items() if " web " not in f"{line} "]


@contextmanager
def client(
    served: Web,
    address: str,
    *words: str,
    secret: str = "",
    env: dict[str, str] | None = None,
    answers: bool = True,
) -> Iterator[Client]:
    """The client on a terminal of 120 columns and 40 rows."""
    home = served.root.parent / "client-home"
    home.mkdir(exist_ok=True)
    variables = {
        **kept_variables(),
        "TERM": "xterm-256color",
        "HOME": str(home),
        "COCKPIT_CONFIG_DIR": str(home / "config"),
        "COCKPIT_STATE_DIR": str(home / "state"),
        MARK: f"client-{os.getpid()}-{served.root.parent.name}",
        **({"COCKPIT_TOKEN": secret} if secret else {}),
        **(env or {}),
    }
    shown = Client(["--connect", address, *words], home, variables, "closed", run_cockpit.PROGRAM)
    shown.answers = answers
    try:
        yield shown
    finally:
        for pid in list_processes(variables[MARK]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shown.program.kill()
        shown.program.wait()
        if shown.main >= 0:
            os.close(shown.main)


def modes(shown: Client) -> list[object]:
    """The modes of the terminal."""
    return termios.tcgetattr(shown.main)
