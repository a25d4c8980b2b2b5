"""``pr:`` and ``issue:`` through a stand-in for gh: what is read, and one clear sentence else."""

from __future__ import annotations

import json

import pytest
from observe_loop import scenario
from observe_world import Project

from cockpit import ApprovalRequest, OmniLoop
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import parse_item
from cockpit.observe.sources.github import GhFailed, IssueSource, PullRequestSource
from cockpit.store.context.facts import Fact

pytestmark = pytest.mark.slow

CANARY = "ghp_" + "a1B2" * 9
PR = {
    "number": 24,
    "title": "Load with a mode",
    "body": f"Adds a mode.\r\nToken {CANARY}",
    "state": "OPEN",
    "author": {"login": "ada"},
    "baseRefName": "main",
    "headRefName": "feature",
    "closingIssuesReferences": [{"number": 7}],
    "files": [{"path": "src/app.py", "additions": 2, "deletions": 2},
              {"path": "new.py", "additions": 1, "deletions": 0}],
    "additions": 3,
    "deletions": 2,
    "labels": [{"name": "bug"}],
    "url": "https://github.com/acme/api/pull/24",
}  # fmt: skip
PATCH = (
    "diff --git a/src/app.py b/src/app.py\nindex 1..2 100644\n--- a/src/app.py\n+++ b/src/app.py\n"
    "@@ -1,2 +1,2 @@\n-old\n+new\n"
    "diff --git a/new.py b/new.py\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/new.py\n"
    "@@ -0,0 +1 @@\n+x\n"
)
ISSUE = {
    "title": "It breaks",
    "body": "Words",
    "state": "OPEN",
    "author": {"login": "bob"},
    "labels": [],
    "url": "https://github.com/acme/api/issues/7",
    "comments": [{"author": {"login": "eve"}, "body": "me too"}],
}


def ground(project: Project) -> ProjectSnapshot:
    return ProjectSnapshot.at(project.root, repo="acme/api")


async def pr(project: Project, text: str = "pr:24") -> list[Fact]:
    return await PullRequestSource().fetch(parse_item(text), ground(project))


async def test_a_pull_request_is_its_words_and_its_files(project, github) -> None:
    github.answer("pr view 24 *", json.dumps(PR))
    github.answer("pr diff 24 *", PATCH)
    described, app, new = await pr(project)
    assert described.source_type == "pr" and described.source_ref == "pr:24"
    assert described.full.text.startswith(
        "Pull request 24: Load with a mode\nstate: OPEN, author: ada\n"
        "branch: feature into main\nchanges: 2 files, +3 −2\ncloses: #7\nlabels: bug\n\nAdds a mode.\n"
    )
    assert described.full.text.endswith("src/app.py +2 −2\nnew.py +1 −0")
    assert CANARY not in repr(described)
    assert app.source_type == "diff" and app.source_ref == "pr:24 in src/app.py"
    assert new.provenance is not None and new.provenance["status"] == "added"
    assert await pr(project, app.source_ref) == [app]
    first = github.calls()[0]
    assert first[:3] == ["pr", "view", "24"] and first[-2:] == ["--repo", "acme/api"]


async def test_an_issue_comes_with_its_comments(project, github) -> None:
    github.answer("issue view 7 *", json.dumps(ISSUE))
    (fact,) = await IssueSource().fetch(parse_item("issue:7"), ground(project))
    assert fact.full.text == (
        "Issue 7: It breaks\nstate: OPEN, author: bob\n\nWords\n\neve wrote:\nme too"
    )


async def test_github_is_asked_only_after_the_approval(project, github, tmp_path) -> None:
    project.git("remote", "add", "origin", "https://github.com/acme/api.git")
    github.answer("issue view 7 *", json.dumps(ISSUE))
    github.answer("issue list*", "7 It breaks")
    seen = []

    def approve(request: ApprovalRequest) -> bool:
        """Note what was shown, and what had been run by then."""
        items = [(each["item"], each["tokens"]) for each in request.body["items"]]
        seen.append((items, len(github.calls())))
        return True

    model = scenario(tmp_path, ["issue:7", "gh:issue list"], ["issue:7"])
    loop = OmniLoop(project=project.root, model=model, approve=approve)
    assert (await loop.run("look into it", max_steps=4)).status == "done"
    (_, (again, _)) = seen
    assert seen[0] == ([("issue:7", None), ("gh:issue list", None)], 0)
    assert again == [("issue:7", pytest.approx(24, abs=8))], "as large as it was when it was read"


async def test_an_old_gh_is_asked_for_less(project, github) -> None:
    old = {key: value for key, value in PR.items() if key != "closingIssuesReferences"}
    unknown = 'Unknown JSON field: "closingIssuesReferences"\nAvailable fields:\n  author'
    github.answer("pr view *closing*", err=unknown, code=1)
    github.answer("pr view 24 *", json.dumps(old))
    github.answer("pr diff 24 *", PATCH)
    described, *_ = await pr(project)
    assert "Load with a mode" in described.full.text and "closes" not in described.full.text


FAILURES = [
    ("To get started with GitHub CLI, please run:  gh auth login", "gh_login", "gh auth login"),
    ("HTTP 401: Bad credentials (https://api.github.com/graphql)", "gh_login", "logged in"),
    ("GraphQL: Could not resolve to a PullRequest with the number of 24.", "gh_not_found", "no such"),
    ("could not find pull request diff: HTTP 406: Sorry, the diff exceeded the maximum number"
     " of lines (20000)", "gh_too_large", "HTTP 406"),
    ('Post "https://api.github.com": dial tcp: lookup: no such host', "gh_network", "reached"),
    ("HTTP 502: Bad gateway", "gh_network", "reached"),
    ("HTTP 403: API rate limit exceeded for user", "gh_rate_limit", "rate limit"),
    ("HTTP 403: Resource not accessible", "gh_forbidden", "HTTP 403"),
    ("no git remotes found", "gh_no_repository", "remotes"),
    ("something new\nand more", "gh_failed", "something new"),
    ("", "gh_failed", "ended with 1"),
]  # fmt: skip


async def test_every_failure_is_one_clear_sentence(project, github) -> None:
    for said, code, words in FAILURES:
        github.answer("pr view *", err=said, code=1)
        with pytest.raises(GhFailed) as failed:
            await pr(project)
        assert failed.value.code == code
        assert str(failed.value).startswith("pr:24 cannot be read: ")
        assert words in str(failed.value) and "\n" not in str(failed.value)


async def test_a_diff_too_large_gives_nothing_at_all(project, github) -> None:
    github.answer("pr view *", json.dumps(PR))
    github.answer("pr diff *", err="HTTP 406: too_large", code=1)
    with pytest.raises(GhFailed, match=r"diff:BASE\.\.\.HEAD"):
        await pr(project)


async def test_without_gh_it_says_how_to_get_it(project, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GhFailed, match="not installed") as failed:
        await pr(project)
    assert failed.value.code == "gh_missing"
    off = ProjectSnapshot(ProjectSnapshot.at(project.root).confined, repo="acme/api", gh=False)
    with pytest.raises(GhFailed, match="switched off"):
        await IssueSource().preview(parse_item("issue:7"), off)
