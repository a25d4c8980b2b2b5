"""Masking of secrets before anything is stored.

Known shapes of keys and tokens, private key blocks, credentials in addresses, and random-looking
values assigned to names like ``password`` become ``[masked:KIND]``; no line is added or removed.
Lone surrogates, which cannot be stored, become U+FFFD. The work is linear in the length of the
text, and masking twice equals masking once. Ordinary code (``token = get_token()``, ``password:
str``, commit hashes) is left as it is. Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from cockpit.core.canonical_json import canonical_json
from cockpit.core.masking.hidden_secrets import mask_hidden, mask_joined
from cockpit.core.masking.long_runs import has_long_run, measure_entropy
from cockpit.core.quick_secret_check import lacks_secret_signs as lacks_secret_signs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A name may end in front of a token: ``tok_ghp_…``.
_EDGE = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9_])"

# Every repeat below is over one character class and followed by something outside that class, or is
# bounded: a scan never goes back over what it has passed more than a fixed number of times.
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("cockpit-token", "ckp_", rf"{_EDGE}ckp_[A-Za-z0-9_.-]{{16,512}}"),
    ("github-token", "gh", rf"{_EDGE}gh[opsur]_[A-Za-z0-9]{{30,255}}{_END}"),
    ("github-token", "github_pat_", rf"{_EDGE}github_pat_[A-Za-z0-9_]{{22,255}}"),
    ("gitlab-token", "glpat-", rf"{_EDGE}glpat-[A-Za-z0-9_-]{{20,255}}"),
    ("anthropic-key", "sk-ant-", rf"{_EDGE}sk-ant-[A-Za-z0-9_-]{{20,255}}"),
    ("openai-key", "sk-", rf"{_EDGE}sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{{20,255}}"),
    (
        "openai-key",
        "sk-",
        # a digit and a capital, so that kebab-case names that begin with "sk-" stay
        r"(?<![A-Za-z0-9-])sk-(?=[a-zA-Z_-]{0,254}[0-9])(?=[a-z0-9_-]{0,254}[A-Z])[A-Za-z0-9_-]{20,255}",
    ),
    ("aws-key-id", "A", rf"{_EDGE}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),
    ("google-key", "AIza", rf"{_EDGE}AIza[A-Za-z0-9_-]{{35}}(?![A-Za-z0-9_-])"),
    ("google-token", "ya29.", rf"{_EDGE}ya29\.[A-Za-z0-9_-]{{20,1024}}"),
    ("google-secret", "GOCSPX-", rf"{_EDGE}GOCSPX-[A-Za-z0-9_-]{{20,64}}"),
    ("slack-token", "xox", rf"{_EDGE}xox[abeoprs]-[A-Za-z0-9-]{{10,255}}"),
    ("slack-token", "xapp-", rf"{_EDGE}xapp-[A-Za-z0-9-]{{10,255}}"),
    ("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,128}"),
    ("stripe-key", "k_", rf"{_EDGE}[sr]k_(?:live|test)_[A-Za-z0-9]{{16,255}}"),
    ("npm-token", "npm_", rf"{_EDGE}npm_[A-Za-z0-9]{{36}}{_END}"),
    ("pypi-token", "pypi-", rf"{_EDGE}pypi-[A-Za-z0-9_-]{{40,512}}"),
    ("huggingface-token", "hf_", rf"{_EDGE}hf_[A-Za-z0-9]{{30,64}}{_END}"),
    ("sendgrid-key", "SG.", rf"{_EDGE}SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,64}}"),
    (
        "jwt",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,16384}"
        r"\.[A-Za-z0-9_-]{0,4096}",
    ),
)


@cache
def _shape(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: hook calls, which an agent waits for, mostly need none."""
    return re.compile(pattern)


_PEM_BEGIN = re.compile(r"-----BEGIN ((?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?)-----")
_URL_SECRET = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,128}:)([^\s/@\"'<>]{1,256})(?=@)"
)
_BEARING = ("bearer", "basic", "token")
_BEARER = re.compile(r"(?i)(\b(?:bearer|basic|token)[ \t]{1,4})([A-Za-z0-9_.~+/=-]{20,1024})")
_NAMES = (
    r"passw(?:or)?d|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|auth[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?"
)
_NAME = re.compile(_NAMES)
_ASSIGNED = re.compile(
    rf"(?i)((?:{_NAMES})"
    r"([A-Za-z0-9_]{0,32})[\"']?[ \t]{0,8}(?::=|=>|=|:|%3[ADad])[ \t]{0,8}(?:[brf]{1,2}(?=[\"']))?([\"']?))"
    r"([^\s\"'`,;<>{}()\[\]\\]{6,512})"
)
_MASKED = "[masked:"
_HEX = re.compile(r"[0-9a-fA-F]+")
_GIT_HASH_LENGTHS = {40, 64}
_HEX_KEY = re.compile(r"(?=[a-fA-F]{0,127}[0-9])(?:[0-9a-f]{32,128}|[0-9A-F]{32,128})")
"""A key in hexadecimal digits, which looks like a commit's hash. A ``token`` may be one."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_.]*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_PATH = re.compile(r"[~.]{0,2}(?:/[\w.@-]{0,19})+")
_ABOUT = re.compile(
    r"(?i)_(?:type|name|url|uri|path|file|dir|field|header|prefix|suffix|length|len|size|count"
    r"|format|pattern|re|regex|class|kind|label|hint|ttl|version|algorithm|method|hash|digest|sha|sha1"
    r"|sha256|sum|checksum|fingerprint|commit|rev|ref|id)s?$"
)
_QUOTED_WORDS = re.compile(r"[A-Za-z]+(?:[-_ ./][A-Za-z]+)*")


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, so that the text can be stored and sent.

    They come from file names and program output that are not UTF-8.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def mask(text: str) -> str:
    """Replace every recognised secret by ``[masked:KIND]``, and every lone surrogate."""
    return text if lacks_secret_signs(text) else mask_thoroughly(text)


def mask_thoroughly(text: str) -> str:
    """Mask as :func:`mask` does, without its fast check."""
    before = replace_surrogates(text)
    masked = _mask_once(before)
    for _ in range(_MOST_PASSES):
        if masked == before:
            break
        # A secret right beside another one stands alone only when that one is masked.
        before, masked = masked, _mask_once(masked)
    return masked


_MOST_PASSES = 20
"""More secrets side by side than a text has that is not made to have them."""


def _mask_once(text: str) -> str:
    masked = mask_key_blocks(text)
    for kind, hint, shape in SHAPES:
        if hint in masked:
            masked = _shape(shape).sub(f"{_MASKED}{kind}]", masked)
    if "://" in masked:
        masked = _URL_SECRET.sub(_mask_url, masked)
    lowered = masked.lower()
    if any(word in lowered for word in _BEARING):
        masked = _BEARER.sub(_mask_bearer, masked)
    masked = mask_joined(masked, [(kind, _shape(shape)) for kind, _, shape in SHAPES])
    masked = mask_hidden(_mask_assignments(masked), lowered, mask, _looks_random)
    if not has_long_run(masked.lower()):
        return masked
    from cockpit.core.masking.secret_rules import mask_by_rules  # here: few texts need its rules

    return mask_by_rules(masked)


def _mask_assignments(text: str) -> str:
    """Mask the values of names that say so.

    The names are looked for in small letters first, which takes a fifth of the time; a text whose small
    letters may stand elsewhere is searched as it is.
    """
    if not text.isascii():
        return _ASSIGNED.sub(_mask_assigned, text)
    parts: list[str] = []
    at = 0
    for name in _NAME.finditer(text.lower()):
        match = _ASSIGNED.match(text, name.start()) if name.start() >= at else None
        if match is not None:
            parts += [text[at : match.start()], _mask_assigned(match)]
            at = match.end()
    return "".join([*parts, text[at:]]) if parts else text


_MASKABLE = (str, dict, list, tuple)


def mask_value(value: Any) -> Any:
    """Apply :func:`mask` to every string of a JSON value, keys included.

    A string under a key that names a secret (``{"password": "…"}``) is masked because of its key.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            _mask_key(key) if isinstance(key, str) else key: (
                _mask_member(key, member) if isinstance(member, _MASKABLE) else member
            )
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_value(member) for member in value]
    return value


def masked_json(value: Any) -> str:
    """Return the canonical JSON of a value with its secrets masked."""
    text = canonical_json(value)
    # A count of tokens is not a secret, and its key has no value to mask.
    if lacks_secret_signs(text) or (
        "token" in text and lacks_secret_signs(_COUNT.sub('"":', text))
    ):
        return text
    return canonical_json(mask_value(value))


_COUNT = re.compile(r'"[a-z_]{0,40}token[a-z_]{0,40}":(?=[0-9n-])')
"""The key of a count of tokens in JSON. Inside of a text its second quote would stand behind a backslash."""


@lru_cache(maxsize=1024)
def _mask_key(key: str) -> str:
    return mask(key)


def _mask_member(key: Any, member: Any) -> Any:
    if (
        isinstance(key, str)
        and isinstance(member, str)
        and lacks_secret_signs(f'{key}: "{member}"')
    ):
        return member  # no part of a text without signs has one
    masked = mask_value(member)
    if isinstance(key, str) and isinstance(masked, str):
        lead = f'{key}: "'
        assignment = mask(f'{lead}{masked}"')
        if assignment.startswith(lead) and assignment.endswith('"'):
            return assignment[len(lead) : -1]
    return masked


def mask_key_blocks(text: str) -> str:
    """Mask only private key blocks; one without its end is masked to the end of its base64.

    For text that is cut into lines before :func:`mask` sees them. Line ends stay, so that every
    line keeps its number.
    """
    if "PRIVATE KEY" not in text:
        return _HUNK.sub(r"\1[masked:private-key]", text) if "@@ -" in text else text
    parts: list[str] = []
    at = 0
    while begin := _PEM_BEGIN.search(text, at):
        stop = _pem_end(text, begin)
        ends = "\n" * text.count("\n", begin.start(), stop)
        parts += [text[at : begin.start()], f"{_MASKED}private-key]", ends]
        at = stop
    masked = _mask_tails("".join([*parts, text[at:]]))
    return _HUNK.sub(r"\1[masked:private-key]", masked) if "@@ -" in masked else masked


_PEM_MAX = 20_000
# The body of a block may stand in a comment, line by line.
_PEM_BODY = re.compile(r"[\w+/=\s\\:,.@\"'#*>|;-]*")
_BASE64_LINES = re.compile(r"(?:[A-Za-z0-9+/=\s\\-]|[#*>|;]{1,4}[ \t]{0,8}(?=[A-Za-z0-9+/=]{16}))*")
_PEM_TAIL = re.compile(
    r"[^\n]{0,40}-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----", re.ASCII
)
_BASE64_LINE = re.compile(
    r"((?:@@[^@\n]{0,60}@@)?[ \t+#*>|;/\"'-]{0,40})([A-Za-z0-9+/=]{1,128})[ \t\r\"'\\n,+;]{0,12}"
)
_PEM_LINE = 40
"""The least characters of a key block's line; its last line may be shorter."""
# After the place of a hunk git prints the last line that looks like a heading: near a key that is a
# line of the key. Prose has no digits and capitals within 40 characters without a space.
_HUNK = re.compile(
    r"(?m)^(@@ -[0-9,]{1,20} \+[0-9,]{1,20} @@ )"
    r"(?=[A-Za-z+/]{0,63}[0-9])(?=[a-z0-9+/]{0,63}[A-Z])[A-Za-z0-9+/=]{40,128}\r?$"
)


def _mask_tails(text: str) -> str:
    """Mask the ends of private key blocks whose beginning is missing, as in a diff's context."""
    out: list[str] = []
    at = 0
    for end in _PEM_TAIL.finditer(text):
        lines = text[at : end.start()].split("\n")
        first, longest = len(lines) - 1, 0
        while first > 0 and (line := _BASE64_LINE.fullmatch(lines[first - 1])):
            if first < len(lines) - 1 and len(line[2]) < _PEM_LINE:
                break
            first, longest = first - 1, max(longest, len(line[2]))
            lines[first] = f"{line[1]}{_MASKED}private-key]"
        if longest >= _PEM_LINE // 2:
            out += ["\n".join(lines), f"{_MASKED}private-key]"]
            at = end.end()
    return "".join([*out, text[at:]])


def _pem_end(text: str, begin: re.Match[str]) -> int:
    start = begin.end()
    closing = f"-----END {begin[1]}-----"
    end = text.find(closing, start, start + _PEM_MAX)
    if end >= 0 and _PEM_BODY.fullmatch(text, start, end):
        return end + len(closing)
    match = _BASE64_LINES.match(text, start, start + _PEM_MAX)
    return match.end() if match else start


def _mask_url(match: re.Match[str]) -> str:
    value = match[2]
    if _is_placeholder(value):
        return match[0]
    return f"{match[1]}{_MASKED}url-password]"


def _mask_bearer(match: re.Match[str]) -> str:
    return f"{match[1]}{_MASKED}bearer]" if _looks_random(match[2]) else match[0]


def _mask_assigned(match: re.Match[str]) -> str:
    name, quote, value = match[2], match[3], match[4]
    if _is_placeholder(value) or _ABOUT.search(name) or "://" in value or _looks_like_path(value):
        return match[0]
    random = _looks_random(value) or (
        _HEX_KEY.fullmatch(value) is not None and not match[1][:5].lower().startswith("token")
    )
    if quote:
        secret = random or _looks_like_password(value)
    else:
        called = match.string[match.end() : match.end() + 1] in {"(", "["}
        secret = random and not (called or _DOTTED.fullmatch(value))
    return f"{match[1]}{_MASKED}secret]" if secret else match[0]


def _is_placeholder(value: str) -> bool:
    """Tell whether the value is masked already, refers to a secret elsewhere, or is dots and stars."""
    return (
        _MASKED in value
        or value.startswith(("$", "%", "@", "*", "…", "."))
        or "masked:" in value
        or len(set(value)) <= 2
    )


def _looks_like_password(value: str) -> bool:
    """Tell whether a quoted value mixes characters as passwords do and names and words do not."""
    if _QUOTED_WORDS.fullmatch(value) or "/" in value:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _looks_like_path(value: str) -> bool:
    return _PATH.fullmatch(value) is not None


def _looks_random(value: str) -> bool:
    """Tell whether a value has high entropy and is not a path, a name, a call or a git hash."""
    core = value.rstrip("=.,")
    if len(core) < 12 or _PLAIN_NAME.fullmatch(core):
        return False
    if _HEX.fullmatch(core) and len(core) in _GIT_HASH_LENGTHS:
        return False
    if not (any(c.isdigit() for c in core) and any(c.isalpha() for c in core)):
        return False
    if core.count("/") > 1 and "." in core:
        return False
    return measure_entropy(core) >= 3.0
