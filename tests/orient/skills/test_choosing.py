"""Which skills a task gets: mentions, ranking, scope, and the labelled prompts of the bench."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.core.skills.skill import Skill
from cockpit.core.skills.skill_layers import SkillPlace, load_skills
from cockpit.orient.skills.choose_skills import Scope, choose_skills, find_mentions
from cockpit.orient.skills.keep_skills import LoadedSkill, find_drifted, find_unused, uses_skill
from cockpit.orient.skills.rank_skills import NO_SKILL, build_index, rank_skills

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "bench" / "data" / "skills"


def library() -> dict[str, Skill]:
    built_in = load_skills([SkillPlace("built-in", ROOT / "cockpit" / "data" / "skills")])
    skills = dict(built_in.skills)
    for line in (DATA / "skills.tsv").read_text().splitlines():
        name, description = line.split("\t")
        skills[name] = Skill(name, description, "user", Path("/s", name), "x", 1, name)
    return skills


SKILLS = library()
INDEX = build_index(SKILLS.values())


def names(words: str, *, is_named: bool | None = False, **fields: object) -> list[str]:
    """Return what is loaded for ``words``, or what is only named; None: both."""
    chosen = choose_skills(SKILLS, INDEX, words, **fields)  # type: ignore[arg-type]
    return [choice.name for choice in chosen if is_named in (None, choice.is_named)]


def prompts(file: str = "prompts.tsv") -> Iterator[tuple[str, str]]:
    for line in (DATA / file).read_text().splitlines():
        want, text = line.split("\t")
        yield want, text


@pytest.mark.parametrize("file", ["prompts.tsv", "fresh_prompts.tsv"])
def test_labelled_prompts_keep_the_bars_by_words_alone(file: str) -> None:
    labelled = list(prompts(file))
    assert len(SKILLS) == 60
    some = [(set(want.split(",")), text) for want, text in labelled if want != "-"]
    none = [text for want, text in labelled if want == "-"]
    assert len(some) + len(none) >= 110
    assert sum(bool(want & set(names(text, is_named=None))) for want, text in some) >= 0.9 * len(
        some
    )
    assert sum(not names(text) for text in none) >= 0.9 * len(none)


def test_realistic_prompts_load_the_right_skill_and_others_none() -> None:
    labelled = list(prompts("realistic_prompts.tsv"))
    right = [want in names(text) for want, text in labelled if want != "-"]
    wrong = [text for want, text in labelled if want == "-" and names(text)]
    assert (len(right), len(labelled)) == (25, 41)
    assert sum(right) >= 20
    assert len(wrong) <= 1, wrong


def test_the_best_is_loaded_where_it_is_sure_and_others_are_named() -> None:
    words = "find the bug behind the traceback, and squash the last commits of the branch"
    assert names(words) == ["git"]
    assert names(words, is_named=True)[0] == "debugging"
    assert len(names(words, is_named=None)) <= 3
    weak = "the colleagues upstairs want it in contrast"
    assert names(weak) == []
    assert names(weak, is_named=True)


@pytest.mark.parametrize(
    ("words", "wanted", "refused"),
    [
        ("use git to squash it", ["git"], []),
        ("$git squash it", ["git"], []),
        ("please use the code review skill", ["code-review"], []),
        ("follow our `code-review` skill, then use git", ["code-review", "git"], []),
        ("do not use git here", [], ["git"]),
        ("without the pdf skill", [], ["pdf"]),
        ("never use docker, but use git", ["git"], ["docker"]),
        ("what is git-flow, and is it in /git/hooks?", [], []),
        ("the digital legitimacy of it", [], []),
        ("USE GIT NOW", ["git"], []),
    ],
)
def test_mentions(words: str, wanted: list[str], refused: list[str]) -> None:
    mentions = find_mentions(words, SKILLS)
    assert list(mentions.wanted) == wanted
    assert set(refused) <= mentions.refused


def test_a_mention_needs_no_match_and_a_refusal_beats_one() -> None:
    assert names("use terraform to fix the traceback")[0] == "terraform"
    assert "git" not in names("squash the last commits, but do not use git")
    assert "git" not in names("use git", unloaded=["git"])
    assert "git" not in names("squash the commits", never=["git"])
    assert "git" in names("use git", never=["git"])


def test_a_scope_limits_what_matches_and_not_what_is_mentioned() -> None:
    words = "find the bug behind the traceback, and squash the last commits of the branch"
    assert {"git", "debugging"} <= {*names(words, is_named=None)}
    assert names(words, scope=Scope((("debug*",),))) == ["debugging"]
    assert names(words, scope=Scope((("!git",),))) == ["debugging"]
    assert names(words, scope=Scope((("*",), ("docker",))), is_named=None) == []
    assert names(f"use git, {words}", scope=Scope((("docker",),))) == ["git"]


def test_each_step_of_a_task_gets_its_skill() -> None:
    words = "Extract the tables out of the annual pdf, then rebase the branch"
    assert set(names(words)) == {"pdf", "git"}


def test_the_task_type_of_a_skill_is_reason_enough() -> None:
    assert names("look into it", task_type="review_pr") == ["code-review"]
    (choice,) = choose_skills(SKILLS, INDEX, "look into it", task_type="review_pr")
    assert (choice.how, choice.why) == ("type", "task type review_pr")


def test_a_skill_only_by_name_is_never_guessed() -> None:
    quiet = {**SKILLS, "git": replace(SKILLS["git"], only_by_name=True)}
    chosen = choose_skills(quiet, INDEX, "squash the last commits of the branch")
    assert "git" not in [choice.name for choice in chosen]
    assert choose_skills(quiet, INDEX, "$git squash")[0].name == "git"


def test_what_is_near_to_tasks_that_need_no_skill_has_to_match_better() -> None:
    words, near = "it printed nothing whatsoever yesterday", {"debugging": 0.40}
    assert names(words, vectors=near) == ["debugging"]
    unsure = {**near, NO_SKILL: 0.25}
    assert (names(words, vectors=unsure), names(words, vectors=unsure, is_named=True)) == (
        [],
        ["debugging"],
    )
    assert names(words, vectors={**near, NO_SKILL: 0.60}, is_named=None) == []


@pytest.mark.search
@settings(max_examples=examples(10))
@given(st.text(max_size=200), st.randoms(use_true_random=False))
def test_the_ranking_depends_on_skills_and_words_alone(words: str, random: object) -> None:
    shuffled = list(SKILLS.values())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ranked = rank_skills(INDEX, words)
    assert ranked == rank_skills(build_index(shuffled), words)
    assert list(ranked) == sorted(ranked, key=lambda each: (-each.score, each.name))
    assert len(choose_skills(SKILLS, INDEX, words)) <= 3


def test_a_message_moves_on_only_where_it_chooses_something_new() -> None:
    loaded = [LoadedSkill("git", "match", 1), LoadedSkill("pdf", "user", 1)]

    def drifted(message: str, used: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
        chosen = choose_skills(SKILLS, INDEX, message)
        gone = find_drifted(loaded, chosen, INDEX, message, most=3, recently_used=used)
        return [(removal.name, removal.how) for removal in gone]

    assert drifted("yes, go on") == []
    assert drifted("write a Dockerfile with a multi-stage build") == [("git", "drift")]
    assert drifted("write a Dockerfile with a multi-stage build", frozenset({"git"})) == []
    assert drifted("use docker") == [("git", "mention")]
    assert drifted("use docker, and squash the commits") == []


def test_room_is_made_for_what_is_new() -> None:
    loaded = [LoadedSkill(name, "match", at) for at, name in enumerate(("git", "pdf", "nginx"), 1)]
    chosen = choose_skills(SKILLS, INDEX, "use docker")
    used = frozenset({"git", "pdf", "nginx"})
    gone = find_drifted(
        loaded, [replace(chosen[0], how="match")], INDEX, "use docker", most=3, recently_used=used
    )
    assert [(removal.name, removal.how) for removal in gone] == [("git", "room")]


def test_what_six_waves_do_not_use_goes() -> None:
    loaded = [LoadedSkill("git", "mention", 1), LoadedSkill("pdf", "user", 1)]
    quiet = ["I read app.py"] * 6
    assert [r.name for r in find_unused(loaded, SKILLS, 7, quiet)] == ["git"]
    assert not find_unused(loaded, SKILLS, 6, quiet)
    assert not find_unused(loaded, SKILLS, 7, [*quiet[1:], 'run {"argv":["git","rebase"]}'])
    assert uses_skill(SKILLS["git"], "request skill:git/references/rescue.md")
