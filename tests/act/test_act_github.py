"""Posting to GitHub: shown as parsed, the body by standard input, found again by its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from act_world import show

from cockpit.act.adapters import ADAPTERS
from cockpit.act.adapters.github_write import marker
from cockpit.act.workspace import Workspace
from cockpit.core.errors import CockpitError

pytestmark = pytest.mark.slow

GITHUB = ADAPTERS["github"]
BODY = "Two findings:\n\n1. `area` rounds — $(rm -rf /) & \"quotes\" 'too'\n--body no\n"


async def test_a_review_is_shown_posted_and_found(github: Path, ground: Workspace) -> None:
    import shlex

    proposal = await show(
        ground, "github", command=f"gh pr review 24 --request-changes --body {shlex.quote(BODY)}"
    )
    assert proposal.title == "gh pr review 24 --request-changes"
    assert proposal.body == BODY
    assert dict(proposal.fields) == {
        "command": "gh pr review", "number": "24", "repository": "acme/api", "request-changes": "yes",
    }  # fmt: skip
    assert any("hidden comment" in note for note in proposal.notes)
    assert await GITHUB.probe(proposal.payload, "k-7", ground) == "not_done"
    outcome = await GITHUB.perform(proposal.payload, "k-7", ground)
    assert outcome.status == "success"
    assert outcome.summary.endswith("https://github.com/acme/api/pull/24#issuecomment-1.")
    (entry,) = json.loads(github.read_text())["entries"]
    assert entry["body"] == f"{BODY}\n\n{marker('k-7')}"
    assert BODY not in entry["argv"] and "--body-file" in entry["argv"]
    assert await GITHUB.probe(proposal.payload, "k-7", ground) == "done"
    assert await GITHUB.probe(proposal.payload, "k-77", ground) == "not_done"


@pytest.mark.parametrize(
    ("fail", "failure", "maybe", "found"),
    [
        ("before:HTTP 422: Review cannot be requested", "permanent", False, "not_done"),
        ("before:error connecting to api.github.com", "transient", False, "not_done"),
        ("before:HTTP 502: Bad Gateway", "transient", True, "not_done"),
        ("after:HTTP 502: Bad Gateway", "transient", True, "done"),
        (
            "before:To get started with GitHub CLI, please run:  gh auth login",
            "permanent",
            False,
            "not_done",
        ),
    ],
)
async def test_failures_are_told_apart(github, ground, fail, failure, maybe, found):
    github.write_text(json.dumps({"entries": [], "fail": [fail], "runs": 0}))
    proposal = await show(ground, "github", command="gh pr comment 24 --body hello")
    outcome = await GITHUB.perform(proposal.payload, "k", ground)
    assert (outcome.failure, outcome.maybe) == (failure, maybe)
    assert await GITHUB.probe(proposal.payload, "k", ground) == found


async def test_probes_by_state_by_list_and_without_a_network(github, ground):
    merge = await show(ground, "github", command="gh pr merge 24 --squash")
    assert merge.risk == "high"
    assert await GITHUB.probe(merge.payload, "k", ground) == "not_done"
    await GITHUB.perform(merge.payload, "k", ground)
    assert await GITHUB.probe(merge.payload, "k", ground) == "done"
    create = await show(ground, "github", command="gh issue create --title T --body B")
    assert await GITHUB.probe(create.payload, "c", ground) == "not_done"
    await GITHUB.perform(create.payload, "c", ground)
    assert await GITHUB.probe(create.payload, "c", ground) == "done"
    edit = await show(ground, "github", command="gh pr edit 24 --add-label bug")
    assert await GITHUB.probe(edit.payload, "e", ground) == "not_done"
    close = await show(ground, "github", command="gh pr close 24 --comment why")
    assert await GITHUB.probe(close.payload, "x", ground) == "unknown"
    github.write_text(json.dumps({"entries": [], "fail": [], "runs": 0, "offline": True}))
    assert await GITHUB.probe(create.payload, "c", ground) == "unknown"


async def test_without_gh_it_says_so(ground, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    proposal = await show(ground, "github", command="gh pr comment 24 --body hello")
    outcome = await GITHUB.perform(proposal.payload, "k", ground)
    assert outcome.failure == "permanent" and "not installed" in outcome.summary
    assert await GITHUB.probe(proposal.payload, "k", ground) == "unknown"


@pytest.mark.parametrize(
    "argv",
    [
        ["gh", "pr", "view", "24"],
        ["pr", "comment", "24", "--body", "x"],
        ["gh", "pr", "comment", "24", "-b", "x"],
        ["gh", "pr", "comment", "24", "--body", "x", "--repo", "evil/other"],
    ],
)
async def test_a_payload_that_was_tampered_with_is_not_run(github, ground, argv):
    with pytest.raises(CockpitError):
        await GITHUB.perform({"argv": argv}, "k", ground)
    assert json.loads(github.read_text())["runs"] == 0
