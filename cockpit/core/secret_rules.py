"""Shapes of the tokens of many services: gitleaks' kept rules, and a few of our own.

They are data (``cockpit/data/secret_rules.json``, converted by ``docs/convert_secret_rules.py``), loaded and
compiled when a text first needs them: one pattern over small letters finds the texts that may hold a secret
of any rule, and each rule is compiled when its own sign is in a text. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from functools import cache

from cockpit.core.long_runs import has_long_run, measure_entropy

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

    file = Path(__file__).resolve().parent.parent / "data" / "secret_rules.json"
    kept = [
        Rule(each["kind"], each["sign"], each["pattern"], each["entropy"], each["group"])
        for each in json.loads(file.read_text(encoding="utf-8"))
    ]
    ours = [Rule(kind, sign, f"{_EDGE}{pattern}{_END}") for kind, sign, pattern in _OURS]
    return (*kept, *ours)


@cache
def _any_sign() -> re.Pattern[str]:
    return re.compile(
        _merge({piece for rule in load_rules() for piece in _pieces(rule.sign)}), re.ASCII
    )


def _pieces(sign: str) -> list[str]:
    """The alternatives of a sign that is plain words; other signs are one piece."""
    return [sign] if re.search(r"[(\[]", sign) else sign.split("|")


def _merge(pieces: set[str]) -> str:
    """Merge signs into one pattern, in which the plain ones are tried by their first letter."""
    by_start: dict[str, list[str]] = {}
    for piece in sorted(pieces):
        plain = piece[0].isalnum() and not re.search(r"[(\[]", piece)
        by_start.setdefault(piece[0] if plain else "", []).append(piece[plain:])
    parts = [
        f"{first}(?:{'|'.join(rest)})" if first else "|".join(rest)
        for first, rest in by_start.items()
    ]
    return "|".join(parts)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def has_sign(lowered: str) -> bool:
    """Whether a text, given in small letters, may hold a secret of any rule."""
    return has_long_run(lowered) and _any_sign().search(lowered) is not None


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
