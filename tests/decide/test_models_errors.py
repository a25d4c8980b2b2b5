from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback.replies import Refuse
from models_talk import KEYS
from prompts import PLAIN

from cockpit.decide.model import ModelError
from cockpit.decide.model_endpoint import Endpoint

if TYPE_CHECKING:
    from models_talk import Talk

pytestmark = pytest.mark.slow

VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-compatible": "COCKPIT_API_KEY",
}


async def failing(talk: Talk, reply: Refuse) -> ModelError:
    before = len(talk.server.requests)
    talk.server.play([reply])
    with pytest.raises(ModelError) as caught:
        await talk.say(PLAIN)
    assert len(talk.server.requests) == before + 1, "what lasts must not be tried again"
    return caught.value


LASTING = (
    (Refuse(403, "no", kind="permission_error"), "auth", "may not use"),
    (
        Refuse(404, "model: nope", kind="not_found_error", code="model_not_found"),
        *("not_found", "does not know the model"),
    ),
    (
        Refuse(400, "prompt is too long", "invalid_request_error", "context_length_exceeded"),
        *("bad_request", "ORIENTATION_TOKEN_BUDGET"),
    ),
    (Refuse(422, "tools.0: bad", kind="invalid_request_error"), "bad_request", "tools.0: bad"),
    (
        Refuse(402, "pay", kind="billing_error", code="insufficient_quota"),
        *("rate_limit", "no credit left"),
    ),
    (Refuse(400, "x" * 10_000), "bad_request", "x"),
)


async def test_an_error_that_lasts_says_what_to_do(talk: Talk) -> None:
    for reply, code, words in LASTING:
        error = await failing(talk, reply)
        assert (error.code, words in str(error)) == (code, True), error
        assert len(str(error)) < 700
    error = await failing(talk, Refuse(401, "invalid key", kind="authentication_error"))
    assert error.code == "auth" and "invalid key" in str(error)
    assert f"The key in {VARIABLES[talk.vendor]} was refused by" in str(error)


async def test_a_provider_cannot_show_the_key_or_move_the_cursor(talk: Talk) -> None:
    key = KEYS[VARIABLES[talk.vendor]]
    hostile = f"key {key} and {key}! \x1b]52;c;evil\x07 \u202e sk-proj-abcdef123456 \x9b31m"
    for status in (400, 401):
        error = await failing(talk, Refuse(status, hostile))
        assert "canary" not in str(error)
        assert "abcdef123456" not in str(error)
        assert str(error).isprintable()
        assert "evil" in str(error), "only what is hostile is removed"


@pytest.mark.search
@settings(max_examples=examples(25))
@given(words=st.text(), key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8))
def test_no_words_around_a_key_reveal_it(words: str, key: str) -> None:
    endpoint = Endpoint("openai", "openai:m", "m", "http://h/v1", key, "OPENAI_API_KEY", 1.0, 0)
    cleaned = endpoint.clean(f"{words}{key}{words}")
    assert key not in cleaned.replace("[key]", "\n"), "no key has an end of a line in it"
    assert len(cleaned) <= 400
