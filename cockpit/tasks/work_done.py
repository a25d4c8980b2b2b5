"""Whether an implementer did something: what it says counts only together with what it left behind.

See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.act.protected_tests import is_test
from cockpit.agents.streams.final_status import NOTHING_TO_DO, own_lines
from cockpit.core.text import pluralize
from cockpit.loop.intake.task_types import TaskType
from cockpit.store.chains.task_runs import Step
from cockpit.store.sessions.sessions import NEEDS_ANSWER
from cockpit.tasks.git import MOST_PATCH, CommitDifference, compare_commits, show_name, try_git
from cockpit.tasks.role_result import RoleResult, ended_without_finish

_MAX_REFUSED = 5
_LARGEST_TEST = 2_000_000
_COMMENTS = (b"#", b"//", b"/*", b"*", b"--", b"<!--", b";", b"%")
_TEST_DEFINITION = re.compile(
    rb"^[ \t]*(?:async\s+def|def)\s+test|^[ \t]*(?:it|test|specify|describe)(?:\.\w+)?\s*\("
    rb"|^func\s+(?:Test|Example|Fuzz)|#\[(?:\w+::)?test|^\s*@(?:Test|ParameterizedTest)\b|^\s*TEST(?:_F|_P)?\("
    rb"|^\s*(?:it|test)\s+[\"']|\bpublic\s+function\s+test|^\s*\[(?:Fact|Theory|Test)",
    re.MULTILINE,
)
_MOST_NAMED = 20


class Work(Struct, frozen=True):
    """What an implementer's session came to."""

    outcome: str
    """The step's outcome: ``done``, ``nothing_to_do`` (a claim that reviewers confirm), ``blocked``,
    ``empty``, ``blank``, ``refused`` or ``idle``."""
    summary: str
    detail: Mapping[str, Any]
    """What reviewers are told of it, for the step's row."""


async def judge_work(result: RoleResult, root: Path, base: str, task_type: TaskType | None) -> Work:
    """Compare what the session says with the change of the worktree ``root`` since ``base``.

    A type that is not there any more expects a change.
    """
    change = await compare_commits(root, base)
    files = change.names
    counts_blank = task_type is not None and task_type.blank_change_counts
    # What git calls a path of the difference and is not there was deleted: a renamed file has its new name.
    deleted = [
        path
        for path in change.paths
        if is_test(path) and not (root / path).is_symlink() and not (root / path).exists()
    ]
    must_change = task_type is None or task_type.must_change
    only_blank = not counts_blank and is_blank_change(change)
    outcome = _outcome(result, bool(files), only_blank, must_change)
    summary = ended_without_finish(result) if result.status == NEEDS_ANSWER else result.summary
    if outcome == "refused":
        reason = _refusals(result.standing or result.refused)
        summary = f"{reason} Its summary: {result.summary}"
    detail: dict[str, Any] = {"changed": len(files)}
    if result.refused:
        detail["refused"] = list(result.refused)
    if deleted:
        detail["deleted_tests"] = deleted
    if slight := describe_slight_change(change):
        detail["slight"] = slight
    if outcome == "done" and (lost := await find_lost_tests(root, base, files)):
        return Work(
            "blocked", f"{lost} Restore them, or unblock the task if that is meant.", detail
        )
    return Work(outcome, summary, detail)


async def find_lost_tests(root: Path, base: str, names: Sequence[str]) -> str:
    """Return which tests a change takes away, so that a green run says nothing; empty where none are.

    ``names`` are the changed files. Files of tests that lost all of theirs count, and a project that had
    tests and has none. A deleted file beside others is for the reviewers, who are told of it.
    """
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for name in filter(is_test, names):
        shown = await try_git(root, "show", f"{base}:{name}")
        before[name] = count_tests(shown.stdout) if shown.ok else 0
        file = root / name
        is_there = file.is_file() and not file.is_symlink()
        after[name] = count_tests(file.read_bytes()) if is_there else 0
        if before[name] and not after[name] and is_there:
            return f"{show_name(name)} had {pluralize(before[name], 'test')} and has none any more."
    had, has = sum(before.values()), sum(after.values())
    if had == 0 or has > 0:
        return ""
    listed = os.fsdecode((await try_git(root, "ls-files", "-z")).stdout).split("\0")
    others = (root / name for name in listed if name not in before and is_test(name))
    if any(file.is_file() and count_tests(file.read_bytes()) for file in others):
        return ""
    return f"The change deletes all of the project's tests ({', '.join(map(show_name, before))})."


def count_tests(content: bytes) -> int:
    """Count the definitions of tests in a file, in the common languages."""
    return len(_TEST_DEFINITION.findall(content[:_LARGEST_TEST]))


def describe_slight_change(change: CommitDifference) -> str:
    """Return what the whole change is, where that is a mode, an empty file or a comment; else empty."""
    if not change.names or len(change.patch) >= MOST_PATCH or b"\nBinary files " in change.patch:
        return ""
    changed = [
        line[1:].strip()
        for line in change.patch.split(b"\n")
        if line[:1] in (b"+", b"-") and line[:4] not in (b"+++ ", b"--- ")
    ]
    if not changed:
        is_mode = b"\nold mode " in b"\n" + change.patch.replace(b"\0", b"\n")
        return "a file's mode" if is_mode else "an empty file"
    if all(line.startswith(_COMMENTS) for line in changed if line):
        return "comments"
    return ""


def name_unheld(work: Work, unheld: Sequence[str], root: Path) -> Work:
    """Return the work as blocked: it has files that no commit holds, and that would go with the worktree."""
    more = len(unheld) - _MOST_NAMED
    names = ", ".join(unheld[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Work(
        "blocked",
        f"Git leaves out files of this work: {names}. An ignore rule matches them, or a folder is a"
        f" repository of its own. They are kept in {root}. Add them there (`git add --force`) or name them in"
        " the task, then unblock it; delete them if they are not needed.",
        {**work.detail, "unheld": list(unheld)},
    )


def _outcome(result: RoleResult, changed: bool, only_blank: bool, must_change: bool) -> str:
    if result.status != "done":
        return "blocked"
    if result.standing:
        return "refused"
    if changed and not (only_blank and must_change):
        return "done"
    if only_blank:
        return "blank"
    if result.refused and (must_change or len(result.refused) >= (result.tools or 0)):
        return "refused"
    if result.tools == 0:
        return "idle"
    if not must_change:
        return "done"
    return "nothing_to_do" if claimed_reason(result.summary) else "empty"


def is_blank_change(change: CommitDifference) -> bool:
    """Whether the change is only of blank lines and of spaces at the ends of lines."""
    if not change.names or len(change.patch) >= MOST_PATCH:
        return False
    removed: list[bytes] = []
    added: list[bytes] = []
    in_hunk = False
    for line in change.patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            in_hunk = False
        elif line.startswith(b"@@ "):
            in_hunk = True
        elif not in_hunk:
            if not line.startswith((b"index ", b"--- ", b"+++ ")) and line:
                return False  # a new, deleted, renamed or binary file, or another mode
        elif line[:1] in (b"-", b"+") and line[1:].strip():
            (removed if line[:1] == b"-" else added).append(line[1:].rstrip())
    return removed == added


def claimed_reason(summary: str) -> str:
    """Return why the summary says that there is nothing to do; empty where it does not say so."""
    lines = own_lines(summary)
    for place, line in enumerate(lines):
        text = line.text.strip(" \t*_#`")
        if text.upper().startswith(NOTHING_TO_DO):
            rest = text[len(NOTHING_TO_DO) :].strip(" \t*_`")
            return " ".join([rest, *(after.text.strip() for after in lines[place + 1 :])]).strip()
    return ""


def observations(steps: Sequence[Step]) -> str:
    """Return what reviewers are told of the last implementation besides its change; empty for nothing."""
    last = next((step for step in reversed(steps) if step.step == "implement"), None)
    if last is None:
        return ""
    lines = []
    if last.outcome == "nothing_to_do":
        reason = claimed_reason(str(last.detail.get("summary", "")))
        lines.append(
            f"The implementer changed nothing and says that there is nothing to do: {reason} Pass only if"
            " the task is done without a change."
        )
    if slight := last.detail.get("slight"):
        lines.append(f"The whole change is {slight}. Pass only if the task asks for no more.")
    if refused := last.detail.get("refused"):
        lines.append(_refusals(refused))
    if deleted := last.detail.get("deleted_tests"):
        names = ", ".join(deleted[:_MAX_REFUSED])
        lines.append(f"The change deletes {pluralize(len(deleted), 'test file')}: {names}.")
    return "\n".join(f"- {line}" for line in lines)


def _refusals(refused: Sequence[str]) -> str:
    more = len(refused) - _MAX_REFUSED
    names = "; ".join(refused[:_MAX_REFUSED]) + (f"; and {more} more" if more > 0 else "")
    return f"The implementer was refused {pluralize(len(refused), 'permission')}: {names}."
