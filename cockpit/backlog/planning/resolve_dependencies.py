"""What the tasks of a plan wait for, found by what the plan calls it: ``#3``, ``T-12``, or a title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from cockpit.backlog.planning.plan import PlanInvalid, PlannedTask, Wait

_NUMBER = re.compile(r"(?:task\s*#?|#)(\d+)", re.IGNORECASE)
_KNOWN = re.compile(r"T-(\d+)", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:(?<!\s)\s++)?+(?:[,;&]|\band\b)\s*+", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_NOTHING = frozenset({"", "-", "–", "—", "none", "nothing", "n/a"})


class DependencyRequest(Struct, frozen=True):
    """The task at ``task`` depends on what ``whom`` names, said on ``line``."""

    task: int
    kind: str
    whom: str
    line: int


def resolve_dependencies(
    tasks: Sequence[PlannedTask], requests: Iterable[DependencyRequest]
) -> tuple[Wait, ...]:
    """The dependencies, each once. Raises :class:`PlanInvalid` for words that name no task."""
    numbers = {task.number: place for place, task in enumerate(tasks)}
    titles: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        # A person leaves the path out: "after Add the index" of "Add the index in `src/index.py`".
        for title in dict.fromkeys((_plain(task.title), _plain(_CODE.sub("", task.title)))):
            titles.setdefault(title, []).append(place)
    waits: dict[tuple[int, int | str], Wait] = {}
    for request in requests:
        for name in _names(request.whom, titles):
            wait = _wait(request, name, numbers, titles)
            waits.setdefault((wait.task, wait.task_id if wait.on is None else wait.on), wait)
    return tuple(waits.values())


def _names(whom: str, titles: dict[str, list[int]]) -> list[str]:
    whom = whom.strip().rstrip(".")
    if _plain(whom) in _NOTHING:
        return []
    # A title may hold a comma or an "and" itself.
    return [whom] if _plain(whom) in titles else [part for part in _BETWEEN.split(whom) if part]


def _wait(
    request: DependencyRequest, name: str, numbers: dict[int, int], titles: dict[str, list[int]]
) -> Wait:
    if (match := _KNOWN.fullmatch(name)) is not None:
        return Wait(request.task, task_id=f"T-{int(match[1])}", kind=request.kind)
    if (number := _NUMBER.fullmatch(name)) is not None:
        place = numbers.get(int(number[1]))
        if place is None:
            raise PlanInvalid(f"Line {request.line}: there is no task #{number[1]} in this plan.")
        return Wait(request.task, place, kind=request.kind)
    title_start = _plain(name)
    places = titles.get(title_start) or sorted(
        {
            place
            for title, held in titles.items()
            if title.startswith(f"{title_start} ")
            for place in held
        }
    )
    if len(places) == 1:
        return Wait(request.task, places[0], kind=request.kind)
    which = "names several tasks" if places else "names no task"
    raise PlanInvalid(
        f"Line {request.line}: {name!r} {which} of this plan; write #3 for its third task, T-12 for one of"
        " the backlog, or the exact title."
    )


def _plain(words: str) -> str:
    return " ".join(words.strip().strip("\"'“”‘’`*_").split()).casefold()
