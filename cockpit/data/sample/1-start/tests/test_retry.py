"""Trying again."""

import pytest

from courier.retry import GaveUp, backoff, retry


def test_the_first_attempt_does_not_wait():
    assert backoff(1) == 0.0


def test_waits_double_up_to_half_a_minute():
    assert [backoff(n) for n in (2, 3, 4)] == [0.5, 1.0, 2.0]
    assert backoff(20) == 30.0


def test_a_failure_is_tried_again():
    failures = [OSError("down")]

    def call():
        if failures:
            raise failures.pop()
        return "sent"

    assert retry(call, sleep=lambda _: None) == "sent"


def test_it_gives_up():
    def call():
        raise OSError("down")

    with pytest.raises(GaveUp):
        retry(call, sleep=lambda _: None)
