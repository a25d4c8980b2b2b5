"""A short card is for a text that the screen shows whole; any other post takes both keys."""

from __future__ import annotations

import pytest

from cockpit.loop.trust.short_card import MOST_CHARACTERS, MOST_LINES, _is_short


@pytest.mark.parametrize(
    ("body", "short"),
    [
        ("LGTM.", True),
        ("", True),
        ("One remark.\r\n\r\n- name the helper → `retry`\n\tand this… ½", True),
        ("\n".join(["line"] * MOST_LINES), True),
        ("\n".join(["line"] * (MOST_LINES + 1)), False),
        ("x" * (MOST_CHARACTERS + 1), False),
        ("LGTM\u200b", False),
        ("LGTM\u202edetoved", False),
        ("LGTM\x1b[8mhidden", False),
        ("LGTM\x0bmore", False),
        ("LGTM\U000e0041\U000e0042", False),
        ("LGTM\u2028more", False),
    ],
)
def test_only_what_is_read_at_a_glance_is_short(body: str, short: bool) -> None:
    assert _is_short(body) is short
