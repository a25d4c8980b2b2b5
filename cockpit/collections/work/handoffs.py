"""What finished tasks left behind for the next ones, the newest first."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.access.token_scopes import WORK_READ
from cockpit.collections.collection import LIMIT, Collection, Field, View, open_records
from cockpit.store.backlog import handoffs
from cockpit.store.backlog.handoffs import Handoff


def _read(view: View, limit: int) -> Sequence[Handoff]:
    return () if view.connection is None else handoffs.select_recent(view.connection, limit)


COLLECTION: Collection[Handoff] = Collection(
    name="handoffs",
    command="tasks handoff",
    title="Handoffs",
    summary="Show what finished tasks left behind.",
    help="",
    examples=("cockpit tasks handoff T-42",),
    row="TASK",
    sample="T-42",
    columns={
        "TASK": lambda row: row.task_id,
        "STATUS": lambda row: row.status,
        "FILES": lambda row: str(len(row.files_changed)),
        "DETAILS": lambda row: (
            "compacted" if row.compacted_at else "whole" if row.full_details else "none"
        ),
        "SUMMARY": lambda row: row.summary.splitlines()[0],
    },
    read=_read,
    find=lambda view, name: handoffs.load(open_records(view), name),
    none="No handoffs yet. `cockpit tasks handoff T-42 PASS SUMMARY` writes one.",
    body=lambda row: row.body(),
    document=lambda row: row.body(details=True),
    filters=(Field("limit", LIMIT.help, kind="number", default=20),),
    scope=WORK_READ,
    synonyms="summaries done tasks",
)
