from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback.replies import Drop, Refuse, Say, Silence
from prompts import PLAIN, text_in

from cockpit.decide.call_model_with_retry import retry_wait_s
from cockpit.decide.choose_model import ModelSettings
from cockpit.decide.model import ModelError, Retrying
from cockpit.decide.provider_errors import Failure

if TYPE_CHECKING:
    from models_talk import Talk

pytestmark = pytest.mark.slow

LIMITED = Refuse(429, "slow down", kind="rate_limit_error", code="rate_limit_exceeded")


async def test_a_rate_limit_waits_as_long_as_it_asks(talk: Talk) -> None:
    talk.server.play([Refuse(429, "slow", kind="rate_limit_error", retry_after="7"), Say("ok")])
    events = await talk.say(PLAIN)
    retrying = [e for e in events if isinstance(e, Retrying)]
    assert [(e.attempt, e.wait_s) for e in retrying] == [(1, 7.0)]
    assert "429: slow" in retrying[0].reason
    assert talk.waits == [7.0]
    assert text_in(events) == "ok"


async def test_passing_failures_wait_ever_longer_and_only_we_retry(talk: Talk) -> None:
    talk.server.play(
        [Refuse(500), Drop(), LIMITED, Refuse(529, kind="overloaded_error"), Say("ok")]
    )
    events = await talk.say(PLAIN)
    assert talk.waits == [1.0, 2.0, 4.0, 8.0]
    assert [e.attempt for e in events if isinstance(e, Retrying)] == [1, 2, 3, 4]
    assert len(talk.server.requests) == 5
    assert text_in(events) == "ok"


@pytest.mark.parametrize(
    ("reply", "code"), [(LIMITED, "rate_limit"), (Refuse(503), "network"), (Drop(), "network")]
)
async def test_after_the_last_attempt_the_error_says_how_often(
    anthropic: Talk, reply: Refuse | Drop, code: str
) -> None:
    anthropic.server.play([reply] * 3)
    with pytest.raises(ModelError, match="Tried 3 times") as caught:
        await anthropic.say(PLAIN, ModelSettings(max_retries=2))
    assert caught.value.code == code
    assert len(anthropic.server.requests) == 3


async def test_a_wait_longer_than_two_minutes_is_not_waited(openai: Talk) -> None:
    openai.server.play([Refuse(429, "full", kind="rate_limit_error", retry_after="3600")])
    with pytest.raises(ModelError, match="3600 s") as caught:
        await openai.say(PLAIN)
    assert caught.value.code == "rate_limit"
    assert openai.waits == []


async def test_silence_is_given_up_and_tried_again(openai: Talk) -> None:
    openai.server.play([Silence(), Say("ok")])
    events = await openai.say(PLAIN, ModelSettings(timeout_s=2.0))
    assert [type(e) for e in events[:1]] == [Retrying]
    assert "2 s" in next(e.reason for e in events if isinstance(e, Retrying))
    assert text_in(events) == "ok"


async def test_an_address_where_nobody_listens_is_a_network_error(compatible: Talk) -> None:
    model = compatible.model(ModelSettings(max_retries=1))
    await compatible.server.__aexit__(None, None, None)
    with pytest.raises(ModelError, match="Tried 2 times") as caught:
        _ = [event async for event in model.stream(PLAIN)]
    assert caught.value.code == "network"
    assert "127.0.0.1" in str(caught.value)
    await compatible.server.__aenter__()


@given(attempt=st.integers(1, 60))
def test_waits_double_up_to_thirty_seconds(attempt: int) -> None:
    failure = Failure(True, "r", None, ModelError("network", "n"))
    wait = retry_wait_s(failure, attempt)
    assert wait == min(2.0 ** (attempt - 1), 30.0)
