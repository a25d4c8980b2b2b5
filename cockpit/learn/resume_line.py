"""The line that says where a task was paused, from plain values.

Separate from :mod:`cockpit.learn.resume_text` because hooks use it: an agent waits for them, so they
import next to nothing. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from cockpit.core.text import pluralize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST = 200


def format_resume_line(task_id: str, status: str, wip: Mapping[str, Any]) -> str:
    """Return ``Resuming T-42 from: testing phase, next: fix failing test``, always one line."""
    phase = one_line(wip.get("phase"))
    start = f"{phase} phase" if phase and not phase.endswith("phase") else phase
    return f"Resuming {task_id} from: {start or status.replace('_', ' ')}, next: {_next(wip)}"


def one_line(value: object, most: int = _LONGEST) -> str:
    """Return the text on one line, shortened to the limit."""
    words = " ".join(str(value or "").split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _next(wip: Mapping[str, Any]) -> str:
    if step := one_line(wip.get("next_step")):
        return step
    results = wip.get("test_results") or {}
    if failing := one_line(results.get("failing_test")):
        return f"fix {failing}"
    if results.get("outcome") == "fail" or results.get("failed"):
        return "fix the failing tests"
    if wip.get("uncommitted_changes"):
        count = len(wip.get("files_modified", ()))
        return f"finish and commit {pluralize(count, 'changed file')}"
    return "see its description" if wip else "begin"
