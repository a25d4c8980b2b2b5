"""Terminals of few colours, and none: a theme of their own in the colours that they have."""

from __future__ import annotations

import re

import pytest
from app_terminal import Terminal

pytestmark = pytest.mark.slow

_SGR = re.compile(rb"\x1b\[([0-9;]*)m")


@pytest.fixture
def env(tmp_path):
    return {
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
        "COCKPIT_MODEL": "offline",
        "COLORTERM": "",
    }


def test_sixteen_colours_have_a_theme_of_their_own(project, env):
    with Terminal(cwd=project, env={**env, "TERM": "linux"}) as terminal:
        terminal.until("ype a task:")
        terminal.press(b"\x04")
        assert terminal.ends() == 0
    codes = {code for found in _SGR.findall(terminal.wrote) for code in found.split(b";") if code}
    grounds = {int(code) for code in codes if 40 <= int(code) <= 49 or 100 <= int(code) <= 107}
    assert grounds <= {40, 44, 47, 49}  # black and blue: every text of the theme stands out on them
    on_grey = [found.split(b";") for found in _SGR.findall(terminal.wrote) if b"47" in found]
    assert all(b"30" in found for found in on_grey)  # the cursor
    texts = {int(code) for code in codes if 30 <= int(code) <= 39 or 90 <= int(code) <= 97}
    assert texts <= {30, 37, 39, 90, 91, 92, 93, 95, 96, 97}
    assert not codes & {b"38", b"48"}  # no palette, no true colour


def test_no_color_draws_none(project, env):
    with Terminal(cwd=project, env={**env, "NO_COLOR": "1"}) as terminal:
        terminal.until("ype a task:")
        terminal.press(b"\x04")
        assert terminal.ends() == 0
    codes = {
        int(code) for found in _SGR.findall(terminal.wrote) for code in found.split(b";") if code
    }
    assert not codes & {*range(30, 38), *range(40, 48), *range(90, 108)}
