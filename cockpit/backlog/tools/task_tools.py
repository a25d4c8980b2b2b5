"""Work tools that change tasks: status, notes, blockers, dependencies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Struct

from cockpit.backlog import service
from cockpit.backlog.response_modes import render_task, shorten_to_fit
from cockpit.backlog.tools.query_tools import Status, TaskId, task_dependencies
from cockpit.backlog.tools.work_tool import ToolCall, changes_in, work_tool
from cockpit.core.read_record import describe
from cockpit.store.backlog import tasks


class UpdateTaskStatus(Struct, frozen=True):
    task_id: str
    status: Status
    notes: str | None = None


class AddTaskActivity(Struct, frozen=True):
    task_id: str
    activity_type: Literal["note", "file_change", "decision", "progress"]
    description: str


class SetHandoffNotes(Struct, frozen=True):
    task_id: str
    notes: str


class UpdateTaskProgress(Struct, frozen=True):
    task_id: str
    progress_percent: int
    context_summary: str | None = None


class SetBlocker(Struct, frozen=True):
    task_id: str
    reason: str


class SetNeedsRework(Struct, frozen=True):
    task_id: str
    value: bool


class CreateTask(Struct, frozen=True):
    title: str
    story_id: str | None = None
    task_type: str | None = None
    description: str | None = None
    acceptance_criteria: str | None = None
    estimate_hours: float | None = None
    packages: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    source: str | None = None


class UpdateTask(Struct, frozen=True):
    task_id: str
    title: str | None = None
    description: str | None = None
    acceptance_criteria: str | None = None
    task_type: str | None = None
    estimate_hours: float | None = None
    story_id: Annotated[str | None, describe("empty: belongs to none")] = None
    packages: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None


class ArchiveTask(Struct, frozen=True):
    task_id: str
    reason: str | None = None


class ReopenTask(Struct, frozen=True):
    task_id: str
    notes: str | None = None


class AddDependency(Struct, frozen=True):
    task_id: str
    depends_on_task_id: str
    dependency_type: Literal["blocks", "requires", "relates_to"] = "blocks"


class RemoveDependency(Struct, frozen=True):
    task_id: str
    depends_on_task_id: str


class SummarizeTaskActivity(Struct, frozen=True):
    task_id: str
    delete_raw: bool = False


class RecordTaskFailure(Struct, frozen=True):
    task_id: str
    failure_type: Literal["spec", "quality", "implementation"]
    reason: str
    attempt: int | None = None


@work_tool(UpdateTaskStatus, "core", "Set a task's status.", writes=True)
def _update_task_status(call: ToolCall, args: UpdateTaskStatus) -> dict[str, Any]:
    reached = service.set_status(
        call.tx, args.task_id, args.status, args.notes, by=call.by, session_id=call.session_id
    )
    return {**_status_of(call, args.task_id), "boundaries": reached.body()}


@work_tool(AddTaskActivity, "standard", "Record activity.", writes=True)
def _add_task_activity(call: ToolCall, args: AddTaskActivity) -> dict[str, Any]:
    activity = service.add_activity(
        call.tx, args.task_id, args.activity_type, args.description, by=call.by
    )
    return {"id": activity.task_id, "activity_id": activity.activity_id}


@work_tool(SetHandoffNotes, "standard", "Set notes for the next worker.", writes=True)
def _set_handoff_notes(call: ToolCall, args: SetHandoffNotes) -> dict[str, Any]:
    return _updated(call, args.task_id, {"handoff_notes": args.notes})


@work_tool(UpdateTaskProgress, "standard", "Set progress.", writes=True)
def _update_task_progress(call: ToolCall, args: UpdateTaskProgress) -> dict[str, Any]:
    changes = {"progress_percent": args.progress_percent, "context_summary": args.context_summary}
    return {
        **_updated(call, args.task_id, changes),
        "progress_percent": args.progress_percent,
    }


@work_tool(SetBlocker, "core", "Mark as blocked.", writes=True)
def _set_blocker(call: ToolCall, args: SetBlocker) -> dict[str, Any]:
    service.block(call.tx, args.task_id, args.reason, by=call.by, session_id=call.session_id)
    return _status_of(call, args.task_id)


@work_tool(TaskId, "standard", "Unblock.", writes=True)
def _resolve_blocker(call: ToolCall, args: TaskId) -> dict[str, Any]:
    service.resolve_blocker(call.tx, args.task_id, by=call.by)
    return _status_of(call, args.task_id)


@work_tool(SetNeedsRework, "standard", "Mark as needing rework.", writes=True)
def _set_needs_rework(call: ToolCall, args: SetNeedsRework) -> dict[str, Any]:
    task = service.set_needs_rework(call.tx, args.task_id, args.value, by=call.by)
    return {"id": task.task_id, "needs_rework": task.needs_rework}


@work_tool(CreateTask, "core", "Add a task.", writes=True)
def _create_task(call: ToolCall, args: CreateTask) -> dict[str, Any]:
    task = service.create_task(
        call.tx,
        args.title,
        story_id=args.story_id,
        by=call.by,
        task_type=args.task_type,
        description=args.description,
        acceptance_criteria=args.acceptance_criteria,
        estimate_hours=args.estimate_hours,
        packages=args.packages,
        files=args.files,
        # Only the user is the source of what the user wrote: other texts are fenced in a prompt.
        source=args.source if args.source and args.source != tasks.USER else call.by,
    )
    return render_task(task)


@work_tool(UpdateTask, "standard", "Change a task.", writes=True)
def _update_task(call: ToolCall, args: UpdateTask) -> dict[str, Any]:
    return _updated(call, args.task_id, changes_in(args, "task_id"))


@work_tool(ArchiveTask, "all", "Archive a task.", writes=True)
def _archive_task(call: ToolCall, args: ArchiveTask) -> dict[str, Any]:
    reached = service.archive(call.tx, args.task_id, args.reason, by=call.by)
    return {**_status_of(call, args.task_id), "boundaries": reached.body()}


@work_tool(ReopenTask, "standard", "Reopen a task.", writes=True)
def _reopen_task(call: ToolCall, args: ReopenTask) -> dict[str, Any]:
    service.reopen(call.tx, args.task_id, args.notes, by=call.by)
    return _status_of(call, args.task_id)


@work_tool(AddDependency, "standard", "Make a task wait for another.", writes=True)
def _add_dependency(call: ToolCall, args: AddDependency) -> dict[str, Any]:
    service.add_dependency(
        call.tx, args.task_id, args.depends_on_task_id, args.dependency_type, by=call.by
    )
    return task_dependencies(call, args.task_id)


@work_tool(RemoveDependency, "standard", "Remove a dependency.", writes=True)
def _remove_dependency(call: ToolCall, args: RemoveDependency) -> dict[str, Any]:
    service.remove_dependency(call.tx, args.task_id, args.depends_on_task_id, by=call.by)
    return task_dependencies(call, args.task_id)


@work_tool(SummarizeTaskActivity, "all", "Summarize activity into context_summary.", writes=True)
def _summarize_task_activity(call: ToolCall, args: SummarizeTaskActivity) -> dict[str, Any]:
    summary = service.summarize_activity(
        call.tx, args.task_id, delete_raw=args.delete_raw, by=call.by
    )
    return shorten_to_fit({"summary": summary}, call.cap_tokens)


@work_tool(RecordTaskFailure, "standard", "Record a failed attempt.", writes=True)
def _record_task_failure(call: ToolCall, args: RecordTaskFailure) -> dict[str, Any]:
    failure = service.record_failure(
        call.tx, args.task_id, args.failure_type, args.reason, args.attempt, by=call.by
    )
    return {"id": failure.task_id, "attempt": failure.attempt, "failure_type": failure.failure_type}


def _updated(call: ToolCall, task_id: str, changes: dict[str, Any]) -> dict[str, Any]:
    task = service.update_task(call.tx, task_id, changes, by=call.by, session_id=call.session_id)
    return render_task(task)


def _status_of(call: ToolCall, task_id: str) -> dict[str, Any]:
    task = tasks.load(call.connection, task_id)
    return {"id": task.task_id, "status": task.status}
