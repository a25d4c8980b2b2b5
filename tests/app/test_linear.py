"""The linear mode on a real terminal: every line stays, and nothing is decided that was not printed."""

from __future__ import annotations

import signal
import sys

import pytest
from app_terminal import Terminal

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals, sessions

pytestmark = pytest.mark.slow

TOO_EARLY = "look first"
"""What is printed where a word came before one could have heard what it is for."""

ASKS = """
[[turn]]
text = "I need two files."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is there?", scope = ["file:calc.py", "file:more.py"] }

[[turn]]
when = { called = ["request_context"], not_called = ["run"] }
text = "Now the tests."
[[turn.call]]
name = "run"
arguments = { argv = ["rm", "-rf", "build"], reason = "it is old" }

[[turn]]
when = { called = ["run"] }
text = "I have seen it."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""


@pytest.fixture
def env(tmp_path):
    (tmp_path / "scenario.toml").write_text(ASKS)
    return {
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
        "COCKPIT_MODEL": f"script:{tmp_path / 'scenario.toml'}",
    }


def reach(terminal: Terminal, text: str, *, after: int = 0) -> int:
    """Read until ``text`` was printed after the byte ``after``; returns where it ends."""
    terminal.until(text, after=after)
    return terminal.wrote.index(text.encode(), after) + len(text.encode())


def approve_twice(terminal: Terminal, text: str, *, too_early: str, after: int) -> int:
    """Approve and answer the question for the second word, until ``text`` was printed."""
    asked = "Type yes to approve it"
    while True:
        at = terminal.press_until(b"approve\n", asked, too_early=TOO_EARLY, after=after)
        # The program notes the time of its question after it was printed: this may be sooner.
        terminal.press(b"yes\n")
        terminal.until(text, too_early, after=at)
        if text.encode() in terminal.wrote[at:]:
            return terminal.wrote.index(text.encode(), at)
        after = at


def decided(place):
    with Store.open(place.database) as store:
        return [(each.kind, each.status) for each in store.read_now(proposals.select_recent)]


def test_a_session_line_by_line(project, env, tmp_path):
    (project / "more.py").write_text("two = 2\n")
    again = ASKS.replace('called = ["request_context"], not_called', "wave_from = 3, not_called")
    (tmp_path / "scenario.toml").write_text(again)
    place = locate_project(project)
    with Terminal("--linear", cwd=project, env=env) as terminal:
        at = reach(terminal, "/help lists the commands.")
        terminal.press(b"fix the total\n\n\n\n")  # what was typed ahead approves nothing
        at = reach(terminal, "Enter approves it.", after=at)
        assert b"file:calc.py" in terminal.wrote
        terminal.press(b"/tasks\n")
        reach(terminal, "No open tasks.", after=at)
        assert ("context", "pending") in decided(place)
        words = b"discuss only calc.py\n"
        at = terminal.press_until(words, "discussed by you", too_early=TOO_EARLY, after=at)
        at = reach(terminal, "Enter approves it.", after=at)
        terminal.press(b"narrow 2\n")
        at = reach(terminal, "Narrowed to 1 of 2 items", after=at)
        approved = "approved by you, narrowed to 1 item"
        at = terminal.press_until(b"\n", approved, too_early=TOO_EARLY, after=at)
        at = reach(terminal, "Enter approves it.", after=at)
        # The second word was typed before it was asked for.
        waits = "Not approved. It still waits"
        at = terminal.press_until(b"\nyes\n", waits, too_early=TOO_EARLY, after=at)
        at = approve_twice(terminal, "done: seen", too_early=waits, after=at)
        terminal.press(b"/nothing\n")
        reach(terminal, "There is no command /nothing.", after=at)
        terminal.press(b"/sessions\n")
        at = reach(terminal, ", done: fix the total", after=at)
        terminal.press(b"\x04")
        assert terminal.ends() == 0
    drawn = terminal.wrote.replace(b"\x1b[?2004", b"")
    assert b"\x1b" not in drawn, "a screen reader gets lines and nothing else"
    assert "✔".encode() not in drawn
    assert b"\a" in drawn
    with Store.open(place.database) as store:
        (session,) = store.read_now(sessions.select_recent)
        assert session.status == "completed"


def test_an_action_is_edited_the_policy_is_changed_and_a_signal_ends(project, env, tmp_path):
    """The editor has the terminal to itself; a wider policy has to be typed with yes behind it."""
    place = locate_project(project)
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        "print('THE EDITOR', flush=True)\nsys.stdin.readline()\n"
        "path.write_text(path.read_text().replace('build', 'dist'))\n"
    )
    env["EDITOR"] = f"{sys.executable} {editor}"
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "config.toml").write_text("[notify]\nto = []\n")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        ASKS[ASKS.index("[[turn]]\nwhen") :].replace('called = ["request_context"], ', "")
    )
    with Terminal("--linear", cwd=project, env=env) as terminal:
        at = reach(terminal, "/help lists the commands.")
        terminal.press(b"clean up\n")
        at = reach(terminal, "discuss, edit, reject or show.", after=at)
        terminal.press(b"edit\n")
        at = reach(terminal, "THE EDITOR", after=at)
        terminal.press(b"a line of the editor's\n")
        at = reach(terminal, "ACTION: run rm -rf dist", after=at)
        at = reach(terminal, "discuss, edit, reject or show.", after=at)
        assert [status for _, status in decided(place)].count("pending") == 1
        terminal.press(b"/policy\n")
        at = reach(terminal, "The policy is ask.", after=at)
        terminal.press(b"/policy all\n")
        at = reach(terminal, "Type /policy all yes to change it.", after=at)
        terminal.press(b"/policy all yes\n")
        at = reach(terminal, "The policy is all from now on.", after=at)
        terminal.send(signal.SIGTERM)
        assert terminal.ends() == 130
    assert b"\a" not in terminal.wrote
