"""What the words of one task say beside what is to be done: type, hours, files, what it waits for.

``Refuse expired tokens in `src/auth.py` [bug, 3h] (after #1, #2)`` is a bug of three hours that touches
a file and waits for two tasks. What is not understood stays in the title as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct, field

from cockpit.backlog.planning.plan import PlanInvalid

WAITS = {
    "after": "blocks",
    "depends on": "blocks",
    "blocked by": "blocks",
    "waits for": "blocks",
    "requires": "requires",
    "relates to": "relates_to",
    "related to": "relates_to",
}
"""The words that make a task wait, and the kind of dependency that they mean."""

_HOURS_A_DAY = 8
_WAITING = "|".join(WAITS)
_ID = r"(?:#\d+|T-\d+|task #?\d+)"
_IDS = rf"{_ID}(?:\s*(?:,|&|and)\s*{_ID})*"
_GROUP = re.compile(r"(?P<open>[\[(])(?P<inside>[^\[\]()]+)[\])](?!\()")
_WAIT = re.compile(rf"(?P<how>{_WAITING})(?:\s*+:)?\s++(?P<whom>.+)", re.IGNORECASE | re.DOTALL)
_WAIT_AT_END = re.compile(
    rf"(?<![\s,;:–—-])[\s,;:–—-]++(?P<how>{_WAITING})(?:\s*+:)?\s++(?P<whom>{_IDS})\s*\.?$",
    re.IGNORECASE,
)
_HOURS = re.compile(
    r"(?:est(?:imate)?\.?:?\s*+)?[~≈]?\s*+(\d+(?:\.\d+)?)\s*(h|hrs?|hours?|d|days?)\.?",
    re.IGNORECASE,
)
_TYPE = re.compile(r"(?:type:\s*)?(\w+)", re.IGNORECASE)
_TYPE_INLINE = re.compile(r"(?<!\w)type:\s*(\w+)", re.IGNORECASE)
_PRIORITY = re.compile(r"(?:priority:\s*)?(P[0-3])", re.IGNORECASE)
_PRIORITY_INLINE = re.compile(r"^(P[0-3])[:\s–—-]++|(?<![\s,–—-])[\s,–—-]++(P[0-3])$")
_CODE = re.compile(r"`([^`\n]+)`")
_SUFFIXES = frozenset(
    {
        *("c", "cc", "cpp", "cs", "go", "h", "hpp", "java", "js", "jsx", "kt", "lua", "php", "py"),
        *("pyi", "rb", "rs", "scala", "sh", "ps1", "sql", "swift", "ts", "tsx", "vue", "proto"),
        *("css", "tcss", "html", "svg", "md", "rst", "txt", "csv", "json", "toml", "yaml", "yml"),
        *("cfg", "ini", "lock", "xml"),
    }
)
_NAMED_FILES = frozenset({"Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "LICENSE"})
_PATH = re.compile(r"[\w.@+*?-]+(?:/[\w.@+*?-]+)*/?")
_LINES = re.compile(r":\d+(?:-\d+)?$")


class Marks(Struct):
    """What was found. ``waits`` are pairs of a kind of dependency and the words that name the others."""

    title: str
    task_type: str = ""
    hours: float | None = None
    priority: str = ""
    files: list[str] = field(default_factory=list)
    waits: list[tuple[str, str]] = field(default_factory=list)


def read_marks(words: str, types: Collection[str]) -> Marks:
    """Read the title in ``words`` and the marks beside it; ``types`` are those of tasks."""
    marks = Marks(words)
    marks.files = paths_in(words)
    marks.title = _GROUP.sub(lambda group: _group(marks, group, types), marks.title)
    while (late := _WAIT_AT_END.search(marks.title)) is not None:
        marks.waits.append((WAITS[late["how"].lower()], late["whom"]))
        marks.title = marks.title[: late.start()]
    if (kind := _TYPE_INLINE.search(marks.title)) is not None and kind[1].lower() in types:
        marks.task_type = kind[1].lower()
        marks.title = marks.title[: kind.start()] + marks.title[kind.end() :]
    marks.title = " ".join(marks.title.split())
    if (priority := _PRIORITY_INLINE.search(marks.title)) is not None:
        marks.priority = (priority[1] or priority[2]).upper()
        marks.title = marks.title[: priority.start()] + marks.title[priority.end() :]
    marks.title = marks.title.strip().rstrip(",;:–— ").strip()
    return marks


def _group(marks: Marks, group: re.Match[str], types: Collection[str]) -> str:
    """Read a bracketed group when all of it is understood; else leave it in the title."""
    inside = group["inside"].strip()
    wait = _WAIT.fullmatch(inside)
    if wait is not None:
        marks.waits.append((WAITS[wait["how"].lower()], wait["whom"]))
        return " "
    before = (marks.task_type, marks.hours, marks.priority)
    parts = re.split(r"[,;|·]", inside)
    if all(_mark(marks, part.strip(), group["open"], types) for part in parts):
        return " "
    marks.task_type, marks.hours, marks.priority = before
    return group[0]


def _mark(marks: Marks, part: str, bracket: str, types: Collection[str]) -> bool:
    hours = hours_in(part)
    if hours is not None:
        marks.hours = hours
        return True
    if (priority := _PRIORITY.fullmatch(part)) is not None:
        marks.priority = priority[1].upper()
        return True
    kind = _TYPE.fullmatch(part)
    if kind is None or kind[1].lower() not in types:
        return False
    # In round brackets a word is more often a word than a type: (test) may be part of a sentence.
    if bracket == "(" and not part.lower().startswith("type:"):
        return False
    marks.task_type = kind[1].lower()
    return True


def hours_in(words: str) -> float | None:
    """``3h`` is 3, ``2d`` is 16; None for anything else."""
    read = _HOURS.fullmatch(words.strip())
    if read is None:
        return None
    return float(read[1]) * (_HOURS_A_DAY if read[2].lower().startswith("d") else 1)


def paths_in(words: str) -> list[str]:
    """Return the files and directories in backticks, each once, without line numbers."""
    paths = [_LINES.sub("", code.strip()) for code in _CODE.findall(words)]
    return list(dict.fromkeys(path for path in paths if is_path(path)))


def is_path(word: str) -> bool:
    """Whether this names a place in the project: has a slash or a file's ending, and leads nowhere
    outside."""
    if not _PATH.fullmatch(word) or word.startswith(("/", "-")):
        return False
    parts = word.rstrip("/").split("/")
    if ".." in parts:
        return False
    if "/" in word:
        return not all(part.strip(".") == "" for part in parts)
    return word in _NAMED_FILES or ("." in word and word.rpartition(".")[2].lower() in _SUFFIXES)


_KEYS = {
    "acceptance": "acceptance",
    "acceptance criteria": "acceptance",
    "done when": "acceptance",
    "files": "files",
    "packages": "packages",
    "type": "type",
    "estimate": "hours",
    **dict.fromkeys(WAITS, "waits"),
}
_KEY = re.compile(
    r"(?P<indent>\s*+)(?:[-*+]\s++)?(?:\*\*|__)?(?P<key>"
    + "|".join(sorted(_KEYS, key=len, reverse=True))
    + r")\s*+(?::\s*+(?:\*\*|__)?|(?:\*\*|__)\s*:)(?P<value>.*)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*+(?:[-*+]|\d++[.)])\s+")
_FENCE = re.compile(r"\s*(```|~~~)")
_BOX = re.compile(r"^\[[ xX]\]\s+")


class Detail(Struct):
    """What the lines said. ``waits`` are pairs of a kind and the words that name the others."""

    description: str = ""
    acceptance: str = ""
    task_type: str = ""
    hours: float | None = None
    files: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    waits: list[tuple[str, str]] = field(default_factory=list)


def read_detail(lines: Sequence[str], at: int, types: Collection[str]) -> Detail:
    """Read the lines; ``at`` is the number of the first in the plan, ``types`` are those of tasks.

    Raises :class:`PlanInvalid` for a value that its key cannot have.
    """
    detail = Detail()
    words: list[str] = []
    fenced = False
    place = 0
    while place < len(lines):
        line = lines[place]
        fenced ^= _FENCE.match(line) is not None
        key = None if fenced else _KEY.fullmatch(line)
        if key is None:
            words.append(line)
            if not fenced:
                detail.files += paths_in(line)
            place += 1
            continue
        end = _end(lines, place + 1, len(key["indent"]), empty=not key["value"].strip())
        _take(detail, key, lines[place + 1 : end], at + place, types)
        place = end
    detail.description = "\n".join(words).strip()
    detail.files = list(dict.fromkeys(detail.files))
    return detail


def _end(lines: Sequence[str], place: int, indent: int, *, empty: bool) -> int:
    """Where what belongs to a key ends: it is indented below it, or listed where its line is empty."""
    while place < len(lines):
        line = lines[place]
        if not line.strip() or _KEY.fullmatch(line):
            break
        inside = len(line) - len(line.lstrip()) > indent
        if not (inside or (empty and _BULLET.match(line))):
            break
        place += 1
    return place


def _take(
    detail: Detail, key: re.Match[str], below: Sequence[str], at: int, types: Collection[str]
) -> None:
    name = " ".join(key["key"].lower().split())
    value = key["value"].strip()
    inside = [_BOX.sub("", _BULLET.sub("", line, count=1).strip()) for line in below]
    every = [value, *inside] if value else inside
    takes: dict[str, Callable[[], None]] = {
        "acceptance": lambda: _accept(detail, value, inside),
        "files": lambda: detail.files.extend(_paths(every)),
        "packages": lambda: detail.packages.extend(_names(every)),
        "type": lambda: _type(detail, value, at, types),
        "hours": lambda: _hours(detail, value, at),
        "waits": lambda: detail.waits.extend((WAITS[name], names) for names in every),
    }
    takes[_KEYS[name]]()


def _accept(detail: Detail, value: str, inside: Sequence[str]) -> None:
    lines = [line for line in (detail.acceptance, value, *(f"- {each}" for each in inside)) if line]
    detail.acceptance = "\n".join(lines)


def _paths(lines: Sequence[str]) -> list[str]:
    paths: list[str] = []
    for line in lines:
        marked = paths_in(line)
        plain = [] if marked else [word for word in re.split(r"[,\s]+", line) if is_path(word)]
        paths += marked or plain
    return paths


def _names(lines: Sequence[str]) -> list[str]:
    return [name.strip("` ") for line in lines for name in line.split(",") if name.strip("` ")]


def _type(detail: Detail, value: str, at: int, types: Collection[str]) -> None:
    kind = value.strip("`[] ").lower()
    if kind not in types:
        raise PlanInvalid(f"Line {at}: there is no type {value!r}; it can be {', '.join(types)}.")
    detail.task_type = kind


def _hours(detail: Detail, value: str, at: int) -> None:
    read = hours_in(value)
    if read is None:
        raise PlanInvalid(f"Line {at}: the estimate {value!r} is not a time such as 3h or 2d.")
    detail.hours = read
