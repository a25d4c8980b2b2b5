"""When a task asks for knowledge: labelled prompts, with a reason for each."""

from __future__ import annotations

from pathlib import Path

from cockpit.observe.knowledge.needs_knowledge import KEYWORDS, needs_knowledge

_, WRITTEN_BY, HELD_OUT = Path(__file__).with_name("prompts.txt").read_text("utf-8").split("\n\n")


def test_every_keyword_asks_for_it_and_a_quoted_one_does_not() -> None:
    for keyword in KEYWORDS:
        assert needs_knowledge(f"the {keyword} of the importer").is_needed
    for words in ('replace "how to fix errors" with "help"', "fix the typos in README.md", "", "…"):
        need = needs_knowledge(words)
        assert not need.is_needed and need.why


def test_long_and_hostile_texts_take_no_time() -> None:
    for text in ("fix " * 50_000, "?" * 100_000, "```" * 9_000, '"' * 50_001, "can you " * 20_000):
        needs_knowledge(text)


def judge(text: str) -> tuple[int, list[str]]:
    """Return how many lines were judged as their sign says, and those that were not."""
    lines = [line.split(" ", 1) for line in text.strip().splitlines()]
    wrong = [words for sign, words in lines if needs_knowledge(words).is_needed != (sign == "+")]
    return len(lines), wrong


def test_the_labelled_prompts_are_judged_as_labelled() -> None:
    assert judge(WRITTEN_BY) == (60, [])
    count, wrong = judge(HELD_OUT)
    assert count == 40
    assert len(wrong) <= 6, wrong
