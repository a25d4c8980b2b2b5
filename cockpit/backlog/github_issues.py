"""GitHub issues as tasks, read with ``gh``; each issue becomes one task, however often it is imported.

A task keeps its issue in ``source`` (``github:owner/name#12``). A later import updates the task's title
and description, not its status. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.gh_command import parse_gh
from cockpit.access.run_program import ProgramMissing, run_gh
from cockpit.backlog import service, validation
from cockpit.backlog.import_export import ImportCounts
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.store.backlog import tasks
from cockpit.store.db.transaction import Tx

_FIELDS = "number,title,body,labels,url"
_PATIENCE_S = 60.0
_MOST_BYTES = 32 * 1024 * 1024
_TYPES = {
    "bug": "bug",
    "documentation": "docs",
    "docs": "docs",
    "test": "test",
    "tests": "test",
    "chore": "chore",
    "refactor": "refactor",
    "spike": "spike",
    "question": "investigate",
}
"""What a label says about the type, beside the names of task-type files; any other issue is a feature."""


class IssuesUnread(CockpitError):
    """``gh`` did not list the issues."""

    code = "gh_failed"


class Issue(Struct, frozen=True):
    """An open issue; ``source`` identifies it."""

    source: str
    title: str
    body: str
    task_type: str


async def open_issues(
    folder: Path,
    *,
    labels: Sequence[str] = (),
    repo: str | None = None,
    limit: int = 100,
    task_types: Collection[str] = validation.TASK_TYPES,
) -> list[Issue]:
    """The open issues with all of these labels, of ``repo`` (``owner/name``) or the folder's own
    repository. A label that is the name of one of ``task_types`` gives its issue that type.

    Raises :class:`IssuesUnread` and ``GhRefused``."""
    added = {name: name for name in task_types if name not in validation.TASK_TYPES}
    types_by_label = {**_TYPES, **added}
    words = ["issue", "list", "--state", "open", "--limit", str(limit), "--json", _FIELDS]
    for label in labels:
        words += ["--label", label]
    if repo is not None:
        words += ["--repo", repo]
    command = parse_gh(words, project_repo=repo)
    try:
        done = await run_gh(command.argv, cwd=folder, timeout_s=_PATIENCE_S, max_bytes=_MOST_BYTES)
    except ProgramMissing as error:
        raise IssuesUnread(
            "gh is not installed: it reads the issues. `cockpit doctor` says how to get it."
        ) from error
    if not done.ok:
        why = (
            "it took too long"
            if done.timed_out
            else done.error_text[:300] or f"it ended {done.code}"
        )
        raise IssuesUnread(f"gh did not list the issues: {why}")
    try:
        listed = json.loads(done.text)
        if not isinstance(listed, list):
            raise TypeError(f"a JSON {type(listed).__name__}")
        return [_issue(issue, types_by_label) for issue in listed]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IssuesUnread(f"gh wrote something other than a list of issues: {error}") from error


def import_issues(
    tx: Tx, issues: Sequence[Issue], *, story_id: str | None = None, by: str
) -> ImportCounts:
    """Create a task for every new issue, and update title and description of the others."""
    done = ImportCounts()
    for issue in issues:
        task_id = find_task_of(tx.connection, issue.source)
        if task_id is None:
            service.create_task(
                tx,
                _line(issue.title),
                story_id=story_id,
                description=issue.body[: validation.LONGEST_TEXT],
                task_type=issue.task_type,
                source=issue.source,
                by=by,
            )
            done.count(new=True, differs=False)
            continue
        before = tasks.load(tx.connection, task_id)
        words = {
            "title": mask(_line(issue.title)),
            "description": mask(issue.body[: validation.LONGEST_TEXT]),
        }
        after = service.update_task(tx, task_id, words, by=by)
        done.count(new=False, differs=after != before)
    return done


def find_task_of(connection: sqlite3.Connection, source: str) -> str | None:
    """Return the task that was made of a source; None without one."""
    row = connection.execute(
        "SELECT task_id FROM tasks WHERE source=? AND source <> '' ORDER BY number LIMIT 1",
        (source,),
    ).fetchone()
    return None if row is None else str(row[0])


def _issue(read: dict[str, Any], types_by_label: Mapping[str, str]) -> Issue:
    number, url = int(read["number"]), str(read["url"])
    # https://HOST/OWNER/NAME/issues/12: one issue has one name, whoever asks for it and how.
    repository = "/".join(url.split("/")[3:5])
    labels = [str(label["name"]).casefold() for label in read.get("labels") or ()]
    # Labels are written "load test" or "load-test", names of types load_test.
    names = [types_by_label.get(re.sub(r"[\s-]+", "_", label)) for label in labels]
    kind = next(filter(None, names), "feature")
    body = str(read.get("body") or "")
    description = f"{body}\n\n{url}".strip()
    return Issue(f"github:{repository}#{number}", str(read["title"]), description, kind)


def _line(title: str) -> str:
    line = " ".join(title.split()) or "(no title)"
    return line[: validation.LONGEST_TITLE]
