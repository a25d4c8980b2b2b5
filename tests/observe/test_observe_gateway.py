"""The gateway: propose, then fetch; the same facts anywhere; one failing item costs itself."""

from __future__ import annotations

import json

import pytest
from observe_world import Project

from cockpit.observe.context_request import ContextRequest, parse_request
from cockpit.observe.fan_out import ObserveLimits
from cockpit.observe.gateway import ContextGateway
from cockpit.store.context.facts import LEVELS, UTILITY_MAX

pytestmark = pytest.mark.slow

SCOPE = [
    "file:src/app.py",
    "file:src/app.py:3-9 @outline",
    "search:load in *.py",
    "symbol:Config.load",
    "tree:.",
    "diff:HEAD~1..HEAD",
    "log:HEAD",
]


def request(*scope: str) -> ContextRequest:
    return parse_request({"purpose": "see", "question": "what?", "scope": list(scope)})


def gateway(
    project: Project, rev: str | None = None, caps: ObserveLimits | None = None
) -> ContextGateway:
    return ContextGateway.of(root=project.root, rev=rev, limits=caps)


async def test_fetching_gives_facts_and_an_outcome_for_each_item(project: Project) -> None:
    asked = request(*SCOPE, "file:nowhere.py")
    fetched = await gateway(project).fetch(asked)
    assert [outcome.item for outcome in fetched.outcomes] == list(asked.scope)
    assert all(outcome.facts >= 1 and not outcome.error for outcome in fetched.outcomes[:7])
    error = {"facts": 0, "tokens": 0, "error": "there is no file 'nowhere.py'"}
    assert fetched.outcomes[7].body() == {"item": "file:nowhere.py", **error}
    for fact in fetched.facts:
        assert 0 < fact.utility <= UTILITY_MAX and fact.dedupe_key and fact.full.tokens >= 0
        assert fact.provenance is not None and fact.provenance["level"] in LEVELS
        assert len(fact.provenance["sha256"]) == 64
        json.dumps(dict(fact.provenance), allow_nan=False)
        fact.full.text.encode()


async def test_facts_past_the_cap_are_left_out_and_said_so(project: Project) -> None:
    asked = request("file:src/app.py", "file:src/use.py", "file:README.md")
    fetched = await gateway(project, caps=ObserveLimits(max_facts=2)).fetch(asked)
    assert len(fetched.facts) == 2
    assert fetched.outcomes[2].error == "1 facts are past the limit of 2"


async def test_no_secret_and_no_place_comes_through(project: Project) -> None:
    canary = "ghp_" + "a1B2" * 9
    project.write("src/app.py", f"def load():\n    return '{canary}'\n").write(
        f"{canary}.txt", "load"
    )
    project.commit(f"load {canary}")
    asked = request(
        "file:src/app.py", "search:load", "symbol:load", "tree:.", "diff:HEAD~1..HEAD", "log:HEAD",
        "search:\\b(?:" + canary, "file:" + canary, "diff:HEAD.." + canary,
    )  # fmt: skip
    previews = await gateway(project).preview(asked)
    fetched = await gateway(project).fetch(asked)
    for shown in (repr(fetched.facts), repr([preview.refused for preview in previews])):
        assert canary not in shown and str(project.root) not in shown
    assert all(canary not in outcome.error for outcome in fetched.outcomes)
