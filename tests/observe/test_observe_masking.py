"""Secrets never pass; ordinary code is left as it is."""

from __future__ import annotations

import json

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cockpit.core.secrets import mask, mask_value

pytestmark = pytest.mark.slow

# Put together here so that no file of this repository holds anything that looks like a secret.
B64 = "a1B2c3D4e5F6g7H8"
SECRETS = {
    "AWS key id": "AKIA" + "ABCD1234EFGH5678",
    "AWS session id": "ASIA" + "ABCD1234EFGH5678",
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitHub OAuth": "gho_" + "a1B2" * 9,
    "GitHub fine grained": "github_pat_" + "11ABCDEFG0" + "_" + B64 * 3,
    "GitLab": "glpat-" + B64 + "wxyz",
    "Anthropic": "sk-ant-" + "api03-" + B64 * 4,
    "OpenAI": "sk-" + B64 * 3,
    "OpenAI project": "sk-proj-" + B64 * 3,
    "OpenRouter": "sk-or-v1-" + "0123456789abcdef" * 4,
    "Slack": "xoxb-" + "123456789012-" + B64,
    "Google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "Stripe": "sk_live_" + B64 + B64,
    "npm": "npm_" + "a1B2" * 9,
    "PyPI": "pypi-" + B64 * 4,
    "Hugging Face": "hf_" + B64 * 2,
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
    "cockpit": "ckp_" + B64 + "." + B64,
}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password='hunter2'", "hunter2"),
        ('PASSWORD = "p4ssw0rd!"', "p4ssw0rd!"),
        ("API_KEY=" + "abcd1234EFGH5678", "abcd1234EFGH5678"),
        ("api-key: " + "abcd1234EFGH5678", "abcd1234EFGH5678"),
        ("secret_key_base: 8f2a9b7c6d5e4f3a2b1c0d9e8f7a6b5c", "8f2a9b7c6d5e4f3a"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "wJalrXUtnFEMI"),
        ("https://ada:s3cr3tpass@example.com/x.git", "s3cr3tpass"),
        ("postgres://app:hunter2@db:5432/x", "hunter2"),
        ("redis://:hunter2@cache", "hunter2"),
        ("Authorization: Basic " + "YWRhOmh1bnRlcjJodW50ZXIy", "YWRhOmh1"),
        ('client_secret="' + B64 * 2 + '"', B64),
        ("'auth_token' => '" + B64 * 2 + "'", B64),
    ],
)
def test_assignments_and_addresses_are_masked(text: str, secret: str) -> None:
    assert secret not in mask(text)


KEY = [f"{number:02}" + B64 * 3 + "AbCdEf+/12" + "x" * 4 for number in range(5)]
HEAD, TAIL = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"


@pytest.mark.parametrize("lead", ["# ", " * ", "+# ", "    #   "])
@pytest.mark.parametrize("ended", [True, False])
def test_key_blocks_in_comments_are_masked(lead: str, ended: bool) -> None:
    text = "".join(f"{lead}{line}\n" for line in [HEAD, *KEY, *([TAIL] if ended else [])])
    masked = mask(text + "(after)\n")
    assert not any(line in masked for line in KEY)
    assert masked.endswith("(after)\n")
    assert masked.count("\n") == text.count("\n") + 1
    assert mask(masked) == masked


@pytest.mark.parametrize("lead", ["+", " # ", ""])
def test_the_part_of_a_key_block_in_a_diff_is_masked(lead: str) -> None:
    head = f"@@ -18,3 +18,4 @@ {KEY[0]}"
    text = "\n".join([head, *(lead + line for line in [*KEY[1:], TAIL]), " x = 1", "+y = 2\n"])
    masked = mask(text)
    assert not any(line in masked for line in KEY)
    assert masked.startswith("@@ -18,3 +18,4 @@ [masked:private-key]\n")
    assert masked.endswith("\n x = 1\n+y = 2\n")
    assert masked.count("\n") == text.count("\n")
    assert mask(masked) == masked
    assert mask(f"{head}\n x = 1\n") == "@@ -18,3 +18,4 @@ [masked:private-key]\n x = 1\n"


def test_words_about_keys_are_left_alone() -> None:
    for text in (
        f"pass\nEND = '{TAIL}'\n",
        f"the block ends with\n{TAIL}\n",
        "@@ -1,2 +1,2 @@ def a_function_with_a_rather_long_name_that_says_it_all\n",
        "@@ -1,2 +1,2 @@ thisIsACamelCaseNameThatIsVeryLongIndeedButHasNoDigit\n",
    ):
        assert mask(text) == text


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "", "PGP "])
def test_private_key_blocks_are_masked_whole(kind: str) -> None:
    name = f"{kind}PRIVATE KEY{' BLOCK' if kind == 'PGP ' else ''}"
    body = "\n".join(["MIIEpAIBAAKCAQEA" + B64] * 3)
    block = f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"
    assert mask(f"before\n{block}\nafter") == "before\n[masked:private-key]\n\n\n\n\nafter"
    diff = "\n".join(f"+{line}" for line in block.split("\n"))
    assert B64 not in mask(diff)
    assert B64 not in mask(json.dumps({"key": block}))
    cut = block.rpartition("-----END")[0]
    assert B64 not in mask(cut)


ORDINARY = (
    "token = get_token()", "token = self._tokens[index2]",
    "def login(password: str, token: str | None = None) -> None:",
    "secret = settings.module2.secret_value3", "max_tokens = 4096",
    "api_key = os.environ['OPENAI_API_KEY']", "token: ${{ secrets.GITHUB_TOKEN }}",
    "password=$DB_PASSWORD_1234", "TOKEN_URL = 'https://example.com/oauth2/token1'",
    "token_type: 'oauth2bearer1'", "pwd=/home/ada/project1",
    "index 0123456789abcdef0123456789abcdef01234567..89abcdef0123456789abcdef0123456789abcdef",
    "token = 0123456789abcdef0123456789abcdef01234567",
    ".sk-circle12-fade-delay-animation { color: red }", "https://github.com/acme/api/pull/24",
    "git@github.com:acme/api.git", "password=[masked:secret]",
)  # fmt: skip


def test_ordinary_text_stays() -> None:
    for text in ORDINARY:
        assert mask(text) == text


def test_values_are_masked_at_every_depth() -> None:
    secret = SECRETS["GitHub"]
    value = {"a": [{"password": "hunter2", secret: 1}], "b": (secret, None, 1.5, True)}
    masked = mask_value(value)
    assert secret not in json.dumps(masked) and "hunter2" not in json.dumps(masked)
    assert masked["b"][1:] == [None, 1.5, True]
    assert mask_value(masked) == masked


WORDS = "token password = ' \" https:// u:p4ss@ @ : / aB3dE5gH7jK9 ghp_ sk- eyJ [masked: ] $ - _ . ( , é"
BLOCK = ("-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----")
fragment = st.sampled_from(
    [*SECRETS.values(), *BLOCK, *WORDS.split(), ": ", "bearer ", "[masked:secret]", "\n", " "]
) | st.text(max_size=6)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(st.lists(fragment, max_size=14).map("".join))
@example("AKIA" + "ABCD1234EFGH5678" + "glpat-" + "a1B2c3D4e5F6g7H8wxyz")
def test_masking_twice_changes_nothing(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@pytest.mark.search
@settings(max_examples=examples(15))
@given(st.sampled_from(sorted(SECRETS)), st.text(max_size=40), st.text(max_size=40))
def test_a_canary_never_comes_out(name: str, before: str, after: str) -> None:
    # A letter, digit or dash right beside would make it another word.
    assert SECRETS[name] not in mask(f"{before} {SECRETS[name]} {after}")


PIECES = (
    "a", "token=", "eyJ", "eyJaaaaaaaaa.", "sk-", "https://", "password", " ",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----(", "-----BEGIN AAAA AAAA AAAA ",
    "0123456789abcdef",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_run_of_anything_is_masked_in_bounded_work(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    masked = mask(text)
    # Where nothing was masked the second time would be the first one again.
    assert masked == text or mask(masked) == masked
