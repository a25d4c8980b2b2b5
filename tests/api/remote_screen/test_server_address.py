"""Addresses, tokens and authorities: what is used, and what is refused before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.api.remote_screen.remote_screen import describe_terminal
from cockpit.api.remote_screen.server_address import (
    PORT,
    Server,
    WrongServer,
    load_trust,
    read_address,
    read_token,
)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("https://build.example:9000", Server("build.example", 9000, True)),
        ("https://build.example/", Server("build.example", PORT, True)),
        ("http://127.0.0.1:8788", Server("127.0.0.1", 8788)),
        ("http://localhost", Server("localhost", PORT)),
        ("http://[::1]:80", Server("::1", 80)),
        ("unix:/run/cockpit.sock", Server(path="/run/cockpit.sock")),
    ],
)
def test_addresses(text: str, server: Server) -> None:
    assert read_address(text) == server


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://build.example", "not encrypted"),
        ("http://192.0.2.7:8788", "not encrypted"),
        ("http://127.0.0.1.evil.example", "not encrypted"),
        ("https://you:secret@build.example", "without a path or a login"),
        ("https://build.example/open/abc", "without a path or a login"),
        ("https://build.example?token=x", "without a path or a login"),
        ("build.example:8788", "Write the server as"),
        ("ftp://build.example", "Write the server as"),
        ("https://", "Write the server as"),
        ("https://build.example:port", "cannot be read"),
        ("unix:", "needs the path"),
    ],
)
def test_addresses_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(WrongServer, match=words):
        read_address(text)


def test_plain_http_to_another_machine_is_a_choice() -> None:
    assert read_address("http://build.example", allows_plain=True).is_encrypted is False


def test_a_token_comes_from_a_file_of_yours_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("ckp_abc\n")
    file.chmod(0o600)
    assert read_token(file, {"COCKPIT_TOKEN": "other"}) == "ckp_abc"
    assert read_token(None, {"COCKPIT_TOKEN": " other\n"}) == "other"
    for mode in (0o640, 0o604, 0o666):
        file.chmod(mode)
        with pytest.raises(WrongServer, match="chmod 600"):
            read_token(file, {})
    with pytest.raises(WrongServer, match="cannot be read"):
        read_token(tmp_path / "none", {})
    with pytest.raises(WrongServer, match="not a file of yours"):
        read_token(tmp_path, {})
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(WrongServer, match="not a file of yours"):
        read_token(tmp_path / "pipe", {})
    with pytest.raises(WrongServer, match=r"screen\.open"):
        read_token(None, {})
    with pytest.raises(WrongServer, match="not one of cockpit's"):
        read_token(None, {"COCKPIT_TOKEN": "a\r\nHost: b"})


def test_an_authority_is_for_https_alone(tmp_path: Path) -> None:
    with pytest.raises(WrongServer, match="https"):
        load_trust(Server("127.0.0.1", 1), tmp_path / "ca.pem")
    assert load_trust(Server("127.0.0.1", 1), None) is None


def test_what_the_server_is_told_of_the_terminal() -> None:
    told = describe_terminal(
        {"TERM": "xterm-kitty", "COLORTERM": "truecolor", "TERM_PROGRAM": "a b\n", "NO_COLOR": "1"},
        (80, 24),
        "cockpit-light",
    )
    assert (told.term, told.colorterm, told.program) == ("xterm-kitty", "truecolor", "")
    assert told.no_color and told.theme == "cockpit-light" and told.size == (80, 24)
    assert describe_terminal({}, (80, 24), "").term == "xterm"
