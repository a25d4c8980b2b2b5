"""Work in progress: the state of a task while it is being done, for the worker that resumes it.

Patches are merged and never overwrite: objects merge by key, ``files_modified`` is a set,
``decisions`` and ``errors`` append, scalars replace, null changes nothing. ``solved`` is not kept: it
removes the errors that it names. Merging a patch twice is merging it once, and patches for different keys
may be grouped in any way. Specified in ``docs/reference/work-in-progress.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert
from cockpit.core.secrets import mask_value, replace_surrogates
from cockpit.store.backlog import work_queue
from cockpit.store.backlog.backlog_ids import TASK, read_id, unknown_id
from cockpit.store.backlog.solved_errors import keep_unsolved
from cockpit.store.journal.details.backlog import WipUpdated

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

MOST_DECISIONS = 5_000
"""Decisions that are kept, the newest first: more than any one task makes."""
MOST_ERRORS = 200
"""Errors that are kept, the newest first; the journal has the older ones."""
MOST_BYTES = 256_000
"""The longest patch, in bytes of JSON."""
SHOWN_FILES = 50
"""Files that the journal row names."""

_Text = Annotated[str, msgspec.Meta(max_length=8_000)]
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
_Scalar = str | bool | int | float | None


class WipInvalid(CockpitError):
    """The patch is not valid; nothing was merged."""

    code = "usage"


class _Patch(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    phase: _Text | None = None
    files_modified: list[_Path] | None = None
    uncommitted_changes: bool | None = None
    last_commit: _Text | None = None
    decisions: list[_Text | dict[str, _Scalar]] | None = None
    test_results: dict[str, _Scalar] | None = None
    errors: list[_Text | dict[str, _Scalar]] | None = None
    context: _Text | None = None
    next_step: _Text | None = None
    solved: list[dict[str, _Text]] | None = None


SOLVED = "solved"
"""The key of a patch that removes errors. See :mod:`cockpit.store.backlog.solved_errors`."""
KEYS = tuple(name for name in _Patch.__struct_fields__ if name != SOLVED)
"""The keys of work in progress."""
_LISTS = {"decisions": ("decision", MOST_DECISIONS), "errors": ("message", MOST_ERRORS)}
"""The keys that append: the field that an entry must have, and how many entries are kept."""


def validate(wip_data: Any) -> dict[str, Any]:
    """Check a patch and bring it into its stored form.

    Plain strings in ``decisions`` and ``errors`` become entries, nulls are dropped. Raises
    :class:`WipInvalid`, which names the keys that are allowed.
    """
    if not isinstance(wip_data, Mapping):
        raise WipInvalid(f"Work in progress is a JSON object with the keys {', '.join(KEYS)}.")
    unknown = [str(key) for key in wip_data if key not in (*KEYS, SOLVED)]
    if unknown:
        raise WipInvalid(
            f"Work in progress has no {', '.join(sorted(unknown))}; it has {', '.join(KEYS)}."
            " Put anything else into context."
        )
    try:
        read = convert(dict(wip_data), _Patch)
    except msgspec.ValidationError as error:
        raise WipInvalid(f"This patch is not valid: {error}. Nothing was merged.") from error
    patch: dict[str, Any] = {
        name: getattr(read, name) for name in (*KEYS, SOLVED) if getattr(read, name) is not None
    }
    for name, (word, _) in _LISTS.items():
        if name in patch:
            patch[name] = [_entry(name, word, entry) for entry in patch[name]]
    if "files_modified" in patch:
        patch["files_modified"] = sorted({_path(path) for path in patch["files_modified"]})
    if "test_results" in patch:
        patch["test_results"] = {
            key: value for key, value in patch["test_results"].items() if value is not None
        }
    patch = _sound(patch)
    try:
        size = len(canonical_json(patch).encode())
    except ValueError as error:
        raise WipInvalid(
            "Numbers in work in progress must be finite: JSON cannot hold others."
        ) from error
    if size > MOST_BYTES:
        raise WipInvalid(
            f"This patch has {size:,} bytes; the limit is {MOST_BYTES:,}. Send only the changes."
        )
    return patch


def merge(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``old`` with the patch ``new`` (of :func:`validate`) merged in; neither is changed.

    An entry of ``decisions`` or ``errors`` that is there already moves to the end. What ``new`` solved is
    removed from the errors of ``old``, and stays in the result for the errors of an older patch.
    """
    merged = dict(old or {})
    if merged.get("errors") and new.get(SOLVED):
        merged["errors"] = keep_unsolved(merged["errors"], new[SOLVED])
        if not merged["errors"]:
            del merged["errors"]
    for name, value in new.items():
        if value is None:
            continue
        current = merged.get(name)
        if name in _LISTS:
            merged[name] = _appended(current or [], value, _LISTS[name][1])
        elif name == SOLVED:
            merged[name] = _appended(current or [], value, MOST_ERRORS)
        elif name == "files_modified":
            merged[name] = sorted({*(current or []), *value})
        elif isinstance(value, Mapping):
            members = {key: member for key, member in value.items() if member is not None}
            merged[name] = {**current, **members} if isinstance(current, Mapping) else members
        else:
            merged[name] = value
    return merged


def update(
    tx: Tx, task_id: str, wip_data: Mapping[str, Any], *, by: str, session_id: str = ""
) -> dict[str, Any]:
    """Merge ``wip_data`` into the task's work in progress and journal ``wip.updated``.

    Returns all of it. A patch that changes nothing is not journalled. Secrets are masked before
    anything is stored. Raises :class:`WipInvalid`, and :class:`~cockpit.core.errors.NotFound` for
    an unknown task.
    """
    task_id = read_id(TASK, task_id)
    patch: dict[str, Any] = mask_value(validate(wip_data))
    before = _stored(tx.connection, task_id)
    after = merge(before, patch)
    after.pop(SOLVED, None)
    if patch.get(SOLVED) and len(merge(before, {SOLVED: patch[SOLVED]}).get("errors", ())) == len(
        (before or {}).get("errors", ())
    ):
        del patch[SOLVED]  # it removed nothing
    if after == (before or {}):
        return after
    tx.execute(
        "UPDATE tasks SET work_in_progress=?, wip_updated_at=? WHERE task_id=?",
        (canonical_json(after), tx.now(), task_id),
    )
    files = after.get("files_modified", [])
    if len(files) != len((before or {}).get("files_modified", [])):
        # Two tasks that change the same file cannot run together.
        work_queue.refresh(tx, [task_id])
    tx.journal(
        WipUpdated(
            task_id=task_id,
            patch=patch,
            phase=after.get("phase", ""),
            next_step=after.get("next_step", ""),
            test_results=after.get("test_results", {}),
            uncommitted_changes=after.get("uncommitted_changes", False),
            files=files[:SHOWN_FILES],
            files_count=len(files),
        ),
        actor=by,
        session_id=session_id,
    )
    return after


def keep_newest(wip: Mapping[str, Any], entries: int) -> dict[str, Any]:
    """Return ``wip`` with only the newest ``entries`` of each list.

    ``decisions_left_out`` and ``errors_left_out`` count the others. For a page or a prompt.
    """
    trimmed = dict(wip)
    for name in _LISTS:
        items: Sequence[Any] = trimmed.get(name, ())
        if len(items) > entries:
            trimmed[name] = list(items[len(items) - entries :])
            trimmed[f"{name}_left_out"] = len(items) - entries
    return trimmed


def _stored(connection: sqlite3.Connection, task_id: str) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT work_in_progress FROM tasks WHERE task_id=?", (task_id,)
    ).fetchone()
    if row is None:
        raise unknown_id(TASK, task_id)
    if row[0] is None:
        return None
    stored: dict[str, Any] = parse_json(row[0])
    return stored


def _entry(name: str, word: str, entry: str | dict[str, Any]) -> dict[str, Any]:
    members = {word: entry} if isinstance(entry, str) else entry
    present = {key: value for key, value in members.items() if value is not None}
    if not isinstance(present.get(word), str):
        raise WipInvalid(f"Each entry of {name} needs a text {word!r}.")
    return present


def _path(path: str) -> str:
    while path.startswith("./") and len(path) > 2:
        path = path[2:].lstrip("/") or "."
    return path


def _appended(
    current: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]], most: int
) -> list[Mapping[str, Any]]:
    # A repeated entry takes its last place: then the order does not depend on how patches are
    # grouped.
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for entry in (*current, *more):
        key = tuple(sorted(entry.items()))
        newest.pop(key, None)
        newest[key] = entry
    return list(newest.values())[-most:]


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(key): _sound(member) for key, member in value.items()}
    return [_sound(member) for member in value] if isinstance(value, list) else value
