from __future__ import annotations

from pathlib import Path

import pytest
from copied_repository import copy_repository
from loop.intake.repositories import Repo

from cockpit.loop.intake.intent import Task, UnknownCommand, resolve
from cockpit.loop.intake.review_target import IntentUnclear, Repository
from cockpit.loop.intake.task_types import load_task_types

pytestmark = pytest.mark.slow

TYPES = load_task_types(None, None).types


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(copy_repository(_make_login, tmp_path / "work"))


def _make_login(root: Path) -> None:
    made = Repo(root)
    made.commit("One", {"a.py": "a = 1\n"})
    made.git("switch", "-q", "-c", "topic/login")
    made.commit("Two", {"a.py": "a = 2\n"})
    made.git("branch", "login")
    made.git("switch", "-q", "main")
    made.commit("Three", {"b.py": "b = 1\n"})


async def ask(words: str, repo: Repo) -> Task:
    return await resolve(words, TYPES, Repository(repo.root))


SPELLINGS = (
    *("/review-pr 24", "/review_pr #24", "Review PR #24", "review 24", "could you review PR 24?"),
    *("review pr 24, mind the retry loop", "/review-pr 24 mind the retry loop"),
)


async def test_every_spelling_of_a_pull_request_number(repo):
    for words in SPELLINGS:
        task = await ask(words, repo)
        assert (task.task_type, task.title, task.words) == ("review_pr", "Review PR #24", words)
        assert dict(task.target) == {"pr": 24}


async def test_a_url_names_number_and_repository(repo):
    task = await ask("review https://github.com/Acme/api/pull/7/files#diff-1", repo)
    assert dict(task.target) == {"pr": 7, "repo": "Acme/api"}
    task = await ask("/review-pr https://git.acme.test:8443/x/y/pull/9", repo)
    assert dict(task.target) == {"pr": 9, "repo": "git.acme.test:8443/x/y"}


async def test_a_url_of_another_repository_is_refused(repo):
    repo.git("remote", "add", "origin", "git@github.com:acme/api.git")
    assert (await ask("review https://github.com/acme/api/pull/7", repo)).target["pr"] == 7
    with pytest.raises(IntentUnclear, match=r"belongs to other/api.*acme/api"):
        await ask("review https://github.com/other/api/pull/7", repo)


async def test_ranges_keep_their_spelling_and_gain_commit_ids(repo):
    main, topic = repo.git("rev-parse", "main"), repo.git("rev-parse", "login")
    fork = repo.git("merge-base", "main", "login")
    for words, expected in {
        "/review-pr main..login": ("main..login", fork, topic),
        "review main...login": ("main...login", fork, topic),
        "/review-pr main ... login please": ("main...login", fork, topic),
        "/review-pr login ... mind the tests": ("main...login", fork, topic),
        "review HEAD~1..HEAD": ("HEAD~1..HEAD", fork, main),
        "review HEAD~1..": ("HEAD~1..", fork, main),
        "review the range HEAD~1..HEAD for typos": ("HEAD~1..HEAD", fork, main),
        "review topic/login": ("main...topic/login", fork, topic),
        "review branch login": ("main...login", fork, topic),
        "/review-pr login and mind the tests": ("main...login", fork, topic),
        f"review commit {topic[:9]}": (f"{topic[:9]}^..{topic[:9]}", fork, topic),
    }.items():
        task = await ask(words, repo)
        assert task.task_type == "review_pr", words
        assert tuple(task.target[name] for name in ("range", "base", "tip")) == expected, words
    assert (await ask("/review-pr main..login", repo)).title == "Review main..login"


async def test_the_current_branch_by_name_and_by_pronoun(repo):
    repo.git("switch", "-q", "topic/login")
    for words in ("review HEAD", "review my changes", "review this branch."):
        assert (await ask(words, repo)).target["range"] == "main...HEAD", words


async def test_what_cannot_be_reviewed_says_why(repo, tmp_path):
    for words, reason in {
        "/review-pr": "needs a target",
        "/review-pr nonsense": "not a pull request number or URL",
        "/review-pr main..nonsense": "nonsense names no commit here",
        "/review-pr main..topic/logn": r"names no commit here\. Did you mean topic/login\?",
        "review nope..main": "nope names no commit here",
        "review HEAD~999..main": "the history of HEAD begins after it",
        "review main": "has no commit that main lacks",
        "/review-pr --output=x": "not a pull request number",
        "/review-pr main..--output=x": "names no commit here",
        "   ": "The task is empty",
    }.items():
        with pytest.raises(IntentUnclear, match=reason):
            await ask(words, repo)
    repo.git("switch", "-q", "--orphan", "island")
    repo.commit("Alone", {"c.py": "c = 1\n"})
    with pytest.raises(IntentUnclear, match="no common history"):
        await ask("review main...island", repo)
    empty = Repo(tmp_path / "empty")
    with pytest.raises(IntentUnclear, match="no commits yet"):
        await ask("review main..HEAD", empty)
    (tmp_path / "plain").mkdir()
    with pytest.raises(IntentUnclear, match="not a git repository or it is a bare one"):
        await resolve("review main..HEAD", TYPES, Repository(tmp_path / "plain"))


async def test_an_unknown_command_names_the_nearest(repo):
    with pytest.raises(UnknownCommand, match=r"/reviw-pr\. Did you mean /review-pr\?"):
        await ask("/reviw-pr 24", repo)
    with pytest.raises(UnknownCommand, match=r"no command /zzzzqq\. Task commands"):
        await ask("/zzzzqq", repo)
    assert (await ask("/usr/bin/env is slow here", repo)).task_type == "implement"


PLAIN = {
    "/investigate why login fails": "investigate",
    "open a pull request for this branch": "create_pr",
    "file an issue about the flaky test": "create_issue",
    "bug: login fails on Safari": "bug",
    "refactor the parser into two modules": "refactor",
    "write tests for the parser": "test",
    "document the cache": "docs",
    "Please rename foo to bar": "implement",
    "can you make it faster?": "implement",
    "Why does it fail? Fix it.": "implement",
    "the login is slow": "implement",
    "commit my changes": "implement",
    "run the tests": "implement",
    "do the release": "implement",
    "we need a login page": "implement",
    "When I save, it fails": "implement",
    "Parse this .pcab file": "implement",
    "what we need is a login page": "implement",
    "How about a dark mode?": "implement",
    "Why don't you fix the tests?": "implement",
    "Are you able to run the tests?": "implement",
    "What a mess, clean up calc.py": "implement",
    "what's the timeout": "investigate",
    "how to deploy": "investigate",
    "why does the login fail": "investigate",
    "where is the timeout set": "investigate",
    "Is the cache used? How does the Trinity Architecture work?": "investigate",
    "do we need the cache?": "investigate",
    "review the login code for mistakes": "investigate",
    "review everything...": "investigate",
    "look into fixing the cache": "investigate",
}


async def test_plain_words(repo):
    for words, name in PLAIN.items():
        task = await ask(words, repo)
        assert (task.task_type, task.target) == (name, {}), words
