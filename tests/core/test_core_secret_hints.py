"""The short cut of masking is not a hole: what it lets pass, no pattern would have touched."""

from __future__ import annotations

from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core import secrets
from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.clock import FixedClock, RandomIds, format_time
from cockpit.core.secrets import lacks_secret_signs, mask, mask_thoroughly, mask_value

pytestmark = pytest.mark.slow

LETTERS = "aB3dE5gH7jK9mN2p"
# Beginnings of everything that is known as a secret, in pieces: put together they make many.
PIECES = (
    *("ckp_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk-ant-"),
    *("sk-proj-", "AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ya29.", "GOCSPX-", "xoxb-", "xapp-"),
    *("hooks.slack.com/services/", "sk_live_", "rk_test_", "npm_", "pypi-", "hf_", "SG.", "eyJ"),
    *("https://", "u:", "@", "Bearer ", "basic ", "token ", "password", "pwd", "passphrase"),
    *("Secret", "api_key", "access-key", "PRIVATEKEY", "auth_key", "account key", "credentials"),
    *("apikey", "account_key", "signing-key", "EncryptionKey", "private-", "key"),
    *("-----BEGIN ", "RSA ", "PRIVATE KEY", "-----", "-----END ", "\n", "@@ -1,2 +1,2 @@ "),
    *("=", ": ", ":=", '"', "'", "\\", ".", "/", "_", " ", "ſecret", "toKen", "\ud800", "é", "k_"),
    *(LETTERS, LETTERS * 2, LETTERS * 3, LETTERS.upper() + "0123", "0123456789", "hunter2"),
)
text = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=9).map("".join)
value = st.recursive(
    text | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(700), deadline=None)
@given(text)
def test_the_short_cut_masks_as_the_patterns_do(words: str) -> None:
    assert mask(words) == mask_thoroughly(words)


@settings(max_examples=examples(400), deadline=None)
@given(value)
def test_a_row_without_a_sign_has_nothing_to_mask(body: Any) -> None:
    # This is how the journal asks: once, of the row as it is written.
    assert not lacks_secret_signs(canonical_json(body)) or mask_value(body) == body


def test_every_known_beginning_is_a_sign_in_any_case() -> None:
    known = [*PIECES[: PIECES.index("https://") + 1], "bearer", "PASSWORD", "Credential", "api-key"]
    assert [
        each for each in known if lacks_secret_signs(each) or lacks_secret_signs(each.upper())
    ] == []


def test_ordinary_rows_take_the_short_cut() -> None:
    assert lacks_secret_signs(canonical_json({"ordinal": 3, "phase": "observing", "facts": 12}))


@given(
    key=st.sampled_from(sorted(secrets._ID_KEYS)), text=st.from_regex(secrets._ID, fullmatch=True)
)
def test_ids_and_digests_of_ours_stay_as_the_patterns_leave_them(key: str, text: str) -> None:
    assert secrets.stays_as_member((key, text))
    assert secrets._mask_member_anew(key, text) == text  # as it is without the shortcut
    assert secrets.mask_thoroughly(f'{{"{key}": "{text}"}}') == f'{{"{key}": "{text}"}}'


@pytest.mark.parametrize("key", sorted(secrets._ID_KEYS))
def test_ids_of_each_kind_need_no_search(key: str) -> None:
    ids, digest = RandomIds(), text_digest(key)
    session_id = ids.new("s")
    for text in (
        *(ids.new("a"), session_id, f"k-{digest[:24]}", digest[:24], digest, digest[:40]),
        *(f"{session_id}-w12", f"plan-{session_id}-w1", f"k-{digest[:16]}-{session_id}-w3"),
        format_time(FixedClock().now()),
    ):
        secrets._clean_members.discard((key, text))
        assert secrets.stays_as_member((key, text))
        assert (key, text) not in secrets._clean_members
        assert secrets.mask_value({key: text}) == {key: text}


def test_a_secret_under_the_key_of_an_id_is_seen() -> None:
    for key in secrets._ID_KEYS:
        for text in ("ghp_" + LETTERS * 3, "AKIA" + "ABCD1234EFGH5678", "key-" + "0a1b2c3d" * 4):
            assert secrets.stays_as_member((key, text)) == (mask_value({key: text}) == {key: text})
            assert mask_value({key: text}) != {key: text}
