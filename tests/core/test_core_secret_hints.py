"""The short cut of masking is not a hole: what it lets pass, no pattern would have touched."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.canonical_json import canonical_json
from cockpit.core.secrets import mask, mask_thoroughly, mask_value, masked_json

pytestmark = [pytest.mark.slow, pytest.mark.search]

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


@settings(max_examples=examples(35), deadline=None)
@given(text)
def test_the_short_cut_masks_as_the_patterns_do(words: str) -> None:
    assert mask(words) == mask_thoroughly(words)


KEYS = ("session_id", "wave_id", "packet_id", "digest", "proposal_id")


def test_a_secret_under_the_key_of_an_id_is_seen() -> None:
    for key in KEYS:
        for text in ("ghp_" + LETTERS * 3, "AKIA" + "ABCD1234EFGH5678", "key-" + "0a1b2c3d" * 4):
            assert mask_value({key: text}) != {key: text}


SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "value",
    [
        {"input_tokens": 5, "output_tokens": None, "token_budget": -1},
        {"input_tokens": 5, "note": SECRET},
        {"token": "hunter2hunter2", "input_tokens": 5},
        {"input_tokens": "hunter2hunter2"},
        {"note": f'"access_token":0{SECRET}', "n": 1},
        {"note": '"token":0", password="hunter2hunter2"'},
        {"a_token": [SECRET, 5], "b_token": {"api_key": "hunter2hunter2"}},
        ["token", 5, "x:", {"token_used": 1.5e300}],
        {"pwd": "x1y2z3a"},
        {"url": "ab://:c@"},
    ],
)
def test_masked_json_is_the_json_of_masked_values(value: object) -> None:
    assert masked_json(value) == canonical_json(mask_value(value))
