"""Scope items: the parts of a context request, as text that models write and users read.

``file:PATH[:A-B]``, ``search:REGEX [in GLOB]``, ``tree:DIR``, ``symbol:NAME``, ``diff:RANGE [in
GLOB]``, ``log:RANGE``, ``pr:N [in GLOB]``, ``issue:N``, ``gh:COMMAND``; what was dropped or done before:
``receipt:WAVE.CALL``, ``handoff:TASK``, ``wip:TASK``, ``note:QUERY``, ``docs:QUERY``,
``knowledge:QUESTION``; and ``skill:NAME[/FILE][:A-B]``. Each may end in `` @outline``, `` @reference`` or
`` @full``. A path or glob that needs it is written as a JSON string (``file:"odd\\nname"``).
See ``docs/reference/loop.md``.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.gh_command import is_reading
from cockpit.access.gh_flags import GhRefused, split_words
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.skills.skill import LONGEST_NAME as LONGEST_SKILL_NAME
from cockpit.core.skills.skill import NAME as SKILL_NAME
from cockpit.store.backlog.backlog_ids import TASK, read_id
from cockpit.store.context.facts import LEVELS

KINDS = (
    *("file", "search", "tree", "symbol", "diff", "log", "pr", "issue", "gh"),
    *("receipt", "handoff", "wip", "note", "docs", "knowledge", "skill"),
)
"""The sources that a scope item may name."""

REMOTE = frozenset({"pr", "issue", "gh"})
"""Sources on other machines: asking there is reading, and nobody here sees whether they have changed."""

RESERVED = ("url",)
"""Planned sources; an item that names one is refused."""

EXAMPLES = {
    "file": "file:src/app.py:10-40",
    "search": "search:def load_\\w+ in src/**/*.py",
    "tree": "tree:src",
    "symbol": "symbol:Config.load",
    "diff": "diff:main..HEAD",
    "log": "log:main..HEAD",
    "pr": "pr:24",
    "issue": "issue:7",
    "gh": "gh:issue list --state open",
    "receipt": "receipt:3.1",
    "handoff": "handoff:T-4",
    "wip": "wip:T-4",
    "note": "note:retry of payments",
    "docs": "docs:how to release",
    "knowledge": "knowledge:why are payments retried",
    "skill": "skill:git/references/rescue.md",
}
_MAX_ITEM = 2_000
_MAX_QUERY = 300
_SLICED = frozenset({"file", "skill"})
_PATHS = _SLICED | {"tree"}
_GLOBBED = frozenset({"search", "diff", "pr"})
_LINES = re.compile(r"(.*):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)
_OPEN_LINES = re.compile(r".*:[0-9]+-(?:[^/]{0,8})?|.*:-[0-9]+|.*:[0-9]{10,}.*", re.DOTALL)
_SYMBOL = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*")
_REVISION = re.compile(r"(?!.*\.\.|@\{-)[\w@][\w./~^@{}+#-]*")
_RECEIPT = re.compile(r"(?:exchange:)?([1-9][0-9]{0,5})\.([1-9][0-9]{0,2})", re.ASCII)
_NUMBER = re.compile(r"#?([1-9][0-9]{0,9})", re.ASCII)
_SPELLED_OUT = re.compile("⟦U\\+(00[0-9A-F]{2}|2028|2029)⟧")
_GLOB_SIGNS = frozenset("*?[/.")


class ScopeRefused(CockpitError):
    """A scope item that cannot be read; the message shows how to write it."""

    code = "scope_refused"


class ScopeItem(Struct, frozen=True):
    """One item of a request.

    ``ref`` is the path, expression, name, range or number; ``lines`` the first and last line of a
    file (from 1, both included); ``glob`` limits a search or a diff to some paths; ``level`` is the
    level of detail. ``str()`` writes text that :func:`parse_item` reads back.
    """

    kind: str
    ref: str
    lines: tuple[int, int] | None = None
    glob: str | None = None
    level: str = "full"

    def __str__(self) -> str:
        glob = "" if self.glob is None else f" in {_spelled(self.glob, spaces=False)}"
        lines = "" if self.lines is None else f":{self.lines[0]}-{self.lines[1]}"
        level = "" if self.level == "full" else f" @{self.level}"
        ref = _spelled(self.ref) if self.kind in _PATHS else self.ref
        text = f"{self.kind}:{ref}{lines}{glob}{level}"
        if _parsed(text) == self:
            return text
        # The text is ambiguous at its end (a path like "a:1", an expression like "x in *.py"):
        # quote the path, name every file, or name the level.
        if self.kind in _PATHS:
            return f"{self.kind}:{json.dumps(self.ref)}{lines}{level}"
        if self.kind in _GLOBBED and self.glob is None:
            return f"{self.kind}:{ref} in **{level or ' @full'}"
        return f"{text} @full"

    def at(self, level: str) -> ScopeItem:
        """Return the same item at another level."""
        return replace(self, level=level)


def parse_item(text: str) -> ScopeItem:
    """Parse one scope item. Raises :class:`ScopeRefused` with a message that a model can act on."""
    written = text.strip()
    if not written:
        raise ScopeRefused(f"an empty scope item; write for example {EXAMPLES['file']}")
    if len(written) > _MAX_ITEM:
        raise ScopeRefused(f"a scope item of {len(written)} characters is too long")
    if "\0" in written:
        raise ScopeRefused("a scope item may not contain a NUL character")
    kind, colon, rest = written.partition(":")
    if colon and kind in RESERVED:
        raise ScopeRefused(
            f"{kind}: is not available in this version; available are {_available()}"
        )
    if not colon or kind not in KINDS:
        raise ScopeRefused(f"{_short(written)} names no source; write one of {_available()}")
    rest, level = _level(rest)
    rest = rest.strip()
    if kind == "tree" and not rest:
        rest = "."
    if not rest:
        raise ScopeRefused(f"{kind}: names nothing; write for example {EXAMPLES[kind]}")
    rest, glob = _glob(rest) if kind in _GLOBBED else (rest, None)
    if kind in _SLICED:
        path, lines = _file(rest, kind)
        return ScopeItem(kind, path, lines=lines, level=level)
    return ScopeItem(kind, _READERS[kind](rest), glob=glob, level=level)


def range_parts(text: str) -> tuple[str, str, str]:
    """Split a range into its left side, dots and right side (both empty for a single revision)."""
    for dots in ("...", ".."):
        left, separator, right = text.partition(dots)
        if separator:
            return left, dots, right
    return text, "", ""


def _parsed(text: str) -> ScopeItem | None:
    try:
        return parse_item(text)
    except ScopeRefused:
        return None


def _available() -> str:
    return ", ".join(EXAMPLES[kind] for kind in KINDS)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _level(rest: str) -> tuple[str, str]:
    before, at, word = rest.rpartition(" @")
    if at and word in LEVELS:
        return before, word
    if at and re.fullmatch(r"[a-z]{3,12}", word) and not before.strip().endswith("\\"):
        close = {"ref": "reference", "summary": "outline", "complete": "full"}.get(word)
        if close:
            raise ScopeRefused(f"@{word} is not a level; write @{close}")
    return rest, "full"


def _glob(rest: str) -> tuple[str, str | None]:
    before, sign, glob = rest.rpartition(" in ")
    if quoted := re.fullmatch(r"(.*) in (\".*\")", rest, re.DOTALL):
        before, sign, glob = quoted[1], " in ", quoted[2]
    glob = glob.strip()
    if not sign or not before.strip() or not glob:
        return rest, None
    if glob.startswith('"'):
        literal = _json_string(glob)
        return (before, literal) if literal is not None else (rest, None)
    if any(c.isspace() for c in glob) or not _GLOB_SIGNS & set(glob):
        return rest, None
    return before, None if glob == "**" else glob


def _spelled(path: str, *, spaces: bool = True) -> str:
    """A path as it is, or as a JSON string when it could be misread."""
    plain = path.isprintable() and path == path.strip() and not path.startswith('"')
    if plain and (spaces or (" " not in path and _GLOB_SIGNS & set(path) and path != "**")):
        return path
    return json.dumps(path)


def _json_string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return _unspelled(value) if isinstance(value, str) else None


def _unspelled(path: str) -> str:
    """A path as it is on disk, from one whose control characters are spelled out (``⟦U+000A⟧``).

    That is how a listing shows such a name to a model, which asks for it as it saw it.
    """
    return _SPELLED_OUT.sub(lambda match: chr(int(match[1], 16)), path)


def _file(rest: str, kind: str) -> tuple[str, tuple[int, int] | None]:
    lines: tuple[int, int] | None = None
    path = rest
    match = _LINES.fullmatch(rest)
    if match and not (rest.startswith('"') and rest.endswith('"')):
        first, last = int(match[2]), int(match[3] or match[2])
        if first < 1 or last < first:
            raise ScopeRefused(
                f"{_short(f'{kind}:{rest}')}: lines count from 1 and go up, like :10-40"
            )
        path, lines = match[1], (first, last)
    elif _OPEN_LINES.fullmatch(rest) and not rest.startswith('"'):
        raise ScopeRefused(
            f"{_short(f'{kind}:{rest}')}: write lines as :A-B with two whole numbers, like :10-40"
        )
    return (_skill(path) if kind == "skill" else _path(path, kind)), lines


def _path(text: str, kind: str) -> str:
    path = text
    if text.startswith('"'):
        literal = _json_string(text)
        if literal is None:
            raise ScopeRefused(f"{_short(text)} is not a JSON string; write {EXAMPLES[kind]}")
        path = literal
    else:
        path = _unspelled(path)
    if not path or "\0" in path:
        raise ScopeRefused(f"{kind}: names no path; write for example {EXAMPLES[kind]}")
    if kind == "file" and path.endswith("/"):
        raise ScopeRefused(f"{_short(path)} is a directory; write tree:{path.rstrip('/')}")
    return str(PurePosixPath(path))


def _skill(text: str) -> str:
    """``NAME`` or ``NAME/FILE``, a path in the skill's folder."""
    path = _path(text, "skill")
    name, _, rest = path.partition("/")
    if not SKILL_NAME.fullmatch(name) or len(name) > LONGEST_SKILL_NAME:
        raise ScopeRefused(
            f"{_short('skill:' + text)} names no skill; write for example {EXAMPLES['skill']}"
        )
    if ".." in PurePosixPath(rest).parts:
        raise ScopeRefused(f"{_short('skill:' + text)} leads out of the skill's folder")
    return path


def _regex(text: str) -> str:
    if any(c in text for c in "\n\r"):
        raise ScopeRefused("search: matches single lines; the expression may not contain a newline")
    return text


def _symbol(text: str) -> str:
    name = text.removesuffix("()")
    if len(name) > 200 or not _SYMBOL.fullmatch(name):
        raise ScopeRefused(f"{_short(text)} is not a name; write for example {EXAMPLES['symbol']}")
    return name


def _range(text: str) -> str:
    left, _, right = range_parts(text)
    sides = [left, right] if right else [left]
    if len(text) > 300 or not all(_REVISION.fullmatch(side) for side in sides):
        raise ScopeRefused(
            f"{_short(text)} is not a range of revisions; write for example {EXAMPLES['diff']}"
        )
    return text


def _number(text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ScopeRefused(f"{_short(text)} is not a number; write for example pr:24 or issue:7")
    return match[1]


def _gh_read(text: str) -> str:
    """A ``gh`` command that only reads, each word quoted where a shell would need it."""
    try:
        words = split_words(text)
    except GhRefused as error:
        raise ScopeRefused(f"gh: {error}") from error
    if not is_reading(words):
        raise ScopeRefused(
            f"{_short('gh:' + text)} is not a gh command that reads; write for example {EXAMPLES['gh']}"
        )
    return shlex.join(words)


def _receipt(text: str) -> str:
    match = _RECEIPT.fullmatch(text)
    if match is None:
        raise ScopeRefused(
            f"{_short(text)} is not a call of this session; write its wave and its number, like"
            f" {EXAMPLES['receipt']}"
        )
    return f"{int(match[1])}.{int(match[2])}"


def _task(text: str) -> str:
    try:
        return read_id(TASK, text)
    except NotFound as error:
        raise ScopeRefused(str(error)) from error


def _query(text: str) -> str:
    if len(text) > _MAX_QUERY or not text.isprintable():
        raise ScopeRefused(
            f"{_short(text)} is not a query; write a few words, like {EXAMPLES['note']}"
        )
    return text


def _question(text: str) -> str:
    """A question of any length that an item can have, on one line."""
    words = " ".join(text.split())
    if not words.isprintable():
        words = " ".join("".join(sign if sign.isprintable() else " " for sign in words).split())
    if not words:
        raise ScopeRefused(f"knowledge: asks nothing; write for example {EXAMPLES['knowledge']}")
    return words


_READERS = {
    "search": _regex,
    "tree": lambda text: _path(text, "tree"),
    "symbol": _symbol,
    "diff": _range,
    "log": _range,
    "pr": _number,
    "issue": _number,
    "gh": _gh_read,
    "receipt": _receipt,
    "handoff": _task,
    "wip": _task,
    "note": _query,
    "docs": _query,
    "knowledge": _question,
}
