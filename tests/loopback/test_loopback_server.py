"""The loopback server as a plain HTTP client sees it, and from a thread."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from loopback.protocols import PROTOCOLS
from loopback.replies import Refuse, Say, Use
from loopback.server import LoopbackThread


def post(url: str, body: dict[str, object]) -> tuple[int, str]:
    request = urllib.request.Request(url, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("path", sorted(PROTOCOLS))
def test_replies_are_used_up_in_order_and_requests_recorded(path: str) -> None:
    say = Say("two words", calls=(Use("note", {"text": "x"}),))
    with LoopbackThread([Refuse(429, "slow", retry_after="1"), say]) as server:
        status, text = post(server.url + path, {"model": "m", "n": 1})
        assert (status, "slow" in text) == (429, True)
        status, text = post(server.url + path, {"model": "m", "n": 2})
        assert status == 200
        assert "two" in text and " words" in text and "note" in text
        status, text = post(server.url + path, {"model": "m", "n": 3})
        assert status == 400
        assert [request.body["n"] for request in server.requests] == [1, 2, 3]
        assert [request.body["n"] for request in server.unexpected] == [3]


def test_a_reply_may_depend_on_the_request() -> None:
    with LoopbackThread([lambda request: Say(f"you sent {request.body['n']}")]) as server:
        _, text = post(server.url + "/v1/chat/completions", {"model": "m", "n": 42})
    assert "42" in text


def test_a_path_that_no_provider_has_is_not_found() -> None:
    with LoopbackThread([Say("x")]) as server:
        assert post(server.url + "/v2/else", {})[0] == 404
