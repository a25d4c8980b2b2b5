"""What the user says beside a target reaches the prompt, and a range of branches is what the second adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_repository import copy_repository
from loop.intake.repositories import Repo

from cockpit.loop.intake.first_message import Opening, opening
from cockpit.loop.intake.intent import IntentUnclear, resolve
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.task_types import load_task_types

pytestmark = pytest.mark.slow

TYPES = load_task_types(None, None).types
ON_GITHUB = {*(name for name, kind in TYPES.items() if kind.needs_issue), "create_issue"}
"""They begin with what gh says; their templates have the words."""


class Ground:
    def __init__(self, root: Path) -> None:
        self.root = root


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """``topic`` adds b.py to main, which has gained later.py since."""
    return Repo(copy_repository(_make_topic, tmp_path / "work"))


def _make_topic(root: Path) -> None:
    repo = Repo(root)
    repo.commit("Start", {"a.py": "a = 1\n"})
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit("Add b", {"b.py": "b = 2\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("Go on", {"later.py": "later = 3\n"})
    repo.git("checkout", "-q", "topic")


async def start(words: str, repo: Repo) -> Opening:
    task = await resolve(words, TYPES, Repository(repo.root))
    return await opening(task, TYPES[task.task_type], Ground(repo.root))


async def test_what_the_user_says_beside_the_target_is_in_the_first_message(repo: Repo) -> None:
    own = [kind for kind in TYPES.values() if not kind.needs_target and kind.name not in ON_GITHUB]
    for words in (
        "review topic and look at the NONCE",
        "review main..topic, the NONCE above all",
        "/review-pr topic the NONCE",
        "review main...topic\n\nMind the NONCE.",
        "review this branch\nMind the NONCE.",
        *(f"{kind.command} the NONCE" for kind in own),
        "Why does the NONCE fail?",
    ):
        assert "NONCE" in (await start(words, repo)).text, words


async def test_a_range_of_branches_begins_where_they_part_and_one_of_commits_is_taken_as_it_is(
    repo: Repo,
) -> None:
    for words in ("review main..topic", "review main..HEAD", "/review-pr topic"):
        text = (await start(words, repo)).text
        assert "b.py" in text and "later.py" not in text
        assert "User's Words" not in text, "a bare target adds nothing to the template"
    main = repo.git("rev-parse", "main")
    text = (await start(f"review {main}..topic", repo)).text
    assert "has 1 commit that the tip lacks" in text and "- `later.py` (removed)" in text


async def test_a_branch_and_a_tag_of_one_name_are_told_apart(repo: Repo) -> None:
    repo.git("tag", "topic", "main")
    with pytest.raises(IntentUnclear, match="heads/topic"):
        await start("review topic", repo)
    assert "b.py" in (await start("review main..heads/topic", repo)).text
