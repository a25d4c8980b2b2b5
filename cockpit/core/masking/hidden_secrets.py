"""Secrets in forms that no pattern over one line of plain text sees: encoded, joined, in headers and options.

Base64 is decoded and judged by what it holds; strings that are joined, and text with colours in it, are
judged as one; cookies, options, XML and logins by their own grammar. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

_MASKED = "[masked:"
_NAMED = r"(?:passw(?:or)?d|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,40000}={0,2}")
_START = 16
"""Characters of base64 by which most texts are told from hashes and names: 12 bytes that can be printed."""
_TEXT = re.compile(rb"[\t\n\r -~]*")
_LOGIN = re.compile(
    r"(?i)((?:_auth|\bauth|\bbasic)[\"'\\]{0,4}[ \t]{0,3}[:=]?[ \t]{0,3}[\"'\\]{0,4})"
    r"([A-Za-z0-9+/]{8,500}={0,2})"
)
_USER = re.compile(r"[\w.@+-]{1,100}:\S{3,300}")

_JOINT = re.compile(
    r"\x1b\[[0-9;]{0,20}[A-Za-z]"
    r"|(?<=\w)(?:''|\"\")(?=\w)"
    r"|([\"'])[ \t]{0,8}(?:[+.&][ \t]{0,8})?(?:\\?\r?\n[ \t]{0,40}(?:[+.&][ \t]{0,8})?)?\1"
)
"""What stands between two parts of one string, or within a word on a terminal."""
_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[opsur]_|github_pat_|glpat-|sk-|ckp_|AIza|ya29\.|GOCSPX-|xox[abeoprs]-|xapp-"
    r"|[sr]k_(?:live|test)_|npm_|pypi-|hf_|SG\.|eyJ)"
)
"""Beginnings of tokens that may be cut into parts."""
_LONGEST_JOINED = 1_000

_COOKIES = re.compile(r"(?i)(\bcookie[\"'\\]{0,4}:[ \t]{0,4}[\"'\\]{0,4})([^\r\n'\"\\]{1,8192})")
_COOKIE = re.compile(r"([^;=\s]{1,128}=)(?:s%3A)?([^;\s]{12,4096})")
_VALUE = r"(?=[^\s\"'<>]{0,199}[0-9])(?=[^\s\"'<>]{0,199}[A-Za-z])[^\s\"'<>$\[]{6,200}"
"""A value with a digit and a letter, which the words of a manual lack."""
_PLAIN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("--", re.compile(rf"(?i)(--(?:[a-z]{{1,20}}-){{0,3}}{_NAMED}[ =][\"']?)(?!id=|\[)({_VALUE})")),
    ("mysql", re.compile(rf"(?i)(\bmysql[a-z]{{0,6}}\b[^\n]{{0,200}}? -p)({_VALUE})")),
    ("sshpass", re.compile(rf"(?i)(\bsshpass -p ?[\"']?)({_VALUE})")),
    ("machine", re.compile(
        r"(?i)(\bmachine[ \t]{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8})"
        r"([^\s\[]\S{2,200})")),
    ("</", re.compile(rf"(?i)(<[a-z.:_-]{{0,40}}{_NAMED}>)({_VALUE})(?=</)")),
    ("value=", re.compile(
        rf"(?i)((?:key|name)=[\\\"']{{1,4}}[\w.:-]{{0,60}}{_NAMED}[\\\"']{{1,4}}\s{{1,8}}value=[\\\"']{{1,4}})"
        rf"({_VALUE})")),
)  # fmt: skip
"""By a sign in small letters: what leads to a secret, and the secret."""
_TRIPLE = re.compile(rf"([=:][ \t]{{0,8}}(?:'''|\"\"\")\r?\n?)({_VALUE})")
_NAME_BEFORE = re.compile(rf"(?i){_NAMED}[\"']?[ \t]{{0,8}}\Z")
_NAME_MOST = 40


def has_hidden_text(text: str) -> bool:
    """Whether a part of ``text`` is base64 of something that can be read."""
    return any(_decode(match[0], _START) is not None for match in _BASE64.finditer(text))


def mask_hidden(
    text: str, lowered: str, mask: Callable[[str], str], is_random: Callable[[str], bool]
) -> str:
    """Mask secrets in encoded and named forms.

    ``mask`` is asked about what was decoded, ``is_random`` about the value of a cookie.
    """
    if "cookie" in lowered:
        text = _COOKIES.sub(lambda match: match[1] + _mask_cookies(match[2], is_random), text)
    for sign, pattern in _PLAIN:
        if sign in lowered:
            text = pattern.sub(_mask_value, text)
    if "'''" in text or '"""' in text:
        text = _TRIPLE.sub(_mask_triple, text)
    if "auth" in lowered or "basic" in lowered:
        text = _LOGIN.sub(_mask_login, text)
    return _BASE64.sub(lambda match: _mask_base64(match, mask), text)


def mask_joined(text: str, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> str:
    """Mask what the patterns (kind, and the secret as a whole) find across the joints of strings."""
    spans: list[tuple[int, int, str]] = []
    looked = 0
    for prefix in _PREFIX.finditer(text):
        if (at := prefix.start()) >= looked:
            spans += _find_joined(text, at, patterns)
            looked = at + _LONGEST_JOINED // 2
    parts: list[str] = []
    done = 0
    for start, end, kind in sorted(spans):
        if start >= done:
            lines = "\n" * text.count("\n", start, end)
            parts += [text[done:start], f"{_MASKED}{kind}]{lines}"]
            done = end
    return "".join([*parts, text[done:]]) if parts else text


def _find_joined(
    text: str, at: int, patterns: Iterable[tuple[str, re.Pattern[str]]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the places of secrets with a joint in them, near ``at``, each with its kind."""
    end = min(len(text), at + _LONGEST_JOINED)
    joints = list(_JOINT.finditer(text, at, end))
    if not joints:
        return
    places: list[int] = []
    start = at
    for joint in joints:
        places += range(start, joint.start())
        start = joint.end()
    places += range(start, end)
    joined = "".join(text[place] for place in places)
    for kind, pattern in patterns:
        for match in pattern.finditer(joined):
            first, last = places[match.start()], places[match.end() - 1]
            if last - first >= match.end() - match.start():
                yield first, last + 1, kind


def _decode(encoded: str, most: int = 0) -> str | None:
    """Decode base64, or the first ``most`` characters of it; None where it is no text."""
    encoded = encoded.rstrip("=").translate(str.maketrans("-_", "+/"))
    encoded = encoded[: most or len(encoded)]
    try:
        data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
    return data.decode("ascii") if _TEXT.fullmatch(data) else None


def _mask_base64(match: re.Match[str], mask: Callable[[str], str]) -> str:
    if _decode(match[0], _START) is None:
        return match[0]
    decoded = _decode(match[0])
    return match[0] if decoded is None or mask(decoded) == decoded else f"{_MASKED}base64]"


def _mask_login(match: re.Match[str]) -> str:
    decoded = _decode(match[2])
    is_login = decoded is not None and _USER.fullmatch(decoded)
    return f"{match[1]}{_MASKED}basic]" if is_login else match[0]


def _mask_cookies(cookies: str, is_random: Callable[[str], bool]) -> str:
    return _COOKIE.sub(
        lambda match: f"{match[1]}{_MASKED}cookie]" if is_random(match[2]) else match[0], cookies
    )


def _mask_triple(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _NAME_MOST) : match.start()]
    return _mask_value(match) if _NAME_BEFORE.search(before) else match[0]


def _mask_value(match: re.Match[str]) -> str:
    return match[0] if _MASKED in match[2] else f"{match[1]}{_MASKED}secret]"
