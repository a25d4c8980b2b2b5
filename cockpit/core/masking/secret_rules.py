"""Shapes of the tokens of many services: gitleaks' kept rules, and a few of our own.

They are data (``cockpit/data/secret_rules.json``, converted by ``docs/convert_secret_rules.py``), loaded and
compiled when a text first needs them: one pattern over small letters finds the texts that may hold a secret
of any rule, and each rule is compiled when its own sign is in a text. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from functools import cache

from cockpit.core.masking.long_runs import has_long_run, measure_entropy

_EDGE = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9_-])"
_OURS: tuple[tuple[str, str, str], ...] = (
    # kind, sign in small letters, pattern
    ("discord-token", r"[mno][\w-]{23,27}\.[\w-]{6}\.[\w-]{27}",
     r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    ("discord-webhook", r"/webhooks/\d{17}",
     r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/([A-Za-z0-9_-]{60,80})"),
    ("telegram-token", r"\d:aa[\w-]{32}", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}"),
    ("docker-token", r"dckr_(?:pat|oat)_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}"),
    ("figma-token", r"fig[duo]_", r"fig[duo]_[A-Za-z0-9_-]{30,80}"),
    ("supabase-key", r"sbp_|sb_secret_", r"(?:sbp|sb_secret)_[A-Za-z0-9_-]{20,80}"),
    ("tailscale-key", r"tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9_-]{12,80}"),
    ("groq-key", r"gsk_", r"gsk_[A-Za-z0-9]{40,80}"),
    ("replicate-token", r"r8_[a-z0-9]{30}", r"r8_[A-Za-z0-9]{30,45}"),
    ("xai-key", r"xai-[a-z0-9]{40}", r"xai-[A-Za-z0-9]{40,100}"),
    ("netlify-token", r"nf[pcoub]_", r"nf[pcoub]_[A-Za-z0-9]{36,60}"),
    ("circleci-token", r"ccipat_", r"CCIPAT_[A-Za-z0-9]{10,40}_[A-Za-z0-9]{30,50}"),
    ("buildkite-token", r"bk[uaprc]a?_", r"bk[uaprc]a?_[a-f0-9]{32,40}"),
    ("atlassian-token", r"atbb|atctt3|atatt3", r"(?:ATBB|ATCTT3|ATATT3)[A-Za-z0-9_=.-]{20,400}"),
    ("linear-key", r"lin_(?:api|oauth)_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("notion-token", r"secret_[a-z0-9]{43}", r"secret_[A-Za-z0-9]{43}"),
    ("mailgun-key", r"key-[a-f0-9]{32}", r"key-[a-f0-9]{32}"),
    ("mailchimp-key", r"[a-f0-9]{32}-us\d", r"[a-f0-9]{32}-us[0-9]{1,2}"),
    ("square-secret", r"sq0[a-z]{3}-", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,60}"),
    ("nuget-key", r"oy2[a-z0-9]{43}", r"oy2[a-z0-9]{43}"),
    ("azure-sas", r"sig=[\w%]{40}", r"sig=([A-Za-z0-9%]{40,120})"),
    ("json-web-key", r'" ?: ?[\\"]{1,8}[\w-]{40}',
     r'"(?:d|k|p|q|dp|dq|qi)\\{0,3}"[ ]?:[ ]?\\{0,3}"([A-Za-z0-9_-]{40,700})'),
    ("one-time-password", r"otpauth:", r"otpauth://[^\s\"'<>]{1,200}(?:\?|&)secret=([A-Za-z2-7]{16,128})"),
    ("password-hash", r"\$(?:[156y]|2[aby]|apr1|argon2)",
     r"\$(?:[156y]|2[aby]|apr1|argon2(?:id?|d))\$[^\s:\"']{20,400}"),
    ("signature", r"signature=[a-f0-9]{40}", r"(?:X-Amz-)?Signature=([a-f0-9]{40,64})"),
    ("app-key", r"app_key=base64:", r"APP_KEY=base64:([A-Za-z0-9+/]{40,100}={0,2})"),
    ("curl-password", r"\bcurl\b.{0,400}?-u",
     r"curl\b[^\n]{0,300}?[ ](?:-u|--user)[ =][\"']?[^\s:\"']{1,80}:([^\s\"'$]{3,200})"),
)  # fmt: skip


class Rule:
    """A kind of secret: ``sign`` is in the small letters of each text with one, ``pattern`` finds it.

    The group ``group`` of the pattern, or its first that is not empty, is the secret, if it has the least
    ``entropy`` in bits a character. Not a dataclass: importing those takes longer than most hook calls.
    """

    __slots__ = ("entropy", "group", "kind", "pattern", "sign")

    def __init__(
        self, kind: str, sign: str, pattern: str, entropy: float = 0, group: int = 0
    ) -> None:
        self.kind = kind
        self.sign = sign
        self.pattern = pattern
        self.entropy = entropy
        self.group = group


@cache
def load_rules() -> tuple[Rule, ...]:
    """Load every rule."""
    import json  # here: what a hook call stores rarely needs a rule
    from pathlib import Path

    file = Path(__file__).resolve().parents[2] / "data" / "secret_rules.json"
    kept = [
        Rule(each["kind"], each["sign"], each["pattern"], each["entropy"], each["group"])
        for each in json.loads(file.read_text(encoding="utf-8"))
    ]
    ours = [Rule(kind, sign, f"{_EDGE}{pattern}{_END}") for kind, sign, pattern in _OURS]
    return (*kept, *ours)


@cache
def _any_sign() -> tuple[re.Pattern[str], ...]:
    """Return the signs of all rules as few patterns: one of these matches where any sign does.

    A pattern whose alternatives all begin with characters of their own passes over other characters at once,
    and tries few alternatives at those: together they take an eighth of the time of plain alternatives.
    """
    by_start: dict[str, list[str]] = {}
    for sign in sorted({rule.sign for rule in load_rules()}):
        for start, rest in _split_sign(sign):
            by_start.setdefault(start, []).append(rest)
    rare = [_merge(start, rest) for start, rest in by_start.items() if not _is_character(start)]
    plain = [_merge(start, rest) for start, rest in by_start.items() if _is_character(start)]
    return tuple(re.compile(pattern, re.ASCII) for pattern in ("|".join(plain), *rare))


def _merge(start: str, rest: list[str]) -> str:
    return f"{start}(?:{'|'.join(rest)})"


def _is_character(start: str) -> bool:
    return len(start) == 1 or (len(start) == 2 and start[0] == "\\" and not start[1].isalnum())


_FIRST = re.compile(
    r"(\\[^bB]|\[(?:\\.|[^\]\\])+\]|[^\\()\[\]|*+?.^${}])(?:\{(\d+)(,\d+)?\}|([*+?{]))?"
)
"""What a pattern begins with: a character or a set of them, and how often."""
_CHARACTERS = re.compile(r"\[[a-z0-9]+\]")


def _split_sign(sign: str) -> list[tuple[str, str]]:
    """Split a sign's alternatives into their first character, or set of them, and the rest.

    One that begins with neither has '' for it.
    """
    alternatives = _split_alternatives(sign)
    if len(alternatives) > 1:
        return [split for each in alternatives for split in _split_sign(each)]
    if sign.startswith("(?:"):
        end = _find_close(sign)
        if sign[end + 1 : end + 2] not in ("*", "+", "?", "{"):
            inner, rest = sign[3:end], sign[end + 1 :]
            return [
                split for each in _split_alternatives(inner) for split in _split_sign(each + rest)
            ]
    first = _FIRST.match(sign)
    if first is None or first[4] or first[3] or first[2] == "0":
        return [("", sign)]
    if _CHARACTERS.fullmatch(first[1]) and not first[2]:
        return [(character, sign[first.end() :]) for character in first[1][1:-1]]
    more = f"{first[1]}{{{int(first[2]) - 1}}}" if first[2] else ""
    return [(first[1], more + sign[first.end() :])]


def _split_alternatives(pattern: str) -> list[str]:
    """Split a pattern at each ``|`` that stands in no group and no set."""
    parts, depth, start = [], 0, 0
    for at, character in _outside_sets(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and not depth:
            parts.append(pattern[start:at])
            start = at + 1
    return [*parts, pattern[start:]]


def _find_close(pattern: str) -> int:
    """Return where the group that a pattern begins with ends."""
    depth = 0
    for at, character in _outside_sets(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return at
    raise ValueError(f"{pattern!r} has a group without an end")


def _outside_sets(pattern: str) -> list[tuple[int, str]]:
    """Return the characters of a pattern that mean something, with their places."""
    return [
        (match.start(), match[0])
        for match in re.finditer(r"\\.|\[(?:\\.|[^\]\\])+\]|.", pattern)
        if len(match[0]) == 1
    ]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def has_sign(lowered: str) -> bool:
    """Whether a text, given in small letters, may hold a secret of any rule."""
    return has_long_run(lowered) and matches_sign(lowered)


def matches_sign(lowered: str) -> bool:
    """Whether a text, given in small letters, with a long run in it, may hold a secret of any rule."""
    return any(pattern.search(lowered) for pattern in _any_sign())


def mask_by_rules(text: str) -> str:
    """Replace the secrets of every rule in ``text``."""
    lowered = text.lower()
    if not has_sign(lowered):
        return text
    for rule in load_rules():
        if _compiled(rule.sign).search(lowered):
            text = _mask(rule, text)
    return text


def _mask(rule: Rule, text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _compiled(rule.pattern).finditer(text):
        group = rule.group or next(
            (number for number in range(1, match.re.groups + 1) if match[number]), 0
        )
        start, end = match.span(group)
        secret = text[start:end]
        if start < at or "[masked:" in secret or measure_entropy(secret) < rule.entropy:
            continue
        parts += [text[at:start], f"[masked:{rule.kind}]"]
        at = end
    return "".join([*parts, text[at:]]) if parts else text
