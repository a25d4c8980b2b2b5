"""The backlog is gone on with when an agent's session ends: real hooks, absorbers and chains."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_cockpit
from chains.chain_world import Chains
from chains.new_chain import create_chain_row
from commands.cli_world import PATIENCE_S
from hook_world import PAYLOADS
from state_for_tests import ASK_TRUST, state_of
from tasks.taskrun_world import git

from cockpit.hook.start_chain import LOG
from cockpit.store.chains import chains, workers
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


def configured(world: Chains, wish: str) -> None:
    """The user's own configuration: everything is approved, a script answers, and ``wish``."""
    model = world.project.script(world.scenario(1))
    world.project.config.mkdir(exist_ok=True)
    (world.project.config / "config.toml").write_text(
        f"[approval]\npolicy = 'all'\n[model]\nname = '{model}'\n"
        f"[headless]\non_session_end = '{wish}'\n",
        encoding="utf-8",
    )


def ends(world: Chains, agent: str = "claude", *, cwd: Path | None = None, **changes: str) -> None:
    """An agent's session ends; in capitals: variables of its environment. Waits until its hook's
    absorber has done what it does."""
    text = (PAYLOADS / agent / "session_end.json").read_text(encoding="utf-8")
    body = json.loads(text.replace("{root}", str(cwd or world.root)))
    told = {name: value for name, value in changes.items() if not name.isupper()}
    env = {name: value for name, value in changes.items() if name.isupper()}
    done = run_cockpit.run(
        ("hook", "--agent", agent),
        cwd=cwd or world.root,
        env={**world.project.env, **env},
        stdin=json.dumps({**body, **told}),
        patience_s=PATIENCE_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    until(lambda: world.read(lambda seen: _at_rest(seen)))


def _at_rest(connection: Any) -> bool:
    (lease,) = connection.execute("SELECT leased_until FROM hook_absorber").fetchone()
    (pending,) = connection.execute("SELECT count(*) FROM hook_pending").fetchone()
    return lease == 0 and pending == 0


def until(true: Callable[[], Any]) -> Any:
    """Look until it is so; a process of its own makes it so."""
    last = time.monotonic() + PATIENCE_S
    while time.monotonic() < last:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def log(world: Chains) -> str:
    path = state_of(world.root) / "hook.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def is_begun(world: Chains) -> bool:
    """Whether a process was begun that decides what follows."""
    return (state_of(world.root) / "chains" / LOG).exists()


def chain_ids(world: Chains) -> list[str]:
    return [one["chain_id"] for one in world.project.json("chain", "--json")]


def ended(world: Chains, chain_id: str = "ch-1") -> str:
    """How the chain ended, once it has."""
    until(
        lambda: world.read(lambda seen: chain_id in {one.chain_id for one in chains.select(seen)})
    )
    world.project.run("chain", "watch", chain_id)
    return world.chain(chain_id).status


def left(world: Chains, *edits: str, **fields: Any) -> None:
    """A chain at work, as this process would have begun it, with these edits of its row."""
    base = git(world.root, "rev-parse", "HEAD")
    with Store.open(state_of(world.root) / "cockpit.db") as store:
        store.write_now(lambda tx: create_chain_row(tx, base_commit=base, **fields))
        for edit in edits:
            store.write_now(lambda tx, edit=edit: tx.execute(f"UPDATE chains SET {edit}"))


DEAD = "owner='999999999/1'"


def test_the_backlog_is_done_when_a_session_has_ended(tmp_path: Path) -> None:
    agent = "codex"
    world = Chains.made(tmp_path, 1)
    configured(world, "all")
    # What is approved is the user's to set, and no agent's environment.
    ends(world, agent, COCKPIT_APPROVE="ask")
    assert ended(world) == "completed"
    assert world.statuses() == {"T-1": "done"}
    made = world.chain()
    assert (made.approve, made.headless, made.scope_kind) == ("all", True, "all")
    (row,) = world.rows("chain.noted")
    (over,) = [row for row in world.rows("agent.hook") if row["event"] == "SessionEnd"]
    assert (row["chain_id"], row["agent"], row["reason"]) == ("ch-1", agent, over["reason"])
    assert row["agent_session"] == over["agent_session"]
    shown = world.project.run("chain", "last").stdout
    assert f"follows    {agent}'s session {over['agent_session']} ({over['reason']})" in shown
    words = (state_of(world.root) / "chains" / LOG).read_text(encoding="utf-8")
    assert f"Started because a session of {agent} ended." in words
    assert "no chain" not in log(world)
    # Nothing is left: the next end begins nothing, and says so.
    ends(world, agent)
    until(lambda: "no task is ready" in log(world))
    assert chain_ids(world) == ["ch-1"]


def test_only_the_user_s_own_file_asks_for_it(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    ends(world, COCKPIT_ON_SESSION_END="all")
    assert (is_begun(world), log(world)) == (False, "")
    theirs = world.root / ".cockpit/config.toml"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("[headless]\non_session_end = 'all'\n", encoding="utf-8")
    world.project.extra |= ASK_TRUST  # of the process behind the hook as well
    world.project.run("trust", "--yes")
    ends(world)
    assert "a repository may not start work without you" in log(world)
    theirs.write_text("[headless]\non_session_end = 'off'\n", encoding="utf-8")
    world.project.run("trust", "--yes")
    configured(world, "all")
    before = log(world)
    ends(world)
    assert (is_begun(world), log(world)) == (False, before)
    theirs.unlink()
    # An agent's environment can be the repository's as well.
    folder = world.root / "config"
    folder.mkdir()
    (folder / "config.toml").write_text("[headless]\non_session_end='all'\n", encoding="utf-8")
    ends(world, COCKPIT_CONFIG_DIR=str(folder))
    assert "COCKPIT_CONFIG_DIR lies in the project" in log(world)
    assert is_begun(world) is False


def test_of_two_that_decide_at_once_one_begins_a_chain(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configured(world, "off")
    ends(world)
    query = "SELECT seq FROM journal WHERE detail_json LIKE '%SessionEnd%'"
    (seq,) = world.read(lambda seen: seen.execute(query).fetchone())
    left(world)  # the other one's, which was faster by one transaction
    words = ("work", "--all", "--headless", "--after", str(seq))
    assert "ch-1 is running already" in world.project.run(*words, expect=1).stderr
    assert "no chain after the session's end: ch-1 is running already" in log(world)
    assert chain_ids(world) == ["ch-1"] and world.rows("chain.noted") == []
    # A row that tells of no end is none to follow.
    assert "is not the end of" in world.project.run(*words[:-1], "1", expect=2).stderr


def test_continue_takes_up_what_is_unfinished_and_begins_nothing(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configured(world, "continue")
    ends(world)
    until(lambda: "no unfinished chain has a task that is ready" in log(world))
    assert chain_ids(world) == []
    left(world, DEAD)
    ends(world)
    until(lambda: world.rows("chain.noted"))
    assert ended(world) == "completed"
    assert chain_ids(world) == ["ch-1"]
    assert world.statuses() == {"T-1": "done"}


def test_what_only_the_user_may_resume_stays_as_it_is(tmp_path: Path) -> None:
    """What they stopped, and a chain that had as many workers as it may."""
    world = Chains.made(tmp_path, 1)
    configured(world, "all")
    left(world, DEAD)
    world.project.run("chain", "stop")
    ends(world)
    until(lambda: "ch-1 was stopped" in log(world))
    assert [(one, world.chain(one).status) for one in chain_ids(world)] == [("ch-1", "stopped")]
    configured(world, "continue")
    left(world, DEAD, max_chains=1)
    with Store.open(state_of(world.root) / "cockpit.db") as store:
        chain = world.chain("ch-2")
        store.write_now(lambda tx: workers.start(tx, chain, 1, token_limit=9))
        store.write_now(lambda tx: workers.end(tx, chain, 1, "clean", "pressure"))
        store.write_now(lambda tx: chains.end(tx, "ch-2", "limited", "after 1 worker"))
    ends(world)
    until(lambda: "ch-2 had all of its 1 worker" in log(world))
    assert len(world.sessions("ch-2")) == 1


NO_END: list[dict[str, str]] = [
    {"reason": "clear"},
    {"reason": "resume"},
    {"COCKPIT_TASK": "T-1", "COCKPIT_WIP": "on"},
    {"COCKPIT_TASK": "T-1", "COCKPIT_WIP": "off"},
    {"COCKPIT_WIP": "off"},
]


def test_what_is_no_end_of_a_user_s_session_begins_nothing(tmp_path: Path) -> None:
    """Cleared, resumed, an agent or a reviewer of cockpit's own, one in its worktree, and old news."""
    world = Chains.made(tmp_path, 1)
    configured(world, "all")
    for changes in NO_END:
        ends(world, **changes)
    tree = state_of(world.root) / "worktrees/T-1"
    world.project.git("worktree", "add", "--quiet", "--detach", str(tree))
    ends(world, cwd=tree)
    words = ("claude", "s", "SessionEnd", json.dumps({"reason": "other", "root": str(world.root)}))
    kept = {"key": "1", "at": "2026-01-01T00:00:00.000000Z", "urgent": True}
    kept |= dict(zip(("agent", "session", "event", "body"), words, strict=True))
    folder = state_of(world.root) / "hook-spool"
    folder.mkdir(exist_ok=True)
    (folder / "1.json").write_text(json.dumps(kept), encoding="utf-8")
    assert chain_ids(world) == []
    told = [row for row in world.rows("agent.hook") if row["event"] == "SessionEnd"]
    assert len(told) == len(NO_END) + 2
    assert (is_begun(world), log(world)) == (False, "")
