"""``cockpit --connect``: a proposal is approved from a terminal elsewhere, and a token ends its screen."""

from __future__ import annotations

import contextlib
import os
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from api.web.web_world import PATIENCE_S, Web, web
from faults.terminal_trials import Screen, state_of
from state_for_tests import kept_variables

from cockpit.access.capability_tokens import issue, revoke
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCREEN_OPEN
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


@contextmanager
def store_of(served: Web) -> Iterator[Store]:
    with state_of(served.root.parent), Store.open(locate_project(served.root).database) as store:
        yield store


@contextmanager
def client(served: Web, secret: str) -> Iterator[Screen]:
    """The client on a terminal of 120 columns and 40 rows."""
    home = served.root.parent / "client-home"
    home.mkdir()
    variables = {
        **kept_variables(),
        "TERM": "xterm-256color",
        "HOME": str(home),
        "COCKPIT_CONFIG_DIR": str(home / "config"),
        "COCKPIT_STATE_DIR": str(home / "state"),
        "COCKPIT_TOKEN": secret,
    }
    words = ["--connect", served.address]
    shown = Screen(words, home, variables, "closed")
    try:
        yield shown
    finally:
        shown.program.kill()
        shown.program.wait()
        os.close(shown.main)


def read_until_end(shown: Screen) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while shown.program.poll() is None:
        assert time.monotonic() < deadline, shown.wrote[-1500:]
        shown.read(0.05)
    with contextlib.suppress(OSError):
        shown.watch(0.1)
    return shown.program.returncode


def test_a_proposal_is_approved_from_a_terminal_elsewhere(tmp_path: Path) -> None:
    with web(tmp_path / "web") as served:
        with store_of(served) as store:
            token, secret = store.write_now(
                lambda tx: issue(tx, namespace="laptop", scopes=frozenset({SCREEN_OPEN}), by=PERSON)
            )
        with client(served, secret) as shown:
            before = termios.tcgetattr(shown.main)
            shown.until("ype a task:")
            shown.press(b"write the notes\r")
            shown.until("# First")
            deadline = time.monotonic() + PATIENCE_S
            while not (served.root / "notes.md").exists():
                # It counts once the proposal has been on the terminal for a while.
                assert time.monotonic() < deadline, shown.wrote[-1500:]
                shown.press(b"\r")
                shown.watch(1.0)
            with store_of(served) as store:
                store.write_now(lambda tx: revoke(tx, token.cap_id, PERSON))
            assert read_until_end(shown) == 3
            assert "is revoked since" in " ".join(shown.wrote.decode("utf-8", "replace").split())
            assert termios.tcgetattr(shown.main) == before
