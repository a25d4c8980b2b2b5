"""Globs over project paths: ``*`` within a directory, ``**`` across, ``?`` and ``[…]``.

A glob without ``/`` matches names in any directory; one that names a directory matches all below.
"""

from __future__ import annotations

import functools
import re

from cockpit.observe.project_snapshot import SourceFailed


def matches_glob(path: str, glob: str | None) -> bool:
    """Whether ``glob`` matches ``path`` (None matches every path)."""
    if glob is None or path == glob or path.startswith(glob.rstrip("/") + "/"):
        return True
    pattern = _pattern(glob)
    return pattern.fullmatch(path if "/" in glob else path.rpartition("/")[2]) is not None


# In a character class, everything but letters, digits and ranges of them is literal.
_SIGN = re.compile(r"(?<![A-Za-z0-9])-|-(?![A-Za-z0-9])|[^\w-]")


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


@functools.lru_cache(maxsize=64)
def _pattern(glob: str) -> re.Pattern[str]:
    out: list[str] = []
    at = 0
    text = re.sub(r"\*{3,}", "**", glob.removeprefix("./").removeprefix("/"))
    text = re.sub(r"(?:\*\*/)+", "**/", text)
    while at < len(text):
        rest = text[at:]
        if rest.startswith("**/"):
            out.append(r"(?:[^/]+/)*+")
            at += 3
        elif rest.startswith("**"):
            out.append(r".*")
            at += 2
        elif text[at] == "*":
            out.append(r"[^/]*")
            at += 1
        elif text[at] == "?":
            out.append(r"[^/]")
            at += 1
        elif text[at] == "[" and "]" in text[at + 2 :]:
            end = text.index("]", at + 2)
            body = text[at + 1 : end]
            negated = body[0] in "!^" and len(body) > 1
            out.append(f"[{'^' if negated else ''}{_SIGN.sub(_escape, body[negated:])}]")
            at = end + 1
        else:
            out.append(re.escape(text[at]))
            at += 1
    if sum(part in {r".*", r"[^/]*"} for part in out) > 8:
        raise SourceFailed(f"the glob {glob[:80]!r} has too many wildcards")
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error as error:
        raise SourceFailed(f"the glob {glob[:80]!r} is not valid: {error}") from error
