from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
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
    talk.server.play([reply])
    with pytest.raises(ModelError) as caught:
        await talk.say(PLAIN)
    assert len(talk.server.requests) == 1, "an error that lasts must not be tried again"
    return caught.value


async def test_a_refused_key_names_its_variable(talk: Talk) -> None:
    error = await failing(talk, Refuse(401, "invalid key", kind="authentication_error"))
    assert error.code == "auth"
    assert f"The key in {VARIABLES[talk.vendor]} was refused by" in str(error)
    assert "invalid key" in str(error)


async def test_a_key_without_permission_names_the_model(talk: Talk) -> None:
    error = await failing(talk, Refuse(403, "not for you", kind="permission_error"))
    assert error.code == "auth"
    assert "may not use" in str(error)


async def test_an_unknown_model_is_not_found(talk: Talk) -> None:
    refuse = Refuse(404, "model: nope", kind="not_found_error", code="model_not_found")
    error = await failing(talk, refuse)
    assert error.code == "not_found"
    assert "does not know the model" in str(error)


async def test_a_packet_too_long_says_what_to_lower(talk: Talk) -> None:
    words = "prompt is too long: this exceeds the maximum context length"
    refuse = Refuse(400, words, kind="invalid_request_error", code="context_length_exceeded")
    error = await failing(talk, refuse)
    assert error.code == "bad_request"
    assert "ORIENTATION_TOKEN_BUDGET" in str(error)


async def test_a_bad_request_carries_the_providers_words(talk: Talk) -> None:
    error = await failing(talk, Refuse(422, "tools.0: bad schema", kind="invalid_request_error"))
    assert error.code == "bad_request"
    assert "tools.0: bad schema" in str(error)


async def test_an_account_without_credit_is_not_tried_again(talk: Talk) -> None:
    error = await failing(talk, Refuse(402, "pay", kind="billing_error", code="insufficient_quota"))
    assert error.code == "rate_limit"
    assert "no credit left" in str(error)


@pytest.mark.parametrize("status", [400, 401, 404, 418])
async def test_a_provider_cannot_show_the_key_or_move_the_cursor(talk: Talk, status: int) -> None:
    key = KEYS[VARIABLES[talk.vendor]]
    hostile = f"key {key} and {key}! \x1b]52;c;evil\x07 \u202e sk-proj-abcdef123456 \x9b31m"
    error = await failing(talk, Refuse(status, hostile))
    assert "canary" not in str(error)
    assert "abcdef123456" not in str(error)
    assert str(error).isprintable()
    assert "evil" in str(error), "only what is hostile is removed"


async def test_a_body_that_is_no_json_still_ends_in_words(talk: Talk) -> None:
    error = await failing(talk, Refuse(400, "x" * 10_000))
    assert error.code == "bad_request"
    assert len(str(error)) < 700


@given(words=st.text(), key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8))
def test_no_words_around_a_key_reveal_it(words: str, key: str) -> None:
    endpoint = Endpoint("openai", "openai:m", "m", "http://h/v1", key, "OPENAI_API_KEY", 1.0, 0)
    cleaned = endpoint.clean(f"{words}{key}{words}")
    assert key not in cleaned.replace("[key]", "")
    assert len(cleaned) <= 400
