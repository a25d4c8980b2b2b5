"""Calling a person: the terminal's bell and note, and the desktop's program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cockpit.chains.notify import Notice, desktop_command, notify, terminal_sequence

HOSTILE = Notice("A\x07\x1b]0;title\x07", "B\x1b\\ \u202e\n<b>C</b> & --urgency=x", urgent=True)


def test_nothing_ends_the_note_but_its_end() -> None:
    text = terminal_sequence(HOSTILE)
    assert text.startswith("\x1b]9;A")
    assert text.endswith("\x07\x07")
    inside = text[len("\x1b]9;") : -2]
    assert not any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in inside)
    assert "\u202e" not in inside


def test_the_desktops_program_is_given_words_and_no_markup() -> None:
    argv = desktop_command(Notice("--help", "<b>C</b> & more"))
    assert argv == (
        "notify-send",
        "--app-name=cockpit",
        "--urgency=normal",
        "--",
        "--help",
        "&lt;b&gt;C&lt;/b&gt; &amp; more",
    )


def desktop(folder: Path, code: int = 0) -> dict[str, str]:
    """A desktop whose program writes down what it was given."""
    program = folder / "notify-send"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"open({str(folder / 'given')!r}, 'w').write(json.dumps(sys.argv[1:]))\nsys.exit({code})\n"
    )
    program.chmod(0o755)
    return {"PATH": str(folder), "DISPLAY": ":9"}


async def test_terminal_and_desktop_are_both_called(tmp_path: Path) -> None:
    wrote: list[str] = []
    called = await notify(
        HOSTILE,
        "terminal",
        terminal=wrote.append,
        environment=desktop(tmp_path),
        cwd=tmp_path,
    )
    assert called
    assert wrote == [terminal_sequence(HOSTILE)]
    given = json.loads((tmp_path / "given").read_text())
    assert given == list(desktop_command(HOSTILE)[1:])
    assert "--urgency=critical" in given[:2]


@pytest.mark.parametrize("code", [0, 1])
async def test_without_a_terminal_the_desktop_decides_whether_anybody_was_called(
    tmp_path: Path, code: int
) -> None:
    environment = desktop(tmp_path, code)
    notice = Notice("T", "w")
    called = await notify(notice, "terminal", terminal=None, environment=environment, cwd=tmp_path)
    assert called is (code == 0)


async def test_nobody_is_called_where_nobody_is_or_wants_to_be(tmp_path: Path) -> None:
    environment = desktop(tmp_path)
    quiet = {"PATH": environment["PATH"]}
    notice = Notice("T", "w")
    assert not await notify(notice, "terminal", terminal=None, environment=quiet, cwd=tmp_path)
    wrote: list[str] = []
    assert not await notify(
        notice, "none", terminal=wrote.append, environment=environment, cwd=tmp_path
    )
    assert wrote == []
    assert not (tmp_path / "given").exists()
