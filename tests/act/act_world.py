"""A real project, a real store and a ``gh`` that plays GitHub, for the tests of Act."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from copied_repository import copy_repository

from cockpit.act.model_tools import parse_call
from cockpit.act.preview import ActionPreview, preview_action
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, sessions, waves
from cockpit.store.sessions.outbox import OutboxAction

GH = Path(__file__).with_name("act_gh.py")


def git(root: Path, *args: str) -> str:
    """Run git in ``root``, as a person with no settings of their own."""
    env = os.environ.copy()
    done = subprocess.run(
        ["git", *args], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_project(root: Path) -> Path:
    """A repository with one commit: ``app.py``, ``docs/notes.md``."""
    return copy_repository(_make_notes, root)


def _make_notes(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    (root / "app.py").write_text("def area(r):\n    return 3 * r * r\n")
    (root / "docs").mkdir()
    (root / "docs" / "notes.md").write_text("# Notes\n\nOne.\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")


def install_gh(directory: Path) -> Path:
    """Put the stand-in on a directory for PATH; returns the file that holds its GitHub."""
    directory.mkdir()
    program = directory / "gh"
    program.write_text(f"#!{sys.executable} -IS\n{GH.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    world = directory / "github.json"
    world.write_text(json.dumps({"entries": [], "fail": [], "runs": 0}))
    return world


def plant_wave(store: Store, root: Path) -> tuple[str, str]:
    """A session with one wave; returns their ids."""

    def step(tx: Tx) -> tuple[str, str]:
        session = sessions.create(
            tx, task_type="implement", title="t", words="w", target={}, model="offline", policy="ask",
            interactive=True, root=root, rev=None, profile_id="default", limits={}, project="p",
            branch="main",
        )  # fmt: skip
        wave = waves.create(tx, session_id=session.session_id, trace_id=session.trace_id)
        return session.session_id, wave.wave_id

    return store.write_now(step)


def queue(store, ids, action_type, payload, *, key="k-1", position=0) -> OutboxAction:
    """An approved action in the outbox."""

    def step(tx: Tx) -> OutboxAction:
        planned = outbox.plan(
            tx, wave_id=ids[1], session_id=ids[0], position=position, key=key, payload=payload,
            action_type=action_type, title=action_type,
        )  # fmt: skip
        return outbox.enqueue(tx, planned.action_id, proposal_id=None, payload=payload)

    return store.write_now(step)


async def show(dispatcher_ground: Any, name: str, **arguments: Any) -> ActionPreview:
    """What a model's call would do."""
    return await preview_action(
        parse_call(name, json.dumps(arguments, ensure_ascii=False)), dispatcher_ground
    )


def now(store: Store, action: OutboxAction) -> OutboxAction:
    return store.read_now(lambda c: outbox.load(c, action.action_id))


def receipts(store: Store, action: OutboxAction) -> list[tuple[str, bool]]:
    found = store.read_now(lambda c: outbox.select_receipts(c, action.action_id))
    return [(receipt.status, receipt.terminal) for receipt in found]


def journalled(store: Store) -> list[str]:
    """The actions of the journal, in order."""
    return store.read_now(
        lambda c: [row[0] for row in c.execute("SELECT action FROM journal ORDER BY seq")]
    )


def environment() -> dict[str, str]:
    """This process's variables."""
    return dict(os.environ)
