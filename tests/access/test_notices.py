"""Notices: each channel once, masked, with nothing in them that acts, to the user's own addresses alone."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cockpit.access.notices import (
    BELL,
    Notice,
    Notifier,
    NotifySettings,
    has_desktop,
    proposal_notice,
    terminal_note,
)
from cockpit.config.load_settings import ConfigInvalid, load_settings
from cockpit.core.state_folder import VARIABLE

pytestmark = pytest.mark.slow

# Put together here so that no file of this repository holds anything that looks like a secret.
CANARY = "ghp_" + "A1b2C3d4E5" * 4
HOSTILE = f"<b>push</b> & \x1b]52;c;eA==\x07 \x9b31m\u202e\n{CANARY}"


def request(key: str) -> Notice:
    return proposal_notice(
        key,
        project="api",
        branch="main",
        proposal_id="p-1",
        kind="action",
        risk="high",
        title=HOSTILE,
        agent="claude",
        session_id="s-1",
    )


@dataclass
class Receiver:
    """What a server of the user's got."""

    address: str = ""
    status: int = 200
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def receiving(status: int = 200):
    receiver = Receiver(status=status)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length")
        )
        receiver.heads.append(head)
        receiver.bodies.append(await reader.readexactly(length))
        place = "Location: http://127.0.0.1:1/\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{place}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    receiver.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=hush"
    async with server:
        yield receiver


@pytest.fixture(autouse=True)
def user_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "user-state"))
    return tmp_path / "user-state"


async def test_each_request_is_announced_once_whoever_sees_it_first(tmp_path):
    problems: list[str] = []
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/shown\n')
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "DISPLAY": ":0"}
    async with receiving() as hook, receiving() as topic:
        settings = NotifySettings(desktop=True, webhook=hook.address, ntfy=topic.address)
        screens = [Notifier(settings, problems.append, environment=environment) for _ in range(3)]
        for screen in (*screens, *screens):
            screen.notify(request("api-1/p-1"))
        for screen in screens:
            await screen.close()
        screens[0].notify(request("api-1/p-2"))
        await screens[0].close()
    assert problems == []
    assert len(hook.bodies) == len(topic.bodies) == 2
    body = json.loads(hook.bodies[0])
    assert (body["event"], body["project"], body["risk"]) == ("proposal.waiting", "api", "high")
    assert topic.heads[0].startswith("POST /hook?token=hush HTTP/1.1\r\n")
    assert "priority: high" in topic.heads[0].lower()
    shown = (tmp_path / "shown").read_text()
    assert "--urgency=critical" in shown
    assert "&lt;b&gt;push&lt;/b&gt; &amp; " in shown, "markup stays text"
    for sent in (*hook.bodies, *topic.bodies, shown.encode()):
        assert CANARY.encode() not in sent
        assert b"\x1b" not in sent
        assert b"api" in sent


async def test_a_terminal_is_rung_and_shown_what_is_told(tmp_path):
    """Each time: a chain that ends or waits has no other screen. A desktop that fails is reported."""
    rung: list[str] = []
    problems: list[str] = []
    program = tmp_path / "notify-send"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    environment = {"PATH": str(tmp_path), "DISPLAY": ":0", "TERM_PROGRAM": "iTerm.app"}
    assert has_desktop(environment)
    assert not has_desktop({"PATH": str(tmp_path)}) and not has_desktop({"DISPLAY": ":0"})
    settings = NotifySettings(desktop=True)
    notifier = Notifier(settings, problems.append, ring=rung.append, environment=environment)
    for _ in range(2):
        await notifier.send(Notice("all tasks are done", "ch-1 completed"))
    note = "\x1b]9;cockpit: ch-1 completed: all tasks are done\x07"
    assert rung == [note + BELL] * 2
    assert problems == ["The desktop was not notified: it did not answer."]


@pytest.mark.parametrize(
    ("environment", "note"),
    [
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;cockpit: a;b waits\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;cockpit;a,b waits\x07"),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0", "KITTY_WINDOW_ID": "1"},
            "\x1bPtmux;\x1b\x1b]9;cockpit: a;b waits\x07\x1b\\",
        ),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0", "TERM_PROGRAM": "tmux"}, ""),
        ({"TERM": "xterm-256color"}, ""),
        ({}, ""),
    ],
)
def test_a_note_of_the_terminal(environment, note):
    assert terminal_note("a;b waits", environment) == note


def test_foreign_text_ends_no_sequence():
    for environment in ({"TERM": "foot"}, {"TERM": "xterm-kitty"}):
        sequence = terminal_note(HOSTILE + "z" * 500, environment)
        assert sequence.startswith("\x1b]") and sequence.endswith("\x07")
        body = sequence[2:-1]
        assert body.isprintable() and "\u202e" not in body
        assert len(body) < 330


def test_foreign_text_ends_no_passage_through_tmux():
    hostile = "x\x1b\\\x1b]52;c;aGk=\x07y"
    sequence = terminal_note(hostile, {"TMUX": "1", "WEZTERM_PANE": "0"})
    assert sequence.startswith("\x1bPtmux;\x1b\x1b]9;")
    assert sequence.endswith("\x07\x1b\\")
    assert sequence[len("\x1bPtmux;\x1b\x1b]9;") : -3].isprintable()


@pytest.mark.parametrize(
    ("status", "words"), [(500, "answered 500"), (302, "answered 302"), (0, "was not reached")]
)
async def test_a_failure_is_told_once_a_minute_and_names_no_address(status, words):
    problems: list[str] = []
    async with receiving(status) as hook:
        address = hook.address if status else "http://127.0.0.1:1/hush"
        notifier = Notifier(NotifySettings(webhook=address), problems.append)
        for number in range(3):
            notifier.notify(request(f"p-{number}"))
        await notifier.close()
    (problem,) = problems
    assert problem.startswith("[notify] webhook")
    assert words in problem
    assert "hush" not in problem
    assert len(hook.bodies) == (3 if status else 0), (
        "no redirect is followed, no request sent again"
    )


def test_no_project_chooses_where_requests_are_sent(tmp_path):
    for name in ("mine", "project"):
        (tmp_path / name).mkdir()
    env = {"COCKPIT_CONFIG_DIR": str(tmp_path / "mine")}
    text = '[notify]\nto = ["https://example.org/hook", "ntfy:https://example.org/topic"]\n'
    (tmp_path / "mine" / "config.toml").write_text(text)
    settings = load_settings(tmp_path / "project", env=env)
    assert settings.notify == NotifySettings(
        webhook="https://example.org/hook", ntfy="https://example.org/topic"
    )
    assert not settings.bell
    (tmp_path / "project" / "config.toml").write_text(text.replace("example", "other"))
    with pytest.raises(ConfigInvalid, match="a repository may not decide it"):
        load_settings(tmp_path / "project", env=env)
