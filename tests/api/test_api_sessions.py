"""A session over HTTP: started, watched, decided and spoken to by programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from api_world import PATIENCE_S, Project, project, served, told

from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow

SCENARIO = """
[[turn]]
text = "I need a file before I judge this."
[[turn.call]]
name = "request_context"
[turn.call.arguments]
purpose = "see the shapes"
question = "what is there?"
scope = ["file:shapes.py"]
escalation = ""
[[turn]]
when = { called = ["request_context"] }
text = "I write my notes down."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { called = ["write_file"] }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Notes written." }
"""


class Watcher:
    """The rows of the journal as a program sees them, each once."""

    def __init__(self, http: httpx2.Client, bearer: dict[str, str]) -> None:
        self._http = http
        self._bearer = bearer
        self.seen = 0

    def wait(self, action: str, session_id: str) -> dict[str, Any]:
        """The next row of that event type."""
        headers = {**self._bearer, "Last-Event-ID": str(self.seen)}
        where = f"/api/journal?session_id={session_id}"
        with self._http.stream("GET", where, headers=headers, timeout=PATIENCE_S) as answer:
            until = time.monotonic() + PATIENCE_S
            for line in answer.iter_lines():
                assert time.monotonic() < until, f"no {action}"
                if not line.startswith("data: "):
                    continue
                row: dict[str, Any] = json.loads(line[6:])
                self.seen = row["seq"]
                if row["action"] == action:
                    return row
        raise AssertionError(f"the stream ended without {action}")


@contextmanager
def working(made: Project) -> Iterator[httpx2.Client]:
    script = made.root.parent / "scenario.toml"
    script.write_text(SCENARIO, encoding="utf-8")
    (made.root / "shapes.py").write_text("def area(): ...\n", encoding="utf-8")
    path = made.root.parent / "s"
    with (
        served(made, "--socket", str(path), COCKPIT_MODEL=f"script:{script}") as address,
        httpx2.HTTPTransport(uds=str(path), verify=False) as transport,
        httpx2.Client(
            base_url="http://localhost", transport=transport, timeout=PATIENCE_S
        ) as client,
    ):
        assert address == f"unix:{path}"
        yield client
    assert not os.path.lexists(path)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Project]:
    with project(tmp_path) as created:
        yield created


def test_a_session_is_run_by_programs_from_its_start_to_its_end(made: Project) -> None:
    with working(made) as http:
        bot = made.bearer("bot", "sessions.run", "orientation.read")
        phone = made.bearer("phone", "proposals.decide", "orientation.read")
        watcher = Watcher(http, made.bearer("watch", "audit.read"))
        wide = {"text": "note the shapes", "policy": "all"}
        told(http.post("/api/sessions", json=wide, headers=bot), 403, "not_allowed")
        new = {"text": "note the shapes", "task_type": "feature", "max_waves": 9}
        keyed = {**bot, "Idempotency-Key": "issue-17"}
        begun = http.post("/api/sessions", json=new, headers=keyed)
        assert begun.status_code == 201, begun.text
        session_id = begun.json()["session_id"]
        again = http.post("/api/sessions", json=new, headers=keyed)
        assert (again.json()["session_id"], again.status_code) == (session_id, 201)
        assert begun.json()["policy"] == "ask"

        def next_proposal() -> dict[str, Any]:
            row = watcher.wait("proposal.created", session_id)
            where = f"/api/proposals/{row['detail']['proposal_id']}"
            body: dict[str, Any] = http.get(where, headers=phone).json()
            return body

        def approve(proposal: dict[str, Any]) -> None:
            where = f"/api/proposals/{proposal['proposal_id']}/decide"
            carried = {"decision": "approve", "shown_digest": proposal["shown_digest"]}
            done = http.post(where, json=carried, headers=phone)
            assert done.status_code == 200, done.text

        context = next_proposal()
        assert (context["kind"], context["status"]) == ("context", "pending")
        approve(context)
        action = next_proposal()
        where = f"/api/proposals/{action['proposal_id']}/decide"
        no_question = {"decision": "answer", "shown_digest": "x", "answers": []}
        told(http.post(where, json=no_question, headers=phone), 409, "illegal_transition")
        approve(action)
        watcher.wait("session.completed", session_id)
        assert (made.root / "notes.md").read_text(encoding="utf-8") == "# Notes\n"
        shown = http.get(f"/api/sessions/{session_id}", headers=bot).json()
        assert (shown["status"], shown["result"]["summary"]) == ("completed", "Notes written.")
        # A second one waits, and a message reaches it.
        other = http.post("/api/sessions", json=new, headers=bot).json()["session_id"]
        watcher.wait("proposal.created", other)
        listed = http.get("/api/sessions?limit=1", headers=bot).json()
        assert [(row["is_running_here"], row["state"]) for row in listed["items"]] == [
            (True, "waiting")
        ]
        sent = http.post(f"/api/sessions/{other}/messages", json={"text": "go on"}, headers=bot)
        assert sent.status_code == 202, sent.text
        unknown = http.post("/api/sessions", json={**new, "model": "none:x"}, headers=bot)
        told(unknown, 422, "model_unusable")
        # The server ends while the session runs: it is stopped, and nothing runs on.
    status = made.store.read_now(lambda connection: sessions.load(connection, other)).status
    assert status != "running"
