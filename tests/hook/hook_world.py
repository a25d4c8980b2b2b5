"""A project with tasks, and agents whose hooks are called as the agents call them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import run_cockpit
from state_for_tests import kept_variables

from cockpit.backlog import service
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.hook.ingest import ingest_all
from cockpit.store.backlog import tasks
from cockpit.store.db.database import Store
from cockpit.store.hooks import pending_events

PAYLOADS = Path(__file__).resolve().parents[1] / "data" / "hooks"
PATIENCE_S = 90
TAKEN_MS = 40_000
"""For how long there seems to be a process that ingests."""
SESSIONS = {
    "claude": "0b7e2c1a-5f0d-4a53-9a59-6f1f9c2f1a01",
    "codex": "01985c54-9d7a-7e02-8f0b-6c2f6a3e9b10",
}


def recorded(agent: str) -> list[str]:
    """The names of the payloads that were written after that agent's documentation."""
    return sorted(path.stem for path in (PAYLOADS / agent).glob("*.json"))


@dataclass
class Project:
    """A repository, and the environment that an agent runs its hooks in."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)
    policy: str = ""
    """What hooks let pass, as for a run of cockpit's."""

    @property
    def place(self) -> ProjectPaths:
        return locate_project(self.root)

    @property
    def env(self) -> dict[str, str]:
        kept = kept_variables()
        home = self.root.parent / "home"
        home.mkdir(exist_ok=True)
        config = {"HOME": str(home), "COCKPIT_CONFIG_DIR": str(home / "cockpit")}
        return {**kept, **config, "PYTHONDONTWRITEBYTECODE": "1", **self.extra}

    def payload(self, agent: str, name: str, **changes: Any) -> bytes:
        """A recorded payload as it would come here."""
        text = (PAYLOADS / agent / f"{name}.json").read_text(encoding="utf-8")
        body = json.loads(text.replace("{root}", str(self.root)))
        return json.dumps({**body, **changes}).encode()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a hook call from nothing; the caller feeds and ends it."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "cockpit", "hook", *words],
            cwd=self.root,
            env=self.env,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )

    def call(self, payload: bytes, *words: str) -> Any:
        """What the hook answers, as JSON; None when it says nothing. It must end with 0, silently."""
        policy = ("--policy", self.policy) if self.policy else ()
        done = run_cockpit.run_bytes(
            ("hook", *words, *policy),
            cwd=self.root,
            env=self.env,
            stdin=payload,
            patience_s=PATIENCE_S,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout else None

    def told(self, agent: str, name: str, **changes: Any) -> Any:
        """The answer to a recorded payload."""
        return self.call(self.payload(agent, name, **changes), "--agent", agent)

    def cockpit(
        self, *words: str, expect: int = 0, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run ``cockpit`` as the person."""
        done = run_cockpit.run(
            words, cwd=self.root, env=self.env, stdin=stdin, patience_s=PATIENCE_S
        )
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def begin(self, *titles: str, started: int = 1) -> None:
        """Make the project's tasks T-1 on, of which the first ``started`` are in progress.

        No process behind the hooks ingests what they tell: see :meth:`absorb` and :meth:`let_go`.
        """
        self.place.prepare()
        with Store.open(self.place.database) as store:
            now_ms = int(store.clock.now().timestamp() * 1000)
            store.write_now(
                lambda tx: pending_events.acquire_lease(tx.connection, now_ms + TAKEN_MS)
            )
            for number, title in enumerate(titles, start=1):
                store.write_now(
                    lambda tx, title=title: service.create_task(tx, title=title, by="person")
                )
                if number <= started:
                    store.write_now(
                        lambda tx, task=f"T-{number}": service.set_status(
                            tx, task, "in_progress", by="person"
                        )
                    )

    def let_go(self) -> None:
        """Let the next hook start the process that ingests."""
        with Store.open(self.place.database) as store:
            store.write_now(lambda tx: pending_events.release_lease(tx.connection))

    def absorb(self) -> int:
        """Absorb what waits, as the process behind the hooks does; it may have been faster."""
        with Store.open(self.place.database) as store:
            return ingest_all(store, self.place.state)

    def wip(self, task_id: str = "T-1") -> dict[str, Any]:
        """The task's work in progress, everything told so far in it."""
        self.absorb()
        with Store.open(self.place.database) as store:
            return store.read_now(lambda connection: tasks.load(connection, task_id).wip) or {}

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What the database holds."""
        connection = sqlite3.connect(self.place.database)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def journal(self, prefix: str) -> list[dict[str, Any]]:
        """The details of the rows whose action begins so, in order."""
        self.absorb()
        found = self.rows(
            "SELECT action, actor, detail_json FROM journal WHERE action LIKE ? ORDER BY seq",
            f"{prefix}%",
        )
        return [{"action": one, "actor": by, **json.loads(told)} for one, by, told in found]

    def log(self) -> list[str]:
        """The lines of the hooks' log."""
        path = self.place.state / "hook.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def spooled(self) -> list[str]:
        """The names of the files in which events wait."""
        folder = self.place.state / "hook-spool"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def git(root: Path, *words: str) -> str:
    """Run Git there."""
    who = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"]
    env = os.environ.copy()
    done = subprocess.run(["git", *who, *words], cwd=root, env=env, capture_output=True, check=True)
    return done.stdout.decode().strip()
