"""Who opens a screen on a terminal elsewhere: holders of a token for it, and no agent of this machine."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from cockpit.access import user_presence
from cockpit.access.capability_tokens import TokenRefused, ensure_root, issue
from cockpit.access.http.guarded_protocol import PEER
from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SCREEN_OPEN, NotAllowed
from cockpit.api.web.terminal_callers import TerminalCallers
from cockpit.store.db.database import Store
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.refused_requests import RefusedRequests


def request(secret: str, **scope: object) -> HTTPConnection:
    return HTTPConnection(
        {
            "type": "websocket",
            "path": "/connect",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {secret}".encode())],
            **scope,
        }
    )


def authorise(store: Store, connection: HTTPConnection) -> str:
    callers = TerminalCallers(store, RefusedRequests(store, "web"))
    return asyncio.run(callers.authorise(connection)).namespace


def test_the_root_token_opens_no_screen_and_cannot_make_one_that_does(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        file = store.write_now(lambda tx: ensure_root(tx, tmp_path))
        assert file is not None
        with pytest.raises(NotAllowed, match=r"screen\.open"):
            authorise(store, request(file.read_text().strip()))
        rows = store.read_now(
            lambda reader: reader.execute(
                "SELECT count(*) FROM journal WHERE action=?", (str(Action.ACCESS_REFUSED),)
            ).fetchone()
        )
        assert rows == (1,)


def test_a_user_issues_the_scope_to_a_device(tmp_path: Path) -> None:
    with Store.open(tmp_path / "cockpit.db") as store:
        _, secret = store.write_now(
            lambda tx: issue(tx, namespace="laptop", scopes=frozenset({SCREEN_OPEN}), by=PERSON)
        )
        assert authorise(store, request(secret)) == "laptop"
        with pytest.raises(TokenRefused):
            authorise(store, request("ckp_guess"))


def test_an_agent_of_this_machine_is_refused_with_any_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        user_presence,
        "find_agent_above",
        lambda pid: "process 7 is an agent (claude)" if pid == os.getpid() else "",
    )
    with (
        Store.open(tmp_path / "cockpit.db") as store,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
    ):
        _, secret = store.write_now(
            lambda tx: issue(tx, namespace="laptop", scopes=frozenset({SCREEN_OPEN}), by=PERSON)
        )
        with pytest.raises(NotAllowed, match="claude"):
            authorise(store, request(secret, state={PEER: os.getpid()}))
        ends = {"client": near.getsockname(), "server": listener.getsockname()}
        with pytest.raises(NotAllowed, match="claude"):
            authorise(store, request(secret, **ends))
