"""A service that answers 200 with a document in place of a stream: its reason reaches the user."""

from __future__ import annotations

import httpx2
import pytest

from cockpit.decide.provider_errors import NoStream, refuse_document


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("application/json", '{"error": {"message": "upstream is overloaded"}}', "overloaded"),
        ("application/json", '{"choices": []}', "choices"),
        ("text/html; charset=utf-8", "<html><h1>Bad gateway</h1></html>", "^Bad gateway$"),
        ("application/json", "", "empty document"),
    ],
)
async def test_a_document_is_refused_with_its_reason(kind: str, body: str, reason: str) -> None:
    answer = httpx2.Response(200, headers={"content-type": kind}, content=body.encode())
    with pytest.raises(NoStream, match=reason):
        await refuse_document(answer)


async def test_a_stream_and_a_failure_pass() -> None:
    for status, kind in ((200, "text/event-stream"), (200, ""), (502, "application/json")):
        await refuse_document(httpx2.Response(status, headers={"content-type": kind}))
