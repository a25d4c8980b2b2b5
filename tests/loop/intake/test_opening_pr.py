from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from copied_repository import copy_repository
from loop.intake.gh_standin import GhStandIn
from loop.intake.repositories import Repo

from cockpit.loop.intake.cut_diff import DIFF_MAX, DIFF_NOTICE
from cockpit.loop.intake.first_message import Opening, OpeningFailed, opening
from cockpit.loop.intake.intent import Task
from cockpit.loop.intake.task_types import load_task_types

pytestmark = pytest.mark.slow

REVIEW = load_task_types(None, None).types["review_pr"]
VIEW = "pr view 24 --json title,body,state,author,closingIssuesReferences,files"
DIFF = """\
diff --git a/src/app.py b/src/app.py
index 1111111..2222222 100644
--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,3 @@
 def f():
-    return 1
+    x = 2
+    return x
"""
PR: dict[str, Any] = {
    "title": "Count {diff} from two",
    "body": "Because one was wrong.\n\nCloses #12",
    "state": "OPEN",
    "author": {"login": "ada", "name": "Ada"},
    "closingIssuesReferences": [
        {
            "number": 12,
            "url": "https://github.com/acme/api/issues/12",
            "repository": {"name": "api", "owner": {"login": "acme"}},
        }
    ],
    "files": [{"path": "src/app.py", "additions": 2, "deletions": 1}],
}
ISSUE = {"title": "One is wrong", "url": "https://github.com/acme/api/issues/12"}
EXPECTED = (Path(__file__).parent / "review_pr_24.md").read_text()


class Ground:
    def __init__(self, root: Path) -> None:
        self.root = root


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GhStandIn:
    standin = GhStandIn(tmp_path / "bin", {})
    standin.answer(VIEW, json.dumps(PR))
    standin.answer("pr diff 24", DIFF)
    standin.answer("issue view 12 --json title,url", json.dumps(ISSUE))
    standin.answer("--version", "gh version 2.23.0 (2023-02-08)\n")
    monkeypatch.setenv("PATH", f"{standin.directory}{os.pathsep}{os.environ['PATH']}")
    return standin


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(copy_repository(_make_work, tmp_path / "work"))


def _make_work(root: Path) -> None:
    made = Repo(root)
    made.commit("One", {"src/app.py": "def f():\n    return 1\n"})


async def start(repo: Repo, named: str = "") -> Opening:
    target = {"pr": 24, "repo": named} if named else {"pr": 24}
    task = Task("review_pr", "Review PR #24", "review pr 24", target)
    return await opening(task, REVIEW, Ground(repo.root))


async def test_the_message_is_the_adr_template_word_for_word(gh: GhStandIn, repo: Repo) -> None:
    opened = await start(repo)
    assert opened.text == EXPECTED
    assert opened.scope_items == ("pr:24",)
    assert opened.target == {"pr": 24}
    assert opened.rev is None
    assert "gh pr checkout 24" in opened.notice


async def test_files_are_read_at_the_head_when_this_clone_has_it(gh: GhStandIn, repo: Repo) -> None:
    head = repo.git("rev-parse", "HEAD")
    gh.answer("pr view 24 --json headRefOid", json.dumps({"headRefOid": head}))
    opened = await start(repo)
    assert (opened.rev, opened.target["head"], opened.notice) == (head, head, "")
    gh.answer("pr view 24 --json headRefOid", json.dumps({"headRefOid": "0" * 40}))
    assert (await start(repo)).rev is None


async def test_a_pull_request_named_by_url_is_asked_for_there(gh: GhStandIn, repo: Repo) -> None:
    for asked in (VIEW, "pr diff 24", "issue view 12 --json title,url"):
        gh.answers[f"{asked} --repo acme/api"] = gh.answers.pop(asked)
    gh.answer("unused")
    assert (await start(repo, "acme/api")).text == EXPECTED


async def test_an_issue_of_another_repository_is_asked_for_by_url(
    gh: GhStandIn, repo: Repo
) -> None:
    repo.git("remote", "add", "origin", "https://github.com/acme/other.git")
    gh.answer(f"issue view {ISSUE['url']} --json title,url", json.dumps(ISSUE))
    del gh.answers["issue view 12 --json title,url"]
    gh.answer("unused")
    assert (await start(repo)).text == EXPECTED


async def test_no_linked_issue_no_body_no_author(gh: GhStandIn, repo: Repo) -> None:
    bare = {**PR, "closingIssuesReferences": [], "body": None, "author": None}
    gh.answer(VIEW, json.dumps(bare))
    text = (await start(repo)).text
    assert "**Linked Issues:**\n- None\n" in text
    assert "**Body:**\n(no description)\n" in text
    assert "**Author:** (unknown)\n" in text


async def test_references_may_be_bare_numbers(gh: GhStandIn, repo: Repo) -> None:
    gh.answer(VIEW, json.dumps({**PR, "closingIssuesReferences": [12]}))
    assert (await start(repo)).text == EXPECTED


@pytest.mark.parametrize("letter", ["x", "é", "🙂"])
async def test_a_large_diff_is_cut_on_a_line_within_fifty_kibibytes(
    letter: str, gh: GhStandIn, repo: Repo
) -> None:
    added = "".join(f"+line {n} {letter * 40}\n" for n in range(3000))
    header = DIFF.split("@@")[0]
    whole = f"{header}@@ -0,0 +1,3000 @@\n{added}"
    gh.answer("pr diff 24", whole)
    listed = [{"path": "src/app.py", "additions": 3000, "deletions": 0}]
    gh.answer(VIEW, json.dumps({**PR, "files": listed}))
    text = (await start(repo)).text
    diff = text.split("**Diff:**\n")[1].split("\n\n### Tools")[0]
    fenced, _, notice = diff.rpartition("\n")
    kept = fenced.removeprefix("```diff\n").removesuffix("\n```")
    assert (
        notice == DIFF_NOTICE == ("[Diff truncated at 50KB. Use 'read <path>' for specific files.]")
    )
    assert whole.startswith(kept + "\n")
    following = whole[len(kept) + 1 :].split("\n")[0]
    size = len(kept.encode()) + 1
    assert size <= DIFF_MAX == 51_200
    assert size + len(following.encode()) + 1 > DIFF_MAX
    assert text.index("1 file changed, 3000 insertions, 0 deletions") < text.index("**Diff:**")


async def test_a_diff_of_exactly_fifty_kibibytes_is_whole(gh: GhStandIn, repo: Repo) -> None:
    header = DIFF.split("@@")[0] + "@@ -0,0 +1 @@\n+"
    whole = header + "x" * (DIFF_MAX - len(header) - 1) + "\n"
    gh.answer("pr diff 24", whole)
    assert whole in (await start(repo)).text
    gh.answer("pr diff 24", whole[:-1] + "x\n")
    text = (await start(repo)).text
    assert f"@@ -0,0 +1 @@\n```\n{DIFF_NOTICE}\n" in text


async def test_more_files_than_github_lists_are_taken_from_the_diff(
    gh: GhStandIn, repo: Repo
) -> None:
    one = (
        "diff --git a/f{n} b/f{n}\nindex 1..2 100644\n--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-a\n+b\n"
    )
    gh.answer("pr diff 24", "".join(one.format(n=n) for n in range(299)))
    listed = [{"path": f"f{n}", "additions": 1, "deletions": 1} for n in range(100)]
    gh.answer(VIEW, json.dumps({**PR, "files": listed}))
    text = (await start(repo)).text
    assert "299 files changed, 299 insertions, 299 deletions" in text
    assert "\n- `f298`\n" in text


async def test_what_is_hostile_or_secret_is_made_harmless(gh: GhStandIn, repo: Repo) -> None:
    token = "ghp_" + "a1B2" * 9
    gh.answer(
        VIEW,
        json.dumps(
            {**PR, "title": "A\x1b]52;c;eA\x07\nB\u202e", "body": f"key {token}\x9b31m\r\nx"}
        ),
    )
    gh.answer(
        "pr diff 24",
        DIFF
        + "+\x1b[2J \udcff\r\n".encode("utf-8", "surrogateescape").decode(
            "utf-8", "surrogateescape"
        ),
    )
    text = (await start(repo)).text
    assert "**Title:** `A⟦U+001B⟧]52;c;eA⟦U+0007⟧⟦U+000A⟧B⟦U+202E⟧`\n" in text
    assert "key [masked:github-token]⟦U+009B⟧31m␍\nx" in text
    assert "+⟦U+001B⟧[2J \ufffd␍" in text
    assert token not in text
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)


@pytest.mark.parametrize(
    ("asked", "err", "code", "sentence"),
    [
        (VIEW, "To get started with GitHub CLI, please run:  gh auth login", 4, "not logged in"),
        (VIEW, "HTTP 401: Bad credentials (https://api.github.com/graphql)", 1, "not logged in"),
        (
            VIEW,
            "GraphQL: Could not resolve to a PullRequest with the number of 24. (repository.pullRequest)",
            1,
            "There is no pull request 24",
        ),
        (
            VIEW,
            "GraphQL: Could not resolve to a Repository with the name 'a/b'. (repository)",
            1,
            "no such repository",
        ),
        (
            VIEW,
            'Unknown JSON field: "closingIssuesReferences"\nAvailable fields:\n  additions\n',
            1,
            r"gh 2\.23\.0 is too old.*closingIssuesReferences.*2\.72\.0",
        ),
        (VIEW, 'Unknown JSON field: "files"\n', 1, r"gh 2\.23\.0 is too old.*files.*2\.72\.0"),
        (VIEW, "unknown flag: --json\n", 1, r"gh 2\.23\.0 is too old.*--json"),
        (
            VIEW,
            "error connecting to api.github.com\ncheck your internet connection",
            1,
            "could not be reached",
        ),
        (VIEW, "dial tcp: lookup api.github.com: no such host", 1, "could not be reached"),
        (VIEW, "none of the git remotes configured for this repository point", 1, "not a checkout"),
        (VIEW, "HTTP 403: API rate limit exceeded for user ID 1.", 1, "rate limit is used up"),
        (VIEW, "strange \x1b[31mthing", 1, "could not fetch pull request 24: strange ⟦U"),
        (
            "pr diff 24",
            "could not find pull request diff: HTTP 406: Sorry, the diff exceeded the maximum "
            "number of files (300). Consider using 'List pull requests files' API",
            1,
            "300 files or 20,000 lines, and pull request 24 has one: run `gh pr checkout 24`",
        ),
        (
            "pr diff 24",
            "HTTP 406: Sorry, the diff exceeded the maximum number of lines (20000)",
            1,
            "300 files or 20,000 lines",
        ),
        (
            "issue view 12 --json title,url",
            "GraphQL: Could not resolve to an issue or pull request with the number of 12.",
            1,
            "An issue that pull request 24 closes cannot be read",
        ),
        ("issue view 12 --json title,url", "HTTP 502", 1, "could not be reached"),
    ],
)
async def test_every_failure_is_one_sentence_and_injects_nothing(
    asked: str, err: str, code: int, sentence: str, gh: GhStandIn, repo: Repo
) -> None:
    gh.answer(asked, err=err, code=code)
    with pytest.raises(OpeningFailed, match=sentence) as failed:
        await start(repo)
    assert "\n" not in str(failed.value)
    assert "\x1b" not in str(failed.value)


async def test_an_answer_that_is_not_the_json_asked_for(gh: GhStandIn, repo: Repo) -> None:
    for out in ("", "[]", '{"title": 3}', "\x00"):
        gh.answer(VIEW, out)
        with pytest.raises(OpeningFailed, match="other than the JSON"):
            await start(repo)


async def test_gh_that_is_not_installed(
    tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_git = tmp_path / "only-git"
    only_git.mkdir()
    for name in ("git",):
        found = next(
            Path(place) / name
            for place in os.environ["PATH"].split(os.pathsep)
            if (Path(place) / name).exists()
        )
        (only_git / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(only_git))
    with pytest.raises(OpeningFailed, match="gh, GitHub's command line, is not installed"):
        await start(repo)
