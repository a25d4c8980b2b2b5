"""Checks of values for the backlog: titles, types, hours, paths. Every error names the allowed values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cockpit.core.errors import CockpitError
from cockpit.store.backlog.epics_and_stories import PRIORITIES, STATUSES

TASK_TYPES = (
    "feature",
    "bug",
    "chore",
    "spike",
    "test",
    "docs",
    "refactor",
    "api",
    "implement",
    "investigate",
)
LONGEST_TITLE = 300
LONGEST_TEXT = 60_000
MOST_PATHS = 500
_LONGEST_PATH = 1_000
_MOST_HOURS = 10_000.0
_MOST_ATTEMPTS = 1_000


class BacklogInvalid(CockpitError):
    """A value is not allowed in the backlog; nothing changed."""

    code = "usage"


def one_of(name: str, value: str, allowed: Collection[str]) -> str:
    """``value``, which is one of ``allowed``."""
    if value not in allowed:
        raise BacklogInvalid(f"{name} is {value[:40]!r}; it can be {', '.join(allowed)}.")
    return value


def task_type(value: str, allowed: Collection[str]) -> str:
    """The type of a task: built in, or from a task-type file."""
    if value not in allowed:
        raise BacklogInvalid(
            f"The type is {str(value)[:40]!r}; it can be {', '.join(allowed)}. A file in"
            " .cockpit/task-types adds a type; `cockpit doctor` names the files that cannot be used."
        )
    return value


def status(value: str) -> str:
    """A status. ``open`` and ``closed`` are not statuses here."""
    return one_of("The status", value, STATUSES)


def title(value: str) -> str:
    """A title: one line of at most :data:`LONGEST_TITLE` characters."""
    line = " ".join(value.split())
    if not line:
        raise BacklogInvalid("The title is empty; describe the task in one line.")
    if len(line) > LONGEST_TITLE:
        raise BacklogInvalid(
            f"The title has {len(line)} characters and may have {LONGEST_TITLE}; put the rest into"
            " the description."
        )
    return line


def text(name: str, value: str) -> str:
    """Return text of at most :data:`LONGEST_TEXT` characters."""
    if len(value) > LONGEST_TEXT:
        raise BacklogInvalid(
            f"{name} has {len(value):,} characters and may have {LONGEST_TEXT:,}; put it into a file"
            " and name that."
        )
    return value.strip()


def paths(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return packages or files, each once, sorted."""
    if isinstance(values, str) or not all(isinstance(path, str) for path in values):
        raise BacklogInvalid(f"{name} must be a list of strings, not {str(values)[:40]!r}.")
    cleaned = tuple(sorted({path.strip() for path in values if path.strip()}))
    if len(cleaned) > MOST_PATHS:
        raise BacklogInvalid(
            f"{name}: {len(cleaned)} are too many ({MOST_PATHS}); name their directory."
        )
    if any(len(path) > _LONGEST_PATH for path in cleaned):
        raise BacklogInvalid(f"{name}: a path is longer than {_LONGEST_PATH} characters.")
    return cleaned


def hours(value: float | None) -> float | None:
    """An estimate in hours."""
    if value is not None and not 0 <= value <= _MOST_HOURS:
        raise BacklogInvalid(f"The estimate is {value:g} hours; it can be 0 to {_MOST_HOURS:g}.")
    return value


def percent(value: int) -> int:
    """Progress, 0 to 100."""
    if not 0 <= value <= 100:
        raise BacklogInvalid(f"Progress is {value} percent; it can be 0 to 100.")
    return value


def attempt(value: int) -> int:
    """Which attempt it was, from 1."""
    if not 1 <= value <= _MOST_ATTEMPTS:
        raise BacklogInvalid(f"Attempts are counted from 1 to {_MOST_ATTEMPTS}; this says {value}.")
    return value


def priority(value: str) -> str:
    """``P0`` (most urgent) to ``P3``."""
    return one_of("The priority", value.upper(), PRIORITIES)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "title": title,
    "description": lambda words: text("The description", words),
    "acceptance_criteria": lambda words: text("The acceptance criteria", words),
    "context_summary": lambda words: text("The summary", words),
    "handoff_notes": lambda words: text("The notes", words),
    "estimate_hours": hours,
    "progress_percent": percent,
    "priority": priority,
    "status": status,
    "source": lambda words: text("The source", words),
    "packages": lambda given: paths("Packages", given),
    "files": lambda given: paths("Files", given),
    "needs_rework": bool,
    "session_id": str,
}


def changes(
    values: Mapping[str, Any],
    allowed: Collection[str],
    *,
    task_types: Collection[str] = TASK_TYPES,
) -> dict[str, Any]:
    """Return the fields of ``values`` that are not None, checked; ``allowed`` are their names.

    ``task_types`` are the types that a task can have. Raises :class:`BacklogInvalid`.
    """
    present = {name: value for name, value in values.items() if value is not None}
    strange = sorted(set(present) - set(allowed))
    if strange:
        raise BacklogInvalid(f"There is no {strange[0]} to set; there is {', '.join(allowed)}.")
    if "task_type" in present:
        task_type(present["task_type"], task_types)
    return {name: _READ[name](value) if name in _READ else value for name, value in present.items()}
