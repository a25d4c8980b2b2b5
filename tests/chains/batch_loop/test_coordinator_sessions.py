"""Sessions of a chain: batches that grow, what ends them, and what the next one takes up."""

from __future__ import annotations

import pytest
from chains.batch_loop.coordinator_world import ALL_PASS, ChainWorld
from msgspec.structs import replace
from tasks.taskrun_world import edit, finish, git

from cockpit.backlog.work_settings import WorkSettings
from cockpit.chains.decide_next_worker import decide_chain
from cockpit.chains.handover import WorkerLimits
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains import worker_metrics, workers

pytestmark = pytest.mark.slow


def began_and_ended(chained: ChainWorld, task_id: str) -> tuple[int, int]:
    """Where in the journal the task's first step begins and its last one ends."""
    rows = [row for row in chained.rows("task.run.step") if row.raw_detail()["task_id"] == task_id]
    return rows[0].seq, rows[-1].seq


def breaks(task_id: str) -> str:
    """Turns in which the implementer of that task makes its tests red."""
    said = f"{task_id}:"
    return edit("implementer", "a + b", "a * b", said=said) + finish(
        "implementer", "Changed.", when='called = ["edit_file"]', said=said
    )


async def test_batches_grow_while_they_succeed_until_nothing_is_left(chained: ChainWorld) -> None:
    made = chained.tasks(5)
    chain = chained.chain()
    ended = await chained.session(chain)
    assert (ended.reason, ended.tasks_done, ended.batches) == ("empty", 5, 2)
    assert [(row["size"], row["next_size"]) for row in chained.batches()] == [(2, 3), (3, 4)]
    assert chained.statuses() == dict.fromkeys(made, "done")
    assert chained.leases() == []
    assert ended.tokens == sum(row["tokens"] for row in chained.batches()) > 0
    (metrics,) = chained.store.read_now(lambda seen: worker_metrics.select_for_chain(seen, "ch-1"))
    assert (metrics.batches_completed, metrics.tasks_done, metrics.tokens) == (2, 5, ended.tokens)
    session = chained.store.read_now(lambda seen: workers.load(seen, "ch-1", 1))
    assert (session.status, session.tokens, session.batches) == ("clean", ended.tokens, 2)


async def test_the_tasks_of_a_batch_run_at_once_and_a_size_of_one_in_turn(
    chained: ChainWorld,
) -> None:
    first, second = chained.tasks(2)
    await chained.session(chained.chain())
    assert began_and_ended(chained, second)[0] < began_and_ended(chained, first)[1]
    third, fourth = chained.tasks(2)
    ended = await chained.session(chained.chain(batch="1"))
    assert ended.batches == 2
    assert began_and_ended(chained, third)[1] < began_and_ended(chained, fourth)[0]


async def test_what_packets_have_no_room_for_ends_a_session_with_its_batch(
    chained: ChainWorld,
) -> None:
    """A file that is far too long for the roles' packets: the batch is finished all the same."""
    (chained.world.root / "long.py").write_text("value = 12345 + 67890\n" * 4_000)
    git(chained.world.root, "add", "long.py")
    git(chained.world.root, "commit", "--quiet", "-m", "Long")
    first = chained.world.task("Look at it", files=["long.py", "calc.py"], task_type="spike")
    second = chained.world.task("Look again", files=["long.py"], task_type="spike")
    chain = chained.chain()
    settings = RuntimeSettings(user_dir=chained.world.folder / "config", token_budget=9_000)
    task_context = chained.task_context(chain, 1, ALL_PASS, settings=settings)
    ended = await chained.session(
        chain, task_context=task_context, limits=WorkerLimits(dropped_share=0.02)
    )
    assert ended.reason == "pressure"
    assert 0.02 < ended.dropped_share < 1.0
    assert chained.statuses() == {first: "done", second: "todo"}


async def test_a_chain_over_its_limits_begins_nothing(chained: ChainWorld) -> None:
    (task_id,) = chained.tasks(1)
    for limits in (WorkerLimits(cost_usd=0.0), WorkerLimits(wall_s=0.0)):
        ended = await chained.session(chained.chain(), limits=limits)
        assert (ended.reason, ended.batches) == ("limit", 0)
        assert chained.statuses() == {task_id: "todo"}


async def test_what_a_person_has_in_progress_is_left_to_them(chained: ChainWorld) -> None:
    mine = chained.world.task("Mine", files=["part1/x.py"], task_type="spike")
    chained.stand(mine, "in_progress")
    (meets,) = chained.tasks(1)
    ended = await chained.session(chained.chain())
    assert (ended.reason, ended.batches) == ("held", 0)
    assert chained.said == [f"The ready tasks touch files that {mine} changes; waiting."]
    assert chained.statuses() == {mine: "in_progress", meets: "todo"}


async def test_a_task_that_breaks_off_takes_nothing_down(hurried: ChainWorld) -> None:
    """Its tests are red, and how often they may be mended is not a number: an error of ours."""
    broken, (other,) = hurried.world.task("Change add"), hurried.tasks(1)
    chain = hurried.chain()
    task_context = hurried.task_context(chain, 1, ALL_PASS + breaks(broken))
    task_context = replace(task_context, work=WorkSettings(max_test_retries=None))  # type: ignore[arg-type]
    ended = await hurried.session(chain, task_context=task_context)
    assert hurried.statuses() == {broken: "blocked", other: "done"}
    assert (ended.reason, ended.tasks_done, ended.tasks_blocked) == ("empty", 1, 1)
    first, second = hurried.batches()
    assert (first["outcome"], first["done"], first["interrupted"]) == ("failed", [other], [broken])
    assert (second["outcome"], second["blocked"]) == ("failed", [broken])
    assert any(line.startswith(f"{broken} broke off and keeps its work") for line in hurried.said)
    assert hurried.world.handoff(broken).status == "BLOCKED"
    assert "TypeError" in hurried.world.read(broken).blocker
    assert "a * b" in hurried.world.show("calc.py", hurried.world.tree(broken).branch)


@pytest.mark.parametrize(
    ("code", "batches", "reason", "status"),
    [("auth", 1, "no model: ", "failed"), ("network", 2, "no model for now: ", "stopped")],
)
async def test_a_model_that_cannot_be_had_ends_the_session_and_blocks_nothing(
    hurried: ChainWorld, code: str, batches: int, reason: str, status: str
) -> None:
    made = hurried.tasks(1)
    chain = hurried.chain()
    gone = f'[[turn]]\ntext = "x"\nerror = {{ code = "{code}" }}\n'
    ended = await hurried.session(chain, scenario=gone)
    assert ended.reason.startswith(reason)
    assert "the scenario says so" in ended.reason
    assert (ended.batches, ended.tasks_blocked) == (batches, 0)
    assert "blocked" not in hurried.statuses().values()
    found = hurried.store.read_now(lambda seen: decide_chain(seen, chain, "9999"))
    assert (found.status, found.reason) == (status, ended.reason)
    ended = await hurried.session(chain, 2)
    assert (ended.reason, hurried.statuses()) == ("empty", dict.fromkeys(made, "done"))


async def test_a_full_disk_pauses_the_chain_and_blocks_nothing(hurried: ChainWorld) -> None:
    made = hurried.tasks(1)
    chain = hurried.chain()
    log = hurried.world.root / ".git/logs/refs/heads" / chain.branch
    log.parent.mkdir(parents=True)
    log.symlink_to("/dev/full")
    ended = await hurried.session(chain, scenario=ALL_PASS)
    assert ended.reason.startswith("machine: git worktree failed: "), hurried.said
    assert "No space left on device" in ended.reason
    assert (ended.batches, ended.tasks_blocked) == (2, 0)
    found = hurried.store.read_now(lambda seen: decide_chain(seen, chain, "9999"))
    assert (found.status, found.reason) == ("stopped", ended.reason)
    log.unlink()
    ended = await hurried.session(chain, 2)
    assert (ended.reason, hurried.statuses()) == ("empty", dict.fromkeys(made, "done"))


async def test_a_task_that_met_an_outage_alone_waits_before_it_is_tried_again(
    hurried: ChainWorld,
) -> None:
    made = hurried.tasks(2)
    chain = hurried.chain()
    gone = f'[[turn]]\ntext = "x"\nwhen = {{ contains = ["{made[0]}"] }}\nerror = {{ code = "network" }}\n'
    task_context = hurried.task_context(chain, 1, ALL_PASS + gone)
    back = hurried.world.folder / "scenario.toml"
    hurried.on_line(f"{made[0]} is paused", lambda: back.write_text(ALL_PASS))
    ended = await hurried.session(chain, task_context=task_context)
    assert (ended.reason, hurried.statuses()) == ("empty", dict.fromkeys(made, "done"))
    assert [row.raw_detail()["task_id"] for row in hurried.rows("chain.delayed")] == made[:1]
