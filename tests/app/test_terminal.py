"""The program in a real terminal: with the user's editor, left with keys, stopped, hung up."""

from __future__ import annotations

import shlex
import signal
import sys

import pytest
import run_cockpit
from app_scenes import Scene
from app_terminal import ASKS, SGR, Terminal, read_colours

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


@pytest.fixture
def env(tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        "print('THE EDITOR', flush=True)\n"
        "file.write_text(file.read_text() + 'investigate the sums\\n')\n"
    )
    (tmp_path / "scenario.toml").write_text(ASKS)
    return {
        "EDITOR": f"{sys.executable} {editor}",
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
        "COCKPIT_MODEL": f"script:{tmp_path / 'scenario.toml'}",
    }


def test_a_dumb_terminal_gets_no_screen(project, env):
    with Terminal(cwd=project, env={**env, "TERM": "dumb"}) as terminal:
        terminal.until("--linear")
        assert terminal.ends() == 2
        assert b"\x1b" not in terminal.wrote


def test_ctrl_z_and_fg_words_from_the_editor_two_keys_and_out(project, env):
    """The shell has its terminal meanwhile, and afterwards."""
    env = {**env, "PS1": "$PWD> "}
    with Terminal(cwd=project, env=env, in_shell=True) as terminal:
        terminal.until(f"{project}> ")
        terminal.press(f"{shlex.join(run_cockpit.PROGRAM)}\r".encode())
        terminal.until("ype a task:")
        terminal.press(b"a draft")
        at = terminal.until("a draft")
        terminal.press(b"\x1a")
        terminal.until("\x1b[?1049l", after=at)
        at = terminal.until(f"{project}> ", after=at)
        terminal.press(b"stty -a; jobs -s\r")
        at = terminal.until("Stopped", after=at)
        shown = terminal.wrote[terminal.wrote.rindex(b"stty -a") :]
        assert b" icanon" in shown and b" echo " in shown
        terminal.press(b"fg\r")
        terminal.until("\x1b[?1049h", after=at)
        at = terminal.until("a draft", after=at)
        terminal.press(b"\x15")
        terminal.until("ype a task:", after=at)
        terminal.press(b"\x07")
        terminal.until("THE EDITOR", after=at)
        at = terminal.until("investigate the sums", after=at)
        terminal.press(b"\r")
        at = terminal.until("CONTEXT", after=at)
        terminal.until("risk low", after=at)
        # Until it has been seen for half a second Enter does nothing: it is pressed until it does.
        while b"done: seen" not in terminal.wrote:
            terminal.press(b"\r")
            terminal.pause()
        at = len(terminal.wrote)
        terminal.press(b"\x04")
        terminal.until("\x1b[?1049l", after=at)
        at = terminal.until(f"{project}> ", after=at)
        terminal.press(b"jobs; exit $?\r")
        assert terminal.ends() == 0
        assert b"cockpit" not in terminal.wrote[at:]
    assert b"cockpit -r s-" in terminal.wrote
    with Store.open(locate_project(project).database) as store:
        (session,) = store.read_now(sessions.select_recent)
    assert (session.status, session.words) == ("completed", "investigate the sums")


def test_a_session_is_picked_and_a_hangup_gives_the_terminal_back(still, project, env):
    """It says how to go on. A terminal of sixteen colours has a theme of its own in them."""
    scene = Scene(still.store, project).begin("look at the sums").wave("observing").ask()
    still.store.close()
    env = {**env, "TERM": "linux", "COLORTERM": ""}
    with Terminal("-r", cwd=project, env=env) as terminal:
        terminal.until("Sessions")
        at = terminal.until(scene.session_id)
        terminal.press(b"\r")
        at = terminal.until("CONTEXT", after=at)
        terminal.until("risk low", after=at)
        terminal.send(signal.SIGHUP)
        assert terminal.ends() == 130
    assert terminal.wrote.rindex(b"\x1b[?1049l") > terminal.wrote.rindex(b"\x1b[?1049h")
    assert b"cockpit -r s-" in terminal.wrote
    codes = read_colours(terminal.wrote)
    grounds = {int(code) for code in codes if 40 <= int(code) <= 49 or 100 <= int(code) <= 107}
    assert grounds <= {40, 44, 47, 49}  # black and blue: every text of the theme stands out on them
    on_grey = [found.split(b";") for found in SGR.findall(terminal.wrote) if b"47" in found]
    assert all(b"30" in found for found in on_grey)  # the cursor
    texts = {int(code) for code in codes if 30 <= int(code) <= 39 or 90 <= int(code) <= 97}
    assert texts <= {30, 37, 39, 90, 91, 92, 93, 95, 96, 97}
    assert not codes & {b"38", b"48"}  # no palette, no true colour
