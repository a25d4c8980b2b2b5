"""The prompt in a real terminal: pastes with and without marks, legacy keys, words typed at machine speed."""

from __future__ import annotations

import pytest
from app_terminal import ASKS, Terminal, read_colours

from cockpit.app.prompt_draft import Draft
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


@pytest.fixture
def env(tmp_path):
    (tmp_path / "scenario.toml").write_text(ASKS)
    return {
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
        "COCKPIT_MODEL": f"script:{tmp_path / 'scenario.toml'}",
        "NO_COLOR": "1",
    }


def wait_for_draft(terminal: Terminal, place, text: str) -> None:
    """Wait until the prompt's text is on disk."""
    terminal.wait_for(lambda: read_drafts(place) == text)


def read_drafts(place) -> str:
    return "".join(path.read_text() for path in place.state.glob("draft-*.txt"))


def test_pastes_and_legacy_keys_send_and_approve_nothing(project, env):
    place = locate_project(project)
    long = "".join(f"{number}\r" for number in range(2_000))
    with Terminal(cwd=project, env=env) as terminal:
        terminal.press(
            b"\x1b[O"
        )  # the terminal loses the focus before the first frame, and never tells more
        at = terminal.until("ype a task:")
        terminal.press(b"\x1b[200~one\rtwo\r\nthree\x1b[201~")  # marked, as terminals send it
        wait_for_draft(terminal, place, "one\ntwo\nthree")
        terminal.press(b"\x1b\r")  # Alt+Enter
        terminal.press(b"four\rfive\r")  # not marked
        wait_for_draft(terminal, place, "one\ntwo\nthree\nfour\nfive\n")
        terminal.press(b"\x13")
        wait_for_draft(terminal, place, "")
        assert Draft(place).load_stash() == ["one\ntwo\nthree\nfour\nfive\n"]
        for start in range(0, len(long), 4_000):
            terminal.press(long[start : start + 4_000].encode())
        at = terminal.until("2,000 lines]", after=at)
        wait_for_draft(terminal, place, long.replace("\r", "\n"))
        terminal.press(b"\x15\x15")
        wait_for_draft(terminal, place, "")
        terminal.press(b"\x1b[O")  # the user goes to another window
        terminal.press(b"look at it\r")
        terminal.until("\x1b]2;cockpit · api · 1 waiting\x07", after=at)
        at = terminal.until("risk low", after=at)
        for keys in (b"\x1b\r", b"\x1b[13;3u", b"\x1b[27;3;13~", b"\ry", b"\r\r\ry"):
            terminal.pause()  # long enough for the proposal to be armed
            terminal.press(keys)
        wait_for_draft(terminal, place, "\n\n\n\ny\n\n\ny")
        terminal.press(b"\x15\x15\x15")
        assert b"done: seen" not in terminal.wrote
    colours = {*range(30, 38), *range(40, 48), *range(90, 108)}
    assert not {int(code) for code in read_colours(terminal.wrote)} & colours, "NO_COLOR is set"
    with Store.open(place.database) as store:
        listed = store.read_now(sessions.select_recent)
    assert [session.words for session in listed] == ["look at it"]
