"""The guards of the user and of the project as lists show them, and their approval as they were shown.

See ``docs/reference/guards.md``, your own guards.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from cockpit.act.guards.project_guards import (
    DeclaredGuard,
    guard_folders,
    guard_sources,
    list_guard_files,
    load_guard,
    restore_guard,
)
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths
from cockpit.loop.tools.approve_tools import ToolChanged
from cockpit.store.db.transaction import Tx
from cockpit.store.guards import approved_guards
from cockpit.store.guards.approved_guards import ApprovedGuard


class GuardRefused(CockpitError):
    """A guard that cannot be approved, or a name that several have."""

    code = "usage"


class OwnGuardRow(Struct, frozen=True):
    """One guard, or one file that cannot be one."""

    guard_id: str
    state: str
    """``approved``, ``not approved`` and the like, in words."""
    note: str = ""
    """What it says that it refuses, or why it cannot be used."""
    tools: tuple[str, ...] = ()
    digest: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    file: ToolFile | None = None
    """The file as it is now; None where there is none that can be approved."""


def list_own_guards(
    connection: sqlite3.Connection | None, place: ProjectPaths, user_dir: Path
) -> tuple[OwnGuardRow, ...]:
    """List the guards of the user and the project, and the approved ones whose file is gone."""
    approved = {
        row.guard_id: row
        for row in (approved_guards.select_all(connection) if connection is not None else [])
    }
    rows = []
    for folder, name in list_guard_files(guard_folders(place.home, user_dir, OWN_FOLDER)):
        guard_id = f"{folder.place}:{name.removesuffix('.py')}"
        before = approved.pop(guard_id, None)
        try:
            rows.append(_describe(load_guard(folder, name), before))
        except ToolFileRefused as error:
            state = "approved as it was" if before else "cannot be used"
            rows.append(OwnGuardRow(guard_id, state, str(error)))
    for guard_id, row in approved.items():
        try:
            guard = restore_guard(guard_id, row.sources, row.digest)
            note, tools = guard.description, guard.tools
        except ToolFileRefused as error:
            note, tools = str(error), ()
        state = "approved, and its file is gone"
        rows.append(OwnGuardRow(guard_id, state, note, tools, row.digest, row.sources))
    return tuple(sorted(rows, key=lambda each: each.guard_id))


def approve_shown(tx: Tx, place: ProjectPaths, user_dir: Path, row: OwnGuardRow) -> None:
    """Approve a guard as it was shown. Raises ``ToolChanged`` where its file is another by now."""
    for folder, name in list_guard_files(guard_folders(place.home, user_dir, OWN_FOLDER)):
        if f"{folder.place}:{name.removesuffix('.py')}" != row.guard_id:
            continue
        guard = load_guard(folder, name)
        if guard.file.digest == row.digest:
            sources = guard_sources(guard.file)
            approved_guards.approve(tx, row.guard_id, row.digest, sources, by="person")
            return
    raise ToolChanged(
        f"{row.guard_id} changed while you looked at it; nothing was approved. Look at it again."
    )


def _describe(guard: DeclaredGuard, before: ApprovedGuard | None) -> OwnGuardRow:
    state = "not approved"
    if before is not None:
        same = before.digest == guard.file.digest
        state = "approved" if same else "changed; asked as it was approved"
    return OwnGuardRow(
        guard.guard_id,
        state,
        guard.description,
        guard.tools,
        guard.file.digest,
        guard_sources(guard.file),
        guard.file,
    )
