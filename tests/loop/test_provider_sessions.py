"""Whole sessions with a provider at the other end of the wire, in each of its protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands.cli_world import Project
from loopback.replies import Drop, Refuse, Reply, Say, Use
from loopback.server import Loopback, LoopbackThread
from state_for_tests import state_of

pytestmark = pytest.mark.slow

VENDORS = ("anthropic", "openai", "openai-compatible")
KEY = "canary-" + "4f9Kq2" * 4

SCOPE = {
    "purpose": "fix add",
    "question": "what does add do?",
    "scope": ["file:calc.py", "file:test_calc.py"],
}
ASK = Say("I need two files.", calls=(Use("request_context", SCOPE),))
EDIT = Use("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"})
RUN = Use("run", {"argv": ["test", "-d", "."], "reason": "see it"})
ACT = Say("The sign is wrong.", calls=(EDIT, RUN))
FINISH = Say("", calls=(Use("finish", {"status": "done", "summary": "add adds"}),))
STOP = Say("", calls=(Use("finish", {"status": "blocked", "summary": "Only looking."}),))
STORY: tuple[Reply, ...] = (ASK, ACT, FINISH)


class Provided:
    """A project whose provider is the loopback server."""

    def __init__(self, project: Project, vendor: str, server: Loopback) -> None:
        names = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-6", "openai-compatible": "local"}
        self.project, self.server = project, server
        self.model = f"{vendor}:{names[vendor]}"
        variables = {
            "anthropic": {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url},
            "openai": {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.openai_url},
            "openai-compatible": {"COCKPIT_API_KEY": KEY, "COCKPIT_BASE_URL": server.openai_url},
        }
        project.extra.update(variables[vendor])

    def run(self, *words: str, expect: int = 0) -> dict[str, Any]:
        """Run (or go on), everything approved; gives the document. The key shows nowhere."""
        options = ("--approve", "all", "--output-format", "json")
        done = self.project.run("run", *words, *options, expect=expect)
        self.said = done.stderr
        written = ((self.project.root / ".cockpit"), state_of(self.project.root))
        kept = [path for top in written for path in top.rglob("*") if path.is_file()]
        assert kept
        for path in kept:
            assert KEY.encode() not in path.read_bytes(), path
        assert KEY not in done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def fix(self, *replies: Reply, expect: int = 0) -> dict[str, Any]:
        """The task from its beginning, answered by ``replies``."""
        self.server.play(replies)
        document = self.run("fix add", "--model", self.model, expect=expect)
        assert self.server.unexpected == []
        return document

    def actions(self) -> list[str]:
        """The actions of the journal's rows."""
        exported = self.project.run("journal", "--all", "--json").stdout.splitlines()
        return [json.loads(line)["action"] for line in exported]

    def sent(self, place: int) -> str:
        """The body of one request, as text."""
        return json.dumps(self.server.requests[place].body)

    def done(self, document: dict[str, Any]) -> bool:
        assert document["result"] == {"status": "done", "summary": "add adds"}, document
        assert "a + b" in (self.project.root / "calc.py").read_text("utf-8")
        return True


@pytest.fixture
def provided(request: Any, project: Path, tmp_path: Path) -> Iterator[Provided]:
    """One vendor's protocol, end to end."""
    vendor = getattr(request, "param", "openai-compatible")
    with LoopbackThread() as server:
        yield Provided(Project(project, tmp_path / "config"), vendor, server)


@pytest.mark.parametrize("provided", VENDORS, indirect=True)
def test_a_whole_session(provided):
    document = provided.fix(*STORY)
    assert provided.done(document)
    provided.project.run("debug", "journal")
    provided.project.run("debug", "packet", "verify")
    assert [action["type"] for action in document["actions"]] == ["edit_file", "run"]
    assert {action["phase"] for action in document["actions"]} == {"confirmed"}
    assert document["usage"]["input_tokens"] >= 3 * 1200
    first, second, third = (provided.sent(place) for place in range(3))
    assert "return a - b" not in first and "return a - b" in second
    assert all(name in first for name in ("request_context", "edit_file", "git_commit", "finish"))
    assert "is written" in third and "return a + b" in third
    for request in provided.server.requests:
        assert KEY in json.dumps(request.headers) and KEY not in json.dumps(request.body)


def test_a_session_that_the_provider_fails_can_resume(provided):
    """A key that is refused, an empty answer, and one that a filter stops."""
    document = provided.fix(Refuse(401, "invalid x-api-key"), expect=1)
    words = ("--continue", document["session_id"])
    assert document["status"] == "failed"
    assert "key" in provided.said and " ".join(words) in provided.said
    replies = {
        "without text and without a call": Say(""),
        "content filter": Say("Hm", stop="filter"),
        "I would rather not.": Say(refusal="I would rather not."),
    }
    for reason, reply in replies.items():
        provided.server.play([reply] * (1 if reply.text or reply.refusal else 3))
        document = provided.run(*words, expect=1)
        assert document["status"] == "failed"
        assert reason in provided.said
    # An empty answer was asked for three times, and each one counts.
    assert document["usage"]["output_tokens"] == 34 * (len(replies) + 2)
    provided.server.play(STORY)
    assert provided.done(provided.run(*words))


def test_a_limit_of_cost_without_a_known_price_is_refused(provided):
    """At the start, when the session gets a limit, and for a chain."""
    message = "No price is known for openai-compatible:local"
    limited = ("run", "fix add", "--model", provided.model, "--max-cost", "1", "--approve", "all")
    refused = provided.project.run(*limited, expect=2).stderr
    assert message in refused
    assert "--max-tokens" in refused
    provided.server.play([Say("Which one?")])
    provided.project.run("run", "fix add", "--model", provided.model, expect=4)
    words = ("run", "the first", "--continue", "last", "--max-cost", "1")
    assert message in provided.project.run(*words, expect=2).stderr
    provided.project.run("tasks", "add", "Fix add")
    chain = ("work", "--all", "--headless", "--model", provided.model, "--max-cost", "1")
    refused = provided.project.run(*chain, expect=2).stderr
    # `cockpit work` has no --max-tokens: the advice names what it has.
    assert message in refused and "--max-chains" in refused and "--max-tokens" not in refused
    assert provided.project.json("chain", "--json") == []
    assert provided.server.unexpected == []


def test_a_model_without_a_list_price_is_limited_by_the_users_price_or_by_tokens(provided):
    provided.server.play([ASK, ACT])
    document = provided.run("fix add", "--model", provided.model, "--max-tokens", "1500", expect=1)
    assert document["result"]["status"] == "limit"
    assert "The limit of 1,500 tokens is reached" in document["result"]["summary"]
    folder = provided.project.config
    folder.mkdir(parents=True, exist_ok=True)
    price = "input = 1000\noutput = 0\ncached_input = 250\ncache_write = 1500\n"
    (folder / "config.toml").write_text(f'[prices."{provided.model}"]\n{price}')
    provided.server.play([ASK])
    document = provided.run("fix add", "--model", provided.model, "--max-cost", "0.1", expect=1)
    assert document["result"]["status"] == "limit"
    usage = document["usage"]
    plain = usage["input_tokens"] - usage["cached_tokens"]
    assert usage["cost_usd"] == (1_000 * plain + 250 * usage["cached_tokens"]) / 1_000_000
    packet = document["waves"][0]["packet"]
    assert packet["prices"] == {"read": 250, "write": 1_500, "lifetime_s": 300}
    cached = packet["cached_reported"]
    assert packet["cost_units"] == -(-(1_500 * packet["rendered_tokens"] - 1_250 * cached) // 1_000)


BROKEN = Say(
    "Let me see.",
    calls=(
        Use("edit_file", '{"path": "calc.py", "old": '),
        Use("launch", {"missiles": True}),
        Use("run", {"argv": "ls", "reason": 3}),
    ),
)


@pytest.mark.parametrize("provided", ["anthropic"], indirect=True)
def test_a_provider_in_trouble_is_waited_for_told_and_answered(provided):
    """A rate limit, a lost connection, an empty answer, a stream that breaks, calls that cannot be read, and
    a number of tokens that no call has."""
    busy = Refuse(429, "slow down", retry_after="0")
    cut = Say("I begin with a word about what I am going to do here", cut_after=6)
    wrong = replace(ACT, output_tokens=2**70)
    document = provided.fix(busy, ASK, Drop(), Say(""), cut, BROKEN, wrong, FINISH)
    assert provided.done(document)
    assert len(document["waves"]) == 5
    actions = provided.actions()
    assert actions.count("model.retried") == 3
    assert document["usage"]["input_tokens"] + document["usage"]["output_tokens"] < 20_000
    story = provided.project.run("sessions", "last").stdout
    assert story.count("The provider reported impossible numbers of tokens (") == 1
    assert actions.count("model.malformed_call") == 3
    sent = [provided.sent(place) for place in range(len(provided.server.requests))]
    assert any("cut off by the connection" in each for each in sent)
    assert any("Not understood" in each for each in sent)
    told = [place for place, each in enumerate(sent) if "Your last answer was empty" in each]
    assert told == [4], "it is said in the call that follows, and only there"
    assert [action["type"] for action in document["actions"]] == ["edit_file", "run"]


def test_a_provider_that_counts_more_gets_smaller_prompts(project, tmp_path):
    """The same session twice: where the provider counts more than cockpit, the next packet holds less."""
    (project / "notes").mkdir()
    for number in range(20):
        words = "".join(f"Line {line} of note {number}: turn left.\n" for line in range(24))
        (project / "notes" / f"n{number:02}.md").write_text(words)
    scope = {"purpose": "look", "question": "where to?", "scope": ["file:notes/*.md"]}
    asks = {"purpose": "look", "question": "more?", "scope": ["file:calc.py"]}
    with LoopbackThread() as server:
        provided = Provided(Project(project, tmp_path / "config"), "openai-compatible", server)
        provided.project.extra["ORIENTATION_TOKEN_BUDGET"] = "9000"

        def waves(first: int) -> list[dict[str, Any]]:
            ask = Say("", calls=(Use("request_context", scope),), input_tokens=first)
            again = Say("", calls=(Use("request_context", asks),), input_tokens=first)
            document = provided.fix(ask, again, STOP, expect=1)
            provided.project.run("debug", "packet", "verify")
            found: list[dict[str, Any]] = document["waves"]
            return found

        fair = waves(1_000)
        fair_prompt = len(provided.sent(-2))
        assert "The provider counted" not in provided.project.run("sessions", "last").stdout
        counted = fair[0]["packet"]["rendered_tokens"]
        more = waves(counted * 3 // 2)
        assert "The provider counted" not in provided.project.run("sessions", "last").stdout
        assert len(provided.sent(-2)) < fair_prompt * 4 // 5
        assert more[1]["packet"]["rendered_tokens"] <= 9_000
        waves(90_000)
        story = provided.project.run("sessions", "last").stdout
        assert story.count("The provider counted 90,000 tokens for the prompt of wave 1") == 1
