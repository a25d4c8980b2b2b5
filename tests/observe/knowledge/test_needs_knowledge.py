"""When a task asks for knowledge: a labelled list, with a reason for each."""

from __future__ import annotations

import pytest

from cockpit.observe.knowledge.needs_knowledge import KEYWORDS, needs_knowledge

NEEDED = (
    "How does the Trinity Architecture work?",
    "what is a wave",
    "why are payments retried?",
    "explain the retry policy",
    "how to release a new version",
    "Where is the retry of a model call?",
    "which settings limit the cost of a session?",
    "write a tutorial for the first review",
    "document the API of the store",
    "add an example to the guide",
    "what's the best practice for migrations here",
    "design the new importer",
    "debug the failing login",
    "fix the login bug in auth.py",
    "there is an error in the parser",
    "the config is not read",
    "change the default setting of the timeout",
    "Fix the bug where amounts are rounded down",
    "can you explain how locks work?",
    "run the tests and explain why they fail",
    "implement the export according to our conventions",
    "make it follow the project's guidelines",
    "is the cache shared between workers?",
    "does the hook run for every tool?",
    "the tests fail, how do I fix this?",
    "show me how to add a migration",
    "commit my changes? how is a commit message written here?",
    "fixing errors in the configuration reader",
    "review the architecture of the sync layer",
    "the exporter loses rows, any idea?",
    "update the reference page of the client",
    "fix the typo in the API documentation",
)
NOT_NEEDED = (
    "commit my changes",
    "please commit and push",
    "push it",
    "git rebase main",
    "fix it in place",
    "fix it",
    "fix this now",
    "just fix that please",
    "fix the typo",
    "fix the typos in README.md",
    "fix all lint",
    "fix the imports",
    "fix the merge conflicts",
    "run the tests",
    "rerun it",
    "continue",
    "go on",
    "go ahead and push",
    "ok",
    "yes, do it",
    "thanks!",
    "looks good",
    "lgtm",
    "rename foo to bar",
    "delete the temporary files",
    "undo the last change",
    "show the diff",
    "list the files in src",
    "format the code",
    "bump the version",
    "apply the patch",
    "revert that",
    "stop",
    "retry",
    "add a blank line at the end",
    "move parser.py into core",
    "do this again",
    "when done, push",
    "what's up?",
    "how are you",
    "",
    "…",
    'replace "how to fix errors" with "help"',
)


@pytest.mark.parametrize("words", NEEDED)
def test_it_is_needed(words: str) -> None:
    need = needs_knowledge(words)
    assert need.is_needed and need.why


@pytest.mark.parametrize("words", NOT_NEEDED)
def test_it_is_not_needed(words: str) -> None:
    need = needs_knowledge(words)
    assert not need.is_needed and need.why


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_asks_for_it(keyword: str) -> None:
    assert needs_knowledge(f"the {keyword} of the importer").is_needed


def test_long_and_hostile_texts_take_no_time() -> None:
    for text in ("fix " * 50_000, "?" * 100_000, "```" * 9_000, '"' * 50_001, "can you " * 20_000):
        needs_knowledge(text)
