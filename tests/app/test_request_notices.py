"""Requests announced outside the terminal: once each, masked, to the user's own addresses alone."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cockpit.app.all_projects.request_notices import Notifier, Request
from cockpit.config.load_settings import ConfigInvalid, NotifySettings, load_settings
from cockpit.core.state_folder import VARIABLE

pytestmark = pytest.mark.slow

# Put together here so that no file of this repository holds anything that looks like a secret.
CANARY = "ghp_" + "A1b2C3d4E5" * 4
REQUEST = Request(
    "api", "main", "p-1", "action", "high", f"push \x1b]52;c;eA==\x07 {CANARY}", "claude", "s-1"
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
            screen.notify("api-1/p-1", REQUEST)
        for screen in screens:
            await screen.close()
        screens[0].notify("api-1/p-2", REQUEST)
        await screens[0].close()
    assert problems == []
    assert len(hook.bodies) == len(topic.bodies) == 2
    body = json.loads(hook.bodies[0])
    assert (body["event"], body["project"], body["risk"]) == ("proposal.waiting", "api", "high")
    assert topic.heads[0].startswith("POST /hook?token=hush HTTP/1.1\r\n")
    assert "priority: high" in topic.heads[0].lower()
    shown = (tmp_path / "shown").read_text()
    assert "--urgency=critical" in shown
    for sent in (*hook.bodies, *topic.bodies, shown.encode()):
        assert CANARY.encode() not in sent
        assert b"\x1b" not in sent
        assert b"api" in sent


@pytest.mark.parametrize(
    ("status", "words"), [(500, "answered 500"), (302, "answered 302"), (0, "was not reached")]
)
async def test_a_failure_is_told_once_a_minute_and_names_no_address(status, words):
    problems: list[str] = []
    async with receiving(status) as hook:
        address = hook.address if status else "http://127.0.0.1:1/hush"
        notifier = Notifier(NotifySettings(webhook=address), problems.append)
        for number in range(3):
            notifier.notify(f"p-{number}", REQUEST)
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
    text = '[notify]\nwebhook = "https://example.org/hook"\n'
    (tmp_path / "mine" / "config.toml").write_text(text)
    settings = load_settings(tmp_path / "project", env=env)
    assert settings.notify.webhook == "https://example.org/hook"
    (tmp_path / "project" / "config.toml").write_text(text.replace("example", "other"))
    with pytest.raises(ConfigInvalid, match="not allowed here"):
        load_settings(tmp_path / "project", env=env)
