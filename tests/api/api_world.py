"""``cockpit serve`` as a process of its own, and the clients that hold tokens."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import run_cockpit
from chains.new_chain import create_chain_row
from learn.learn_world import World, fact
from state_for_tests import kept_variables
from store.store_world import begin

from cockpit.access import capability_tokens
from cockpit.access.listen_address import Address
from cockpit.access.principals import PERSON
from cockpit.backlog import service
from cockpit.core.project_paths import locate_project
from cockpit.loop.decisions.profile_change_expiry import roll_back_profile
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.context import profiles
from cockpit.store.context.profile_changes import ChangeProposal, select_changes
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import events, proposals, sessions

COMMAND = run_cockpit.PROGRAM
PATIENCE_S = 60
ADDRESS = Address("127.0.0.1", 1, ("127.0.0.1", "localhost", "[::1]"))
READ, PROPOSE = "orientation.read", "orientation.propose"
APPROVE, ADMIN = "orientation.approve", "orientation.admin"
API = "/api/orientation"


@dataclass(frozen=True)
class Project:
    """A project with a wave that was judged, and a store that is opened beside the server's."""

    root: Path
    store: Store

    @property
    def env(self) -> dict[str, str]:
        kept = kept_variables()
        home = self.root.parent / "home"
        home.mkdir(exist_ok=True)
        return {**kept, "HOME": str(home), "COCKPIT_CONFIG_DIR": str(home / "config")}

    def issued(
        self, namespace: str, *scopes: str, expires_s: float | None = None
    ) -> tuple[str, str]:
        """The id of a new token, and its secret."""
        made, secret = self.store.write_now(
            lambda tx: capability_tokens.issue(
                tx,
                namespace=namespace,
                scopes=frozenset(scopes),
                by=PERSON,
                expires_s=expires_s,
            )
        )
        return made.cap_id, secret

    def bearer(self, namespace: str, *scopes: str) -> dict[str, str]:
        """The header of a new token."""
        return {"Authorization": f"Bearer {self.issued(namespace, *scopes)[1]}"}

    def change(self, **fields: Any) -> dict[str, Any]:
        """A change of weights from the current version, with ``fields`` on top."""
        name = profiles.initial_profile(150_000).profile_id
        current = self.store.read_now(lambda c: profiles.load_current(c, name))
        return {
            "base_profile_version": current.version,
            "effective_waves": 3,
            "rules": [{"rule_id": "search", "priority_weight": 2.5}],
            "reason": "a storm",
        } | fields

    def changes(self) -> list[ChangeProposal]:
        """What was proposed, the newest first."""
        return self.store.read_now(select_changes)

    def recorded(self, action: str) -> list[tuple[str, str]]:
        """The actors and error codes of the journal's rows of that action; its chain must verify."""
        assert not self.store.read_now(verify_chain.verify).broken
        return self.store.read_now(
            lambda connection: connection.execute(
                "SELECT actor, error_code FROM journal WHERE action=? ORDER BY seq", (action,)
            ).fetchall()
        )


@contextmanager
def project(folder: Path) -> Iterator[Project]:
    """A new project."""
    root = folder / "project"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    place = locate_project(root)
    place.prepare()
    with Store.open(place.database) as store:
        yield Project(root, store)


def back(at: Project) -> None:
    """End the adaptation that runs: the next change may begin."""
    name = profiles.initial_profile(150_000).profile_id
    at.store.write_now(lambda tx: roll_back_profile(tx, RuntimeSettings(), name, PERSON))


def judged_wave(store: Store) -> tuple[str, str]:
    """A wave that knew one file and has ended, and one that has only begun."""
    world = World(store)
    wave = world.begin([fact("file", "shapes.py")])
    world.decide(wave)
    world.end(wave)
    return wave.wave_id, world.begin().wave_id


@contextmanager
def served(project: Project, *words: str, **variables: str) -> Iterator[str]:
    """A server on a free port: its address."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *words],
        cwd=project.root,
        env={**project.env, **variables},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "Listening" in line)
        yield told.split()[2].rstrip(";.")
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in rest, rest


def issue(store: Store, namespace: str, *scopes: str) -> dict[str, str]:
    """The header of a new token of a store."""
    _, secret = store.write_now(
        lambda tx: capability_tokens.issue(
            tx, namespace=namespace, scopes=frozenset(scopes), by=PERSON
        )
    )
    return {"Authorization": f"Bearer {secret}"}


def api_client(app: Any) -> httpx2.AsyncClient:
    """A client of an application in memory, at the address 127.0.0.1:1."""
    transport = httpx2.ASGITransport(app, client=("127.0.0.1", 2))
    return httpx2.AsyncClient(base_url="http://127.0.0.1:1", transport=transport)


def ask(tx: Tx, proposal_id: str, **fields: Any) -> proposals.Proposal:
    """A proposal of a session that waits: a command of low risk."""
    session = begin_session(tx)
    body = {"type": "run", "key": proposal_id, "arguments": {"command": "make test"}}
    return proposals.create(
        tx,
        proposal_id=proposal_id,
        session_id=session.session_id,
        wave_id="w-1",
        **{"kind": "action", "title": "run make test", "body": body, "risk": "low", **fields},
    )


def begin_session(tx: Tx) -> sessions.Session:
    """A session that no process runs."""
    profiles.ensure_default(tx, 150_000)
    return sessions.set_status(tx, begin(tx, interactive=True), "waiting")


def fill_store(store: Store) -> dict[str, str]:
    """One row of each kind: their ids by the names of the paths' parameters."""

    def fill(tx: Tx) -> dict[str, str]:
        proposal = ask(tx, "p-waits")
        task = service.create_task(tx, "a task", by="person")
        chain = create_chain_row(tx, approve="ask")
        event_id = events.ingest(
            tx, source="ns:ci:jobs", source_event_id="1", event_type="job", payload={"n": 1}
        )
        token, _ = capability_tokens.issue(tx, namespace="ci", scopes=frozenset({READ}), by=PERSON)
        return {
            "collection": "proposals",
            "name": proposal.proposal_id,
            "proposal_id": proposal.proposal_id,
            "session_id": proposal.session_id,
            "task_id": task.task_id,
            "chain_id": chain.chain_id,
            "event_id": event_id,
            "cap_id": token.cap_id,
            "wave_id": "w-none",
        }

    return store.write_now(fill)


def told(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer, which must be of that status and code."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"]) == (status, code), body
    assert body["type"].endswith(f":{code}")
    assert body["title"]
    assert body["detail"]
    return body
