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

WRITTEN_BY = """
+ How is a release cut here?
+ what's our policy on breaking changes
+ Where do we document environment variables?
+ why are ids strings and not ints
+ tell me about the retry strategy
+ walk me through the onboarding process
+ Which database do we support in production?
+ I don't understand how sessions expire
+ what does the scheduler do when a node is down
+ remind me how migrations get applied
+ is there a convention for naming events
+ summarise the decisions we made about caching
+ give me an overview of the payment flow
+ best way to add a new locale in this project?
+ the deployment fails with error E1203, what does it mean
+ what are the steps to rotate keys
+ do we have docs for the plugin api
+ who owns the billing module and what are its invariants
+ explain the difference between a job and a task here
+ look up the limits of the upload endpoint in the docs
+ implement the export endpoint according to our api guidelines
+ add a metric following the naming rules in the handbook
+ configure logging as described in the ops guide
+ write an adr in our usual format
+ how should errors be reported to the client
+ set up the dev environment
+ migrate the worker to the new queue design
+ what happened in the last incident and what did we learn
+ I need a primer on the tokenizer
+ describe the architecture for a newcomer
- commit my changes
- rename foo to bar in utils.py
- run the tests
- fix the typo in line 12
- thanks, looks good
- yes go ahead
- push it
- revert the last commit
- delete the unused import in main.py
- bump the version to 1.4.2
- add a type hint to parse()
- format the file
- stop
- continue
- undo that
- sort the imports in app.py
- remove trailing whitespace
- make the button blue
- change the timeout from 5 to 10 in client.py
- move this function to helpers.py
- extract lines 10-30 into a function
- merge main into this branch
- squash the commits
- rerun the failing test
- add a blank line before the class
- inline the variable tmp
- replace print with logging.debug in cli.py
- ok
- no, use the other one
- checkout the branch topic
"""
"""Prompts after which rules were added; before, 18 of the 30 that need knowledge were seen."""
HELD_OUT = """
+ What is our branching model?
+ can somebody tell me why we vendored libxml
+ how come the cache is keyed by tenant
+ give me the background on the permission system
+ I would like to understand the billing state machine
+ show me how events flow from the api to the worker
+ which conventions apply to test names
+ add a health check the way our runbook describes it
+ where can I read about feature flags
+ what's the difference between staging and preview
+ is there any documentation on the import format
+ explain this stack trace please
+ summarize how authentication works
+ why did we choose sqlite
+ what should a commit message look like here
+ help me get started with the codebase
+ implement pagination following the api guidelines
+ what does exit code 137 mean in our pipeline
+ who decides on schema changes
+ write the changelog entry in the house style
- cherry-pick abc123 onto main
- replace foo with bar everywhere
- add a unit test for parse_date with an empty string
- remove the second argument of load()
- swap the two columns in the table
- kill the server
- great, now do the other file
- yes, and push afterwards
- lower the log level in worker.py to warning
- split main() in two
- rename the variable x to count
- drop support for python 3.9 in setup.cfg
- make it faster
- add a docstring to load()
- looks good
- turn the list into a set
- use pathlib in build.py
- sort keys in the json output
- delete the branch feature/x
- increase the timeout to 30 seconds
"""


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


def judge(text: str) -> tuple[int, list[str]]:
    """Return how many lines were judged as their sign says, and those that were not."""
    lines = [line.split(" ", 1) for line in text.strip().splitlines()]
    wrong = [words for sign, words in lines if needs_knowledge(words).is_needed != (sign == "+")]
    return len(lines), wrong


def test_prompts_that_the_rules_were_written_by() -> None:
    count, wrong = judge(WRITTEN_BY)
    assert (count, wrong) == (60, [])


def test_prompts_that_nobody_tuned_by() -> None:
    """They were written after the rules, which stayed as they were."""
    count, wrong = judge(HELD_OUT)
    assert count == 40
    assert len(wrong) <= 6, wrong
