"""Whatever the order of events: no pending action is lost, and none is done twice."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.details import proposals as decided
from cockpit.store.journal.details.reentry import ActionKept
from cockpit.store.sessions import outbox, proposals

pytestmark = [pytest.mark.slow, pytest.mark.search]

FILES = ("a.txt", "b.txt")
WAVES = 5
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.sampled_from(FILES), st.booleans()),
        st.tuples(st.just("resume"), st.integers(1, WAVES), st.integers(1, 2)),
        st.tuples(st.just("read"), st.sampled_from(FILES), st.just(0)),
    ),
    min_size=1,
    max_size=2,
)
PLAYS = st.lists(STEPS, min_size=2, max_size=WAVES)
USER = st.lists(
    st.sampled_from(["approve", "change, then approve", "discuss", "discuss @a.txt", "reject"]),
    min_size=1,
    max_size=8,
)


def write_scenario(path: Path, plays: list[list[tuple[str, object, object]]]) -> None:
    """Write a model that plays one wave's calls after the other, whatever it reads."""
    lines = []
    for wave, steps in enumerate(plays, 1):
        lines.append(f"[[turn]]\nwhen = {{ wave = {wave} }}\ntext = 'wave'")
        for number, (kind, first, second) in enumerate(steps):
            arguments: dict[str, object] = {}
            name = "edit_file"
            if kind == "edit":
                old = "# end" if second else "# nowhere"
                arguments = {"path": first, "old": old, "new": f"+{wave}.{number}\n{old}"}
            elif kind == "resume":
                name, arguments = "resume_action", {"call": f"{first}.{second}"}
            else:
                name = "request_context"
                arguments = {"purpose": "p", "question": "q", "scope": [f"file:{first}"]}
            lines.append(f'[[turn.call]]\nname = "{name}"')
            lines.append(f"raw_arguments = {json.dumps(json.dumps(arguments))}")
    lines.append(f"[[turn]]\nwhen = {{ wave_from = {len(plays) + 1} }}")
    lines.append('[[turn.call]]\nname = "finish"')
    lines.append("arguments = { status = 'done', summary = 'done' }")
    path.write_text("\n".join(lines))


async def play(root: Path, plays: list, user: list[str]) -> None:
    for name in FILES:
        (root / name).write_text("# begin\n# end\n")
    write_scenario(root.parent / "scenario.toml", plays)
    place = locate_project(root)
    choices, changes = itertools.cycle(user), itertools.count(1)
    async with open_runtime(place, RuntimeSettings(user_dir=root.parent / "user")) as runtime:
        session_id = await runtime.start(
            "change the files",
            model=f"script:{root.parent / 'scenario.toml'}",
            task_type="implement",
            limits=Limits(max_waves=WAVES + 3),
        )
        work = asyncio.create_task(runtime.run(session_id))
        while not work.done():
            for proposal in await runtime.store.read(proposals.select_pending):
                choice = next(choices) if proposal.kind == "action" else "approve"
                if choice.startswith("change"):
                    path = root / str(proposal.body["payload"]["path"])
                    path.write_text(f"# by somebody {next(changes)}\n{path.read_text()}")
                if choice.endswith("approve"):
                    await runtime.approve(proposal.proposal_id)
                elif choice.startswith("discuss"):
                    await runtime.discuss(proposal.proposal_id, words=f"why? {choice}")
                else:
                    await runtime.reject(proposal.proposal_id, reason="no")
            await asyncio.sleep(0.002)
        session = await work
        actions = await runtime.store.read(lambda c: outbox.select_for_session(c, session_id))
        rows = await runtime.store.read(
            lambda c: journal.rows(c, session_id=session_id, limit=2000)
        )
        assert runtime.store.read_now(verify_chain.verify).ok
    details = [row.detail for row in rows]
    # Every action came to an end, and what is confirmed is in the files: each exactly once.
    assert {action.phase for action in actions} <= {"confirmed", "failed_terminal"}
    confirmed = [action for action in actions if action.phase == "confirmed"]
    markers = Counter(
        line for name in FILES for line in (root / name).read_text().splitlines() if "+" in line
    )
    assert sum(markers.values()) == len(confirmed)
    # A kept action never runs itself. It is taken up or given up, once, and none is left behind.
    kept = defaultdict(list)
    for each in details:
        if isinstance(each, ActionKept):
            kept[each.status].append(each)
    held = [each.action_id for each in kept["held"]]
    resumed = [
        each.action_id
        for each in details
        if isinstance(each, ActionKept) and each.status == "resumed"
    ]
    released = [
        each.action_id
        for each in details
        if isinstance(each, ActionKept) and each.status == "released"
    ]
    ran = [each.action_id for each in details if isinstance(each, decided.ActionConfirmed)]
    assert len(set(held)) == len(held)
    assert not set(held) & set(ran)
    assert Counter(resumed + released).total() == len(set(resumed + released))
    assert set(resumed + released) <= set(held)
    if session.result.get("status") == "done":
        assert set(held) == set(resumed + released)
    assert all(
        each.times <= 3
        for each in details
        if isinstance(each, ActionKept) and each.status == "held"
    )
    # A line is done once at most.
    roots = {
        each.action_id: each.root
        for each in details
        if isinstance(each, ActionKept) and each.status == "held"
    }
    by = {
        each.by: each.action_id
        for each in details
        if isinstance(each, ActionKept) and each.status == "resumed"
    }
    lines = Counter(roots[by[action_id]] for action_id in ran if action_id in by)
    assert all(count == 1 for count in lines.values()), lines


@settings(max_examples=examples(3), deadline=None)
@given(PLAYS, USER)
def test_no_pending_action_is_lost_or_done_twice(plays, user):
    with TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        asyncio.run(asyncio.wait_for(play(root, plays, user), 60))
