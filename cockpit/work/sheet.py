"""A task as a text to edit: its fields as TOML between two lines of ``+++``, below them the description."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from cockpit.store.tasks import Task
from cockpit.work.drafts import BacklogInvalid

_FENCE = "+++"
_KEYS = ("title", "type", "story", "estimate_hours", "packages", "files", "acceptance_criteria")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "estimate_hours": (int, float),
    "packages": (list,),
    "files": (list,),
}
_FIELDS = {"type": "task_type", "story": "story_id"}


def sheet(task: Task) -> str:
    """The text of a task."""
    values = {
        "title": task.title,
        "type": task.task_type,
        "story": task.story_id or "",
        "estimate_hours": task.estimate_hours or 0,
        "packages": list(task.packages),
        "files": list(task.files),
        "acceptance_criteria": task.acceptance_criteria,
    }
    # JSON's strings, numbers and lists of strings are TOML's as well, DEL apart.
    lines = [f"{key} = {json.dumps(values[key]).replace(chr(0x7F), '')}" for key in _KEYS]
    return "\n".join([_FENCE, *lines, _FENCE, task.description, ""])


def read_sheet(text: str) -> dict[str, Any]:
    """The fields that the text says, for ``update_task``. Raises :class:`BacklogInvalid`."""
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if line.strip() == _FENCE]
    if len(fences) < 2 or any(line.strip() for line in lines[: fences[0]]):
        raise BacklogInvalid(
            f"The fields stand between two lines of {_FENCE}, the description below."
        )
    try:
        read = tomllib.loads("\n".join(lines[fences[0] + 1 : fences[1]]))
    except tomllib.TOMLDecodeError as error:
        raise BacklogInvalid(f"The fields are no TOML: {error}.") from error
    strange = sorted(set(read) - set(_KEYS))
    if strange:
        raise BacklogInvalid(f"A task has no {strange[0]!r}; it has {', '.join(_KEYS)}.")
    for key, value in read.items():
        if not isinstance(value, _KINDS.get(key, str)) or isinstance(value, bool):
            raise BacklogInvalid(f"{key} holds a value of the wrong kind: {value!r}.")
    description = "\n".join(lines[fences[1] + 1 :]).strip()
    fields = {_FIELDS.get(key, key): value for key, value in read.items()}
    return {**fields, "description": description}
