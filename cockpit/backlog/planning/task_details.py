"""The lines below a task: ``Acceptance:``, ``After:``, ``Files:`` and the like, and its description.

A key is at the start of a line, bold or in a list item or plain; what is indented or listed
below it belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct, field

from cockpit.backlog.planning.plan import PlanInvalid
from cockpit.backlog.planning.task_marks import WAITS, hours_in, is_path, paths_in

_KEYS = {
    "acceptance": "acceptance",
    "acceptance criteria": "acceptance",
    "done when": "acceptance",
    "files": "files",
    "packages": "packages",
    "type": "type",
    "estimate": "hours",
    "priority": "priority",
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
    priority: str = ""
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
        "priority": lambda: _priority(detail, value, at),
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


def _priority(detail: Detail, value: str, at: int) -> None:
    if value.upper() not in ("P0", "P1", "P2", "P3"):
        raise PlanInvalid(f"Line {at}: the priority {value!r} is none of P0, P1, P2, P3.")
    detail.priority = value.upper()
