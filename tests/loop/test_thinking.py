"""What a model thinks, with providers that refuse a request in which it is missing or altered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands.cli_world import Project
from loop.test_provider_sessions import ACT, ASK, FINISH, Provided
from loopback.replies import Refuse, Reply, Say, sign
from loopback.server import LoopbackThread, Received

from cockpit.decide.model import PacketFact, PromptMessage, ThinkingBlock
from cockpit.decide.render_prompt import render

pytestmark = pytest.mark.slow

THOUGHTS = ('I have not seen the file yet.\nSo I read it: ünïcode {"a": 1}', "A minus is a plus.")


@pytest.fixture
def provided(request: Any, project: Path, tmp_path: Path) -> Iterator[Provided]:
    vendor = getattr(request, "param", "anthropic")
    with LoopbackThread() as server:
        provided = Provided(Project(project, tmp_path / "config"), vendor, server)
        if vendor == "openai":
            provided.model = "openai:gpt-6.1-terra"
        yield provided


def thoughtful(say: Say, thinking: str, *, redacted: bool = False) -> Say:
    return Say(say.text, say.calls, thinking=thinking, redacted=redacted)


def thoughts_before_calls(request: Received) -> list[list[str]]:
    """What stands before the calls of each answer, checked against its signature; fails where it differs."""
    if request.path.endswith("/messages"):
        return [
            [_checked(block) for block in message["content"] if "thinking" in block["type"]]
            for message in request.body["messages"]
            if message["role"] == "assistant"
            and any(block["type"] == "tool_use" for block in message["content"])
        ]
    found: list[list[str]] = []
    waiting: list[str] = []
    is_calling = False
    for item in request.body["input"]:
        if item.get("type") == "reasoning":
            text = "".join(part["text"] for part in item["summary"])
            waiting.append(_signed(text, item["encrypted_content"]))
        elif item.get("type") == "function_call":
            if not is_calling:
                found.append(waiting)
            waiting = []
        is_calling = item.get("type") == "function_call"
    assert not waiting, "reasoning without the call that follows it"
    return found


def _checked(block: dict[str, Any]) -> str:
    if block["type"] == "redacted_thinking":
        return _signed("", block["data"])
    return _signed(block["thinking"], block["signature"])


def _signed(text: str, signature: str) -> str:
    secret = next((thought for thought in THOUGHTS if sign(thought) == signature), None)
    assert secret is not None, "a signature of no thought"
    assert text in ("", secret), "a thought was altered"
    return secret


def unless_missing(reply: Reply, *expected: list[str]) -> Callable[[Received], Reply]:
    """The reply, refused unless exactly this was thought before the calls that the request repeats."""

    def answer(request: Received) -> Reply:
        try:
            found = thoughts_before_calls(request)
        except AssertionError as error:
            return Refuse(400, str(error))
        if found != list(expected):
            return Refuse(400, f"thinking is missing: {found}")
        return reply

    return answer


@pytest.mark.parametrize(
    ("provided", "redacted"), [("anthropic", True), ("openai", False)], indirect=["provided"]
)
def test_thinking_goes_back_as_it_came_across_waves_and_after_a_restart(provided, redacted):
    first, second = THOUGHTS
    asks = thoughtful(ASK, first, redacted=redacted)
    provided.server.play([asks, unless_missing(thoughtful(ACT, second), [first])])
    words = ("fix add", "--model", provided.model, "--max-waves", "2")
    document = provided.run(*words, expect=1)
    assert document["result"]["status"] == "limit", document
    provided.server.play([unless_missing(FINISH, [first], [second])])
    again = provided.run("--continue", document["session_id"], "--max-waves", "9")
    assert provided.done(again)
    assert provided.server.unexpected == []
    exported = provided.project.run("journal", "--all", "--json").stdout.splitlines()
    rows = [json.loads(line) for line in exported]
    thought = [row["detail"] for row in rows if row["action"] == "model.thought"]
    assert [each["text"] for each in thought] == ["" if redacted else first, second]
    assert all(each["kept"] for each in thought)
    provided.project.run("debug", "journal")
    provided.project.run("debug", "packet", "verify")
    shown = provided.project.run("packet", "last", "--prompt")
    assert "not byte for byte" not in shown.stderr
    assert f"── thinking\n{'(encrypted by the provider)' if redacted else first}" in shown.stdout


def test_a_suspected_secret_is_kept_nowhere_and_its_calls_are_told_as_text(provided):
    secret = "ghp_" + "aB3" * 12
    provided.server.play(
        [
            thoughtful(ASK, f"The token is {secret}."),
            unless_missing(thoughtful(ACT, THOUGHTS[1])),
            unless_missing(FINISH, [THOUGHTS[1]]),
        ]
    )
    document = provided.run("fix add", "--model", provided.model)
    assert provided.done(document)
    assert all(secret not in provided.sent(place) for place in range(3))
    assert "I need two files." in provided.sent(1)
    exported = provided.project.run("journal", "--all", "--json").stdout
    assert secret not in exported
    assert '"kept":false' in exported


def test_what_an_epoch_begins_with_goes_without_thinking_and_as_text():
    """Providers bind a thought to the prompt before it, which is another one then."""

    def sent(added: int, blocks: list[dict[str, Any]]) -> tuple[PromptMessage, ...]:
        provenance = {
            "text": "I look.",
            "call": "run",
            "call_id": "call-2-1",
            "arguments": {},
            "result": "calc.py",
            "status": "confirmed",
            "thinking": blocks,
        }
        fact = PacketFact(
            *("f-1", "situational", "exchange", "exchange:2.1", "full"),
            *("I look.\nrun {}\n→ calc.py", 9, False, 3, provenance, added),
        )
        prompt = render([fact], (), wave=4, task_type="implement", target={}, max_output_tokens=100)
        return prompt.messages

    block = ThinkingBlock("Hm.", "anthropic", "", "c2ln")
    answer, result = sent(3, [block.body()])
    assert (answer.thinking, answer.text, result.text) == ((block,), "I look.", "calc.py")
    for messages in (sent(0, [block.body()]), sent(3, [])):
        assert [message.role for message in messages] == ["user"]
        assert "I look.\nrun {}\n→ calc.py" in messages[0].text
