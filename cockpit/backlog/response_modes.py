"""Response modes of work tools: minimal, standard or full, within a limit of tokens.

Minimal has id, title and status; standard adds what starting a task needs; full adds what resuming it
needs. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cockpit.backlog.validation import one_of
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES, Epic, Parents, Story
from cockpit.store.backlog.tasks import Task

T = TypeVar("T")
P = TypeVar("P", Epic, Story)

Fields = Literal["minimal", "standard", "full"]
FIELDS: tuple[Fields, ...] = ("minimal", "standard", "full")

ANSWER_TOKENS = 8_000
"""Tokens of one answer to a model, where the configuration sets no other limit."""

_AROUND = 40
"""Tokens of a page around its items."""
_MEMBERS = 20
"""Members of an object that stay while lists and texts can be cut: more than any of ours has."""


def render_task(task: Task, fields: str = "minimal") -> dict[str, Any]:
    """Return the task as a JSON value. Raises :class:`~cockpit.backlog.validation.BacklogInvalid` for other
    ``fields``."""
    one_of("fields", fields, FIELDS)
    body: dict[str, Any] = {"id": task.task_id, "title": task.title, "status": task.status}
    if fields == "minimal":
        return body
    body |= {
        "description": task.description,
        "acceptance_criteria": task.acceptance_criteria,
        "type": task.task_type,
        "story": task.story_id,
    }
    if task.blocker:
        body["blocker"] = task.blocker
    if fields == "standard":
        return body
    return body | {
        "context_summary": task.context_summary,
        "handoff_notes": task.handoff_notes,
        "wip": None if task.wip is None else dict(task.wip),
        "epic": task.epic_id,
        "priority": task.priority,
        "estimate_hours": task.estimate_hours,
        "progress_percent": task.progress_percent,
        "needs_rework": task.needs_rework,
        "packages": list(task.packages),
        "files": list(task.files),
        "source": task.source,
        "session_id": task.session_id,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "started_at": task.started_at,
        "done_at": task.done_at,
        "wip_updated_at": task.wip_updated_at,
    }


def render_story(story: Story, fields: str = "minimal") -> dict[str, Any]:
    """Render the story as a JSON value; ``fields`` as for :func:`render_task`."""
    return _render_parent(STORIES, story, fields, {"epic": story.epic_id})


def render_epic(epic: Epic, fields: str = "minimal") -> dict[str, Any]:
    """Render the epic as a JSON value; ``fields`` as for :func:`render_task`."""
    own = {"priority": epic.priority}
    return _render_parent(EPICS, epic, fields, own, {"source": epic.source})


def _render_parent(
    table: Parents[P],
    row: P,
    fields: str,
    standard: Mapping[str, Any],
    full: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Render an epic or a story; ``standard`` and ``full`` are what only its kind has."""
    one_of("fields", fields, FIELDS)
    body: dict[str, Any] = {"id": table.id_of(row), "title": row.title, "status": row.status}
    if fields == "minimal":
        return body
    body |= {"description": row.description, **standard}
    if fields == "standard":
        return body
    times = {name: getattr(row, name) for name in ("created_at", "updated_at", "done_at")}
    return {**body, **(full or {}), **times}


def fits(value: Any, cap_tokens: int) -> bool:
    """Whether the JSON value has at most so many tokens.

    A token has a byte at least, so that what is short is not counted: that would load a vocabulary.
    """
    text = _text(value)
    return len(text.encode("utf-8", "replace")) <= cap_tokens or count_tokens(text) <= cap_tokens


def _short(items: Sequence[Mapping[str, Any]], most: int) -> bool:
    """Whether the items together have fewer bytes than ``most``; stops where they have not."""
    for item in items:
        most -= len(_text(item).encode("utf-8", "replace")) + 1
        if most < 0:
            return False
    return True


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def page(
    items: Sequence[Mapping[str, Any]],
    cap_tokens: int = ANSWER_TOKENS,
    *,
    name: str = "tasks",
    offset: int = 0,
    total: int | None = None,
) -> dict[str, Any]:
    """``{name: […]}`` with as many of ``items`` as the cap allows, one at least.

    ``items`` begin at ``offset`` of ``total`` (default: they are all). When some are left,
    ``more`` says how many and ``next_offset`` where they begin. One item that is too long alone is
    shortened, and says so.
    """
    count = offset + len(items) if total is None else total

    def answer(taken: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        end = offset + len(taken)
        left = max(0, count - end)
        return {name: list(taken), **({"more": left, "next_offset": end} if left else {})}

    if _short(items, cap_tokens - _AROUND):
        return answer(items)
    room, many = cap_tokens - _AROUND, 0
    for item in items:
        room -= count_tokens(_text(item)) + 1
        if room < 0:
            break
        many += 1
    # A tokenizer may cut two items apart otherwise than each alone: rarely, and by a token or two.
    while many > 1 and not fits(answer(items[:many]), cap_tokens):
        many -= 1
    if many:
        return answer(items[:many])
    return answer([shorten_to_fit(items[0], cap_tokens - _AROUND)])


def shorten_to_fit(body: Mapping[str, Any], cap_tokens: int = ANSWER_TOKENS) -> dict[str, Any]:
    """``body`` within the cap: of long lists the newest entries, of long texts the beginning.

    What was cut is counted under ``left_out``, by name.
    """
    most = _Most(entries=10_000, letters=1_000_000, members=_MEMBERS)
    shortened, left_out = dict(body), dict[str, int]()
    while not fits({**shortened, "left_out": left_out} if left_out else shortened, cap_tokens):
        if most == _LEAST:
            break
        most = most.fewer()
        left_out = {}
        shortened = {key: _cut(key, value, most, left_out) for key, value in body.items()}
    return {**shortened, "left_out": left_out} if left_out else shortened


class _Most(Struct, frozen=True):
    """How much of each list, text and mapping is left."""

    entries: int
    letters: int
    members: int

    def fewer(self) -> _Most:
        """Half of lists and texts; of mappings only once those are at their least."""
        if (self.entries, self.letters) == (_LEAST.entries, _LEAST.letters):
            return replace(self, members=max(_LEAST.members, self.members // 2))
        entries, letters = (
            max(_LEAST.entries, self.entries // 2),
            max(_LEAST.letters, self.letters // 2),
        )
        return replace(self, entries=entries, letters=letters)


_LEAST = _Most(entries=1, letters=40, members=1)


def _cut(name: str, value: Any, most: _Most, left_out: dict[str, int]) -> Any:
    if isinstance(value, str) and len(value) > most.letters:
        left_out[name] = len(value) - most.letters
        return value[: most.letters]
    if isinstance(value, Mapping):
        many = max(most.members, most.entries)
        if len(value) > many:
            left_out[name] = len(value) - many
            value = dict(list(value.items())[:many])
        return {key: _cut(str(key), member, most, left_out) for key, member in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > most.entries:
            left_out[name] = len(value) - most.entries
        return [_cut(name, member, most, left_out) for member in value[-most.entries :]]
    return value


def render_all(
    render: Callable[[T, str], dict[str, Any]], rows: Sequence[T], fields: str
) -> list[Any]:
    """Render every row."""
    return [render(row, fields) for row in rows]
