"""``review pr 24`` after learning: it reads by itself, reviews, and asks once: looks good ⏎."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from loop.intake.gh_standin import GhStandIn
from loop.intake.repositories import Repo
from loop.scenario import ask, finish, turn

from cockpit.loop.runtime import Runtime
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.loop.trust.decide_rules import decide_rule
from cockpit.loop.trust.list_rules import ListedRule, list_evidence, list_rules
from cockpit.store.journal import journal
from cockpit.store.journal.details.trust import TrustUsed
from cockpit.store.journal.details.waves import ContextFetched
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

pytestmark = pytest.mark.slow

POST = "gh pr review 24 --approve --body 'LGTM. One remark.\n\nName it better.'"
REVIEW = (
    ask(
        *("pr:24 in tests/*.py", "file:tests/test_app.py"),
        when='not_called = ["request_context"]',
        text="I need the tests of this change.",
    )
    + turn(
        "github",
        'called = ["request_context"], not_called = ["github"]',
        "Tests cover it.",
        command=POST,
    )
    + finish('called = ["github"]', summary="approved")
)
DIFF = """diff --git a/tests/test_app.py b/tests/test_app.py
index 1111111..2222222 100644
--- a/tests/test_app.py
+++ b/tests/test_app.py
@@ -1 +1 @@
-x = 1
+x = 2
"""


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GhStandIn:
    standin = GhStandIn(tmp_path / "bin", {})
    standin.answer("--version", "gh version 2.40.0\n")
    for number in (21, 22, 23, 24, 25):
        view = {
            "title": "Count from two",
            "body": "Why not.",
            "state": "OPEN",
            "author": {"login": "ada", "name": "Ada"},
            "closingIssuesReferences": [],
            "files": [{"path": "tests/test_app.py", "additions": 1, "deletions": 1}],
        }
        fields = "title,body,state,author,closingIssuesReferences,files"
        standin.answer(f"pr view {number} --json {fields}", json.dumps(view))
        size = {"additions": 1, "deletions": 1, "files": view["files"], "body": view["body"]}
        standin.answer(f"pr view {number} --json additions,deletions,files,body", json.dumps(size))
        standin.answer(f"pr diff {number}", DIFF)
        standin.answer(f"pr review {number} --approve --body-file -", "ok\n")
    monkeypatch.setenv("PATH", f"{standin.directory}{os.pathsep}{os.environ['PATH']}")
    return standin


def script(folder: Path, number: int, also: str = "") -> str:
    """Write the scenario for a pull request; returns the model that plays it."""
    path = folder / f"review-{number}.toml"
    text = REVIEW.replace("24", str(number)).replace('test_app.py\\"]', f'test_app.py\\"{also}]')
    path.write_text(text)
    return f"script:{path}"


async def review(
    runtime: Runtime,
    number: int,
    model: str,
    decide: Callable[[Runtime, Proposal], object],
    policy: str = "ask",
) -> tuple[str, list[Proposal]]:
    """Run a review to its end; returns the session's id and what the user was asked."""
    session_id = await runtime.start(
        f"review pr {number}", model=model, policy=policy, interactive=False
    )
    running = asyncio.create_task(runtime.run(session_id))
    asked: list[Proposal] = []

    def waiting() -> Proposal | bool | None:
        rows = runtime.store.read_now(
            lambda connection: proposals.select_for_session(connection, session_id)
        )
        pending = next((row for row in rows if row.status == "pending"), None)
        return pending or running.done() or None

    while True:
        found = await runtime.engine.change_waiter.wait_for(waiting, 0.05)
        if not isinstance(found, Proposal):
            break
        asked.append(found)
        await decide(runtime, found)  # type: ignore[misc]
    ended = await running
    assert ended.status == "completed", ended
    return session_id, asked


async def approve(runtime: Runtime, proposal: Proposal) -> None:
    await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)


async def test_review_pr_24_asks_once_after_learning(project, gh, opened, tmp_path):
    Repo(project).commit("Test", {"tests/test_app.py": "x = 2\n"})
    async with opened(trust=TrustSettings(3, 3, 90)) as runtime:
        for number in (21, 22, 23):
            _, asked = await review(runtime, number, script(tmp_path, number), approve)
            assert [each.kind for each in asked] == ["context", "action"], "early: both are asked"
            assert "card" not in asked[1].body
        store, settings = runtime.store, runtime.engine.settings

        def listed() -> tuple[ListedRule, ...]:
            return store.read_now(lambda c: list_rules(c, store.clock, settings)).rules

        rules = listed()
        assert [(each.effect, each.says) for each in rules] == [
            ("card", "github gh pr review (the task's own) --approve --body"),
            ("pass", "read file tests/*.py"),
            ("pass", "read pr (the task's own) in tests/*.py"),
        ]
        for rule in rules:
            name = rule.rule_id
            evidence = store.read_now(
                lambda c, name=name: list_evidence(c, store.clock, settings, name)
            )
            assert len(evidence) == 3
            store.write_now(lambda tx, name=name: decide_rule(tx, settings, "accept", name))

        session_id, asked = await review(
            runtime, 24, script(tmp_path, 24), approve, policy="trusted"
        )
        (card,) = asked
        assert (card.kind, card.risk) == ("action", "high")
        assert card.body["card"]["rule_id"].startswith("t-")
        session = runtime.store.read_now(lambda c: sessions.load(c, session_id))
        assert (session.status, session.result["status"]) == ("completed", "done")
        assert gh.calls()[-1][:4] == ["pr", "review", "24", "--approve"]
        rows = runtime.store.read_now(
            lambda c: [row for row in journal.rows(c) if row.session_id == session_id]
        )
        used = [row.read(TrustUsed) for row in rows if row.action == "trust.used"]
        assert [(each.effect, each.what) for each in used] == [
            ("pass", "pr:24 in tests/*.py"),
            ("pass", "file:tests/test_app.py"),
            ("card", "gh pr review 24 --approve"),
        ]
        context = next(row for row in rows if row.action == "proposal.decided")
        assert context.actor.startswith("trust:t-")

        # Only what no rule covers is asked; and one pushback on the card suspends it.
        async def refuse_posts(runtime: Runtime, proposal: Proposal) -> None:
            if proposal.kind == "context":
                await approve(runtime, proposal)
                return
            await runtime.reject(
                proposal.proposal_id, shown_digest=proposal.shown_digest, reason="no"
            )

        model = script(tmp_path, 25, also=', \\"file:calc.py\\"')
        session_id, asked = await review(runtime, 25, model, refuse_posts, policy="trusted")
        assert [item["item"] for item in asked[0].body["items"]] == ["file:calc.py"]
        assert "by your trust rules: pr:25 in tests/*.py, file:tests/test_app.py" in str(
            asked[0].body["notes"]
        )
        fetched = runtime.store.read_now(
            lambda c: [
                [item.item for item in row.read(ContextFetched).items]
                for row in journal.rows(c, session_id=session_id, action="context.fetched")
            ]
        )
        assert fetched[2:] == [["pr:25 in tests/*.py", "file:tests/test_app.py"], ["file:calc.py"]]
        states = listed()
        assert {rule.effect: rule.status for rule in states} == {
            "card": "suspended",
            "pass": "active",
        }
