"""Secrets in forms that are harder to see than a token in quotes, and ordinary texts that look like them."""

from __future__ import annotations

import base64
import json
import random
import string
from urllib.parse import quote

import pytest

from cockpit.core.secrets import mask, mask_value

DICE = random.Random(28)


def draw(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Draw a value that no file of this repository holds: it would look like a secret."""
    return "".join(DICE.choice(letters) for _ in range(length - 3)) + "a7K"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


KEY = draw(64)
LINES = [draw(64) for _ in range(4)]
PEM = "\n".join(["-----BEGIN PRIVATE" + " KEY-----", *LINES, "-----END PRIVATE" + " KEY-----"])
GITHUB = "ghp" + "_" + draw(36)
PASSWORD = "Tr0ub4dor&3x"
HEX = draw(40, "0123456789abcdef")[:-3] + "a7f"
JWT = f"eyJ{draw(33)}.eyJ{draw(60)}.{draw(43)}"
BASE64_PEM = b64(PEM)
OTP = "".join(DICE.choices("ABCDEFGHKLMNPQRSTUVWXYZ234567", k=26))

HARDER: dict[str, tuple[str, str]] = {
    "a PEM key, indented in YAML": (
        "tls:\n  key: |\n    " + PEM.replace("\n", "\n    ") + "\nname: x", LINES[2]),
    "a PEM key with escaped ends of lines": (json.dumps({"key": PEM}), LINES[1]),
    "a PEM key, escaped twice": (json.dumps(json.dumps({"key": PEM})), LINES[3]),
    "a PEM key without its last line": ("\n".join(PEM.split("\n")[:-2]), LINES[2]),
    "a PEM key over joined strings": (
        "\n".join(f'key += "{line}\\n"' for line in PEM.split("\n")), LINES[2]),
    "a PEM key in base64": (f"TLS_KEY_B64={BASE64_PEM}", BASE64_PEM[40:90]),
    "a kubeconfig": (f"users:\n- user:\n    client-key-data: {BASE64_PEM}\n", BASE64_PEM[40:90]),
    "a token in base64": (f"echo '{b64(GITHUB)}' | base64 -d", b64(GITHUB)[8:30]),
    "a secret of Kubernetes": (
        f"kind: Secret\ndata:\n  password: {b64(PASSWORD)}\n", b64(PASSWORD)[:12]),
    "a token over joined strings": (
        f'token = "{GITHUB[:8]}" + "{GITHUB[8:24]}" + "{GITHUB[24:]}"', GITHUB[8:24]),
    "a token over joined words of a shell": (f"T={GITHUB[:4]}''{GITHUB[4:]}", GITHUB[4:24]),
    "a token with colours in it": (f"{GITHUB[:4]}\x1b[1m{GITHUB[4:]}\x1b[0m", GITHUB[4:24]),
    "a token, percent-encoded": (f"next=%2Fx%3Faccess_token%3D{draw(4)}{KEY[:24]}%26a%3D1", KEY[:24]),
    "a password, percent-encoded in an address": (
        f"postgres://app:{quote(PASSWORD)}@db:5432/x", quote(PASSWORD)),
    "a connection string of ADO": (f"Server=tcp:x;User ID=sa;Password={PASSWORD};Encrypt=yes", PASSWORD),
    "a connection string of libpq": (f"host=db user=app password={PASSWORD} dbname=x", PASSWORD),
    "a storage account": (f"AccountName=x;AccountKey={draw(86)}==;EndpointSuffix=y", "a7K=="),
    "a form": (f"grant_type=password&username=ada&password={PASSWORD}&scope=x", PASSWORD),
    ".netrc": (f"machine example.org login ada password {PASSWORD}", PASSWORD),
    ".pgpass": (f"db.example.org:5432:app:ada:{PASSWORD}\n", PASSWORD),
    ".npmrc": (f"//registry.example.org/:_auth={b64('ada:' + PASSWORD)}\n", b64("ada:" + PASSWORD)),
    "a login of docker": (
        json.dumps({"auths": {"x": {"auth": b64("ada:" + PASSWORD)}}}), b64("ada:" + PASSWORD)),
    "a short basic authorization": (f"Authorization: Basic {b64('ada:pw7')}", b64("ada:pw7")),
    "a signed authorization": (
        f"Authorization: AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature={HEX}", HEX),
    "a key in a header": (f"> X-Api-Key: {KEY[:20]}\r\n", KEY[:20]),
    "a cookie": (f"Cookie: theme=dark; sessionid={KEY[:32]}; lang=de", KEY[:32]),
    "a cookie that is set": (f"Set-Cookie: connect.sid=s%3A{KEY[:32]}; HttpOnly", KEY[:32]),
    "a JSON Web Key": (json.dumps({"kty": "EC", "crv": "P-256", "d": KEY[:43]}), KEY[:43]),
    "WireGuard": (f"[Interface]\nPrivateKey = {draw(43)}=\n", "a7K="),
    "a one-time password": (f"otpauth://totp/x?secret={OTP}&issuer=x", OTP),
    "an option of a command": (f"tool --user ada --password {PASSWORD} --token {KEY[:24]}", PASSWORD),
    "an option without a blank": (f"mysql -u root -p{PASSWORD} app", PASSWORD),
    "a variable before a command": (f"PGPASSWORD={PASSWORD} psql -h db", PASSWORD),
    "a password of XML": (f"<server><password>{PASSWORD}</password></server>", PASSWORD),
    "a setting of XML": (f'<add key="ApiKey" value="{KEY[:32]}" />', KEY[:32]),
    "a table of TOML": (f"[tokens]\npassword = '''\n{KEY[:30]}'''\n", KEY[:30]),
    "a hash of a password": (f"root:$6${KEY[:16]}${KEY}{KEY[:22]}:19000:0:99999:7:::", KEY[20:60]),
    "a presigned address": (f"https://x.s3.amazonaws.com/a?X-Amz-Signature={HEX}{HEX[:24]}", HEX),
    "a session of AWS": (f"aws_session_token = {draw(120)}+/{draw(60)}==", "a7K=="),
    "a key of Laravel": (f"APP_KEY=base64:{draw(43)}=", "a7K="),
}  # fmt: skip

ORDINARY = [
    f"integrity sha512-{base64.b64encode(bytes(range(64))).decode()}",
    f"data:image/png;base64,{base64.b64encode(bytes(range(200, 256)) * 3).decode()}",
    b64("an ordinary sentence, in base64, that says nothing") + " is a sentence",
    'auth: "required", "auth": "optional", basic authentication of authors',
    "Cookie: theme=dark; lang=de-DE; consent=accepted-everything",
    "Set-Cookie: seen=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/; HttpOnly",
    "tool --password PASSWORD --token $TOKEN --api-key <KEY> --max-tokens 50000 --token-limit 4000",
    "mysql -u root -p app < schema.sql",
    "the machine on which you login asks for your password twice",
    "<password>string</password> <token>your token</token>",
    '<add key="Timeout" value="30seconds1" />',
    "password = '''\nsee the manual\n'''",
    'greeting = "hello, " + "world1" + "and 2 more"',
    '"d": "a short value", "k": "v", "p": 1',
    "otpauth://totp/NAME?secret=SECRET",
    "Signature=valid and signature=0123",
    "src/app.py:1042:5: E501 line too long",
    "$1$2$3 and $6 each, price: $20",
    "sk-learn, npm_config_cache, hf_hub_download('x'), pypi-publish, skip",
]


def is_through(text: str, secret: str) -> bool:
    return secret in mask(text) or "[masked:" not in mask(text)


def test_secrets_in_harder_forms_are_masked(attacks) -> None:
    through = [
        name for name, (text, secret) in HARDER.items() if is_through(text, secret or "=x\0")
    ]
    attacks("a secret in a harder form (see the test)", len(HARDER), through, most=2)
    for text, _ in HARDER.values():
        masked = mask(text)
        assert mask(masked) == masked and masked.count("\n") == text.count("\n"), text
    assert KEY[:32] not in json.dumps(mask_value({"headers": {"Cookie": f"sessionid={KEY[:32]}"}}))


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:20])
def test_ordinary_text_that_looks_like_one_stays(text: str) -> None:
    assert mask(text) == text
