"""A chain's report: what stands in it, when it is written, and what it withstands."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from chains.batch_loop.coordinator_world import ALL_PASS, ChainWorld
from tasks.taskrun_world import edit, finish, git, turn

from cockpit.chains.handover import WorkerLimits
from cockpit.chains.report.chain_report import wants_report, write_report
from cockpit.chains.report.report_markdown import plain
from cockpit.core.errors import StoreUnwritable
from cockpit.store.backlog import handoffs, wip
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ActionFailed
from widgets.text.clean import clean

pytestmark = pytest.mark.slow

HOSTILE = "\x1b]52;c;eA==\x07 \u202egnp.exe\u200b <script>`x`</script> [a](http://evil) \x00\r # H"


def ended(chained: ChainWorld, chain: Chain, status: str = "completed", why: str = "") -> Chain:
    found: Chain = chained.store.write_now(lambda tx: chains.end(tx, chain.chain_id, status, why))
    return found


async def written(chained: ChainWorld, chain: Chain) -> str:
    path = await write_report(chained.store, chained.world.place, chain)
    assert path == chained.world.root / ".cockpit" / "reports" / f"chain-{chain.number}-report.md"
    return path.read_text(encoding="utf-8")


async def a_chain_of_every_kind(chained: ChainWorld) -> Chain:
    """One task done in two sessions, one failed, one blocked, one not begun."""
    _, story = chained.epic_and_story()
    done = chained.world.task("Do it", story_id=story, files=["done.py"])
    failed = chained.world.task("Break it")
    blocked = chained.world.task("Ask first", files=["other.py"])
    scenario = (
        ALL_PASS
        + turn("implementer", "write_file", 'path = "done.py", content = "x = 1"', said=f"{done}:")
        + turn(
            "implementer",
            "update_wip",
            'decisions = [{ decision = "A constant", reason = "nothing varies" }]',
            when='called = ["write_file"]',
            said=f"{done}:",
        )
        + finish("implementer", "Done as asked.", when='called = ["update_wip"]')
        + edit("implementer", "a + b", "a * b", said=f"{failed}:")
        + finish("implementer", "Changed.", when='called = ["edit_file"]', said=f"{failed}:")
        + finish("implementer", "Which of the two?", status="blocked", said=f"{blocked}:")
        + finish("fixer", "I changed nothing.")
    )
    decided = {"decisions": [{"decision": "JWT over sessions", "reason": "it scales"}, "No cache"]}
    chained.store.write_now(lambda tx: wip.update(tx, done, decided, by="agent"))
    chain = chained.chain(max_chains=2)
    await chained.session(chain, 1, scenario=scenario, limits=WorkerLimits(batches=1))
    await chained.session(chain, 2, scenario=scenario)
    chained.tasks(1)
    return ended(chained, chain, "limited", "it had its 2 sessions, and 1 task is left")


async def test_the_report_says_what_the_seed_asks_for(chained: ChainWorld) -> None:
    chain = await a_chain_of_every_kind(chained)
    text = await written(chained, chain)
    assert text.startswith("# Chain Report\n\nChain ch-1, the backlog, started from `main` at")
    for line in (
        "- Tasks completed: 1",
        "- Tasks blocked: 2 (1 with details, which are kept)",
        "### T-2 Break it",
        "### T-3 Ask first",
        "- Tasks in progress: 0",
        "- Tasks left: 1 ready, 0 waiting for other tasks",
        "- Decisions made: 3",
        "- Workers: 2, batches: 2",
        "- T-1: JWT over sessions (it scales)",
        "- T-1: No cache",
        "- T-1: A constant (nothing varies)",
        "- Merge the completed tasks: `git merge cockpit/ch-1`",
        "- Resume the chain: `cockpit work --continue` (1 ready)",
    ):
        assert line in text.splitlines()
    assert "it had its 2 sessions, and 1 task is left." in text
    assert re.search(r"\n- \*\*T-1\*\* Do it \(`[0-9a-f]{10}`\): Done as asked", text)
    failed = text.partition("### T-2")[2].partition("### T-3")[0]
    assert "Break it" in failed
    assert "the tests still fail: grep" in failed
    assert "Its work is kept on `cockpit/T-2`" in failed
    blocked = text.partition("### T-3")[2].partition("\n## ")[0]
    assert "Which of the two?" in blocked
    assert "`cockpit tasks move T-3 unblocked`" in text
    assert "| s1 | clean, handed over: its batches were done | 1 | 1 | 0 |" in text
    chained.store.write_now(lambda tx: tx.execute("UPDATE chains SET updated_at='later'"))
    assert await written(chained, chain) == text
    found = chained.store.read_now(lambda seen: chains.load(seen, chain.chain_id))
    assert found.report_path == ".cockpit/reports/chain-1-report.md"
    rows = [row.raw_detail() for row in chained.rows("chain.changed")]
    assert {row["report_path"] for row in rows if row["what"] == "reported"} == {found.report_path}

    # The user moves the branch, and the repository asks for what cockpit's commits do not do.
    root, base = chained.world.root, chain.base_commit
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(root, "config", "commit.gpgSign", "true")
    merge = git(root, "rev-parse", "refs/heads/cockpit/ch-1").strip()
    git(root, "update-ref", "refs/heads/cockpit/ch-1", base)
    failed = ActionFailed(
        action_id="a-1", type="git_commit", title="commit", message="pre-commit: exit 1", receipt={}
    )

    def fail(tx: Tx) -> None:
        (session_id,) = tx.execute(
            "SELECT session_id FROM task_runs WHERE task_id='T-2'"
        ).fetchone()
        tx.journal(failed, session_id=session_id)

    chained.store.write_now(fail)
    text = await written(chained, chain)
    assert "- A commit of the agent of T-2 failed: pre-commit: exit 1" in text.splitlines()
    assert (
        f"T-1 was merged into cockpit/ch-1 and is no longer on it; `git merge {merge[:10]}`" in text
    )
    assert "hooks (pre-commit). cockpit's commits and merges run none" in text
    assert "(`commit.gpgSign`). cockpit's commits and merges are not signed" in text
    again = ("commit-tree", f"{merge}^{{tree}}", "-p", base, "-m", "the same, rebased")
    git(root, "update-ref", "refs/heads/cockpit/ch-1", git(root, *again).strip())
    assert "no longer on it" not in await written(chained, chain)


async def test_what_decayed_before_is_in_the_report(chained: ChainWorld) -> None:
    """The only task of an epic is done: its handoff is archived in the same transaction."""
    _, story = chained.epic_and_story()
    task_id = chained.world.task("Do it", story_id=story, task_type="spike")
    chain = chained.chain()
    await chained.session(chain)
    archived = chained.store.read_now(lambda seen: handoffs.load(seen, task_id))
    assert archived.archived_at is not None
    kept = chained.store.read_now(lambda seen: chains.load(seen, chain.chain_id)).summary
    assert kept["handoffs"][task_id].startswith("Done as asked.")
    assert "Done as asked." in await written(chained, ended(chained, chain))


async def test_hostile_words_steer_nothing(chained: ChainWorld) -> None:
    task_id = chained.world.task(f"Evil {HOSTILE}")
    decided = {"decisions": [{"decision": HOSTILE, "reason": "```\n# x"}], "next_step": HOSTILE}
    chained.store.write_now(lambda tx: wip.update(tx, task_id, decided, by="agent"))
    chained.store.write_now(
        lambda tx: handoffs.set_handoff(tx, task_id, "FAIL", HOSTILE, [], f"```\n{HOSTILE}", by="a")
    )
    chained.stand(task_id, "blocked", HOSTILE)
    chain = chained.chain()
    text = await written(chained, ended(chained, chain, "failed", HOSTILE))
    assert clean(text) == text
    outside = re.sub(r"(`{3,})text\n.*?\n\1\n", "", text, flags=re.S)
    assert "<script>" not in outside
    assert "[a](" not in outside
    headings = [line for line in outside.splitlines() if line.startswith("#")]
    assert [one.split()[0] for one in headings] == ["#", "##", "###", "##", "##"]
    # The fence is longer than any in what it holds.
    assert "\n````text\n```\n" in text


def test_a_word_is_one_line_within_bounds() -> None:
    assert plain("a\n\n# b *c* `d` <e>") == r"a \# b \*c\* \`d\` \<e\>"
    assert len(plain("x" * 1_000)) == 400
    assert plain("\x1b[2J\u200bx") == r"⟦U+001B⟧\[2Jx"


def test_when_it_is_wanted(chained: ChainWorld) -> None:
    (task_id,) = chained.tasks(1)
    for setting, status, blocked, wanted in (
        ("always", "stopped", False, True),
        ("never", "failed", True, False),
        ("on_complete", "completed", True, True),
        ("on_complete", "limited", True, False),
        ("on_failure", "completed", False, False),
        ("on_failure", "completed", True, True),
        ("on_failure", "stopped", False, False),
        ("on_failure", "limited", False, True),
        ("on_failure", "failed", False, True),
    ):
        if blocked:
            chained.stand(task_id, "blocked", "No idea.")
        else:
            chained.stand(task_id, "todo")
        chain = ended(chained, chained.chain(), status)
        asked = partial(wants_report, chain=chain, setting=setting)
        assert chained.store.read_now(asked) is wanted


async def test_a_report_never_leaves_the_project(chained: ChainWorld, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    chained.world.place.folder.mkdir(exist_ok=True)
    (chained.world.place.folder / "reports").symlink_to(elsewhere)
    chained.tasks(1)
    with pytest.raises(StoreUnwritable, match="is a symbolic link"):
        await write_report(chained.store, chained.world.place, chained.chain())
    assert list(elsewhere.iterdir()) == []
