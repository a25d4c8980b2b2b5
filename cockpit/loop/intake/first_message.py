"""The first message of a session, with the task's deterministic context.

Either the context is complete, or the task does not start and says why in one sentence. See
``docs/reference/task-types.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cockpit.core.fenced_text import make_visible
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.loop.intake.declared_context import (
    MOST_NAMED,
    branch_values,
    check_declared,
    find_named,
    find_written,
    keep_short,
)
from cockpit.loop.intake.intent import Task
from cockpit.loop.intake.review_pull_request import pull_request
from cockpit.loop.intake.review_range import commit_range
from cockpit.loop.intake.review_target import IntentUnclear, Repository, resolve_range
from cockpit.loop.intake.review_template import OpeningFailed, ReviewContext
from cockpit.loop.intake.task_types import OPTIONAL, TaskType
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.gateway import ContextGateway


class Opening(Struct, frozen=True):
    """The start of a task.

    ``text`` is the first user message, masked. ``scope_items`` name what the task type declares
    deterministic and this task has; of these ``in_message`` are in ``text`` already, with their tokens
    there, and the first wave reads the others; ``named`` are those that the user named. ``proposed`` are
    files that other text of the task names: the user is asked for them. ``target`` has commit ids filled in;
    ``rev`` is the commit that files are read at, None for the working tree. ``notice`` is one line for the
    user, often empty.
    """

    text: str
    scope_items: tuple[str, ...] = ()
    in_message: Mapping[str, int] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    rev: str | None = None
    notice: str = ""
    named: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()


async def opening(
    task: Task,
    task_type: TaskType,
    ground: ProjectPaths,
    repo: str | None = None,
    *,
    details: str = "",
    is_typed: bool = False,
) -> Opening:
    """Gather what every task of this type needs. Raises :class:`OpeningFailed`.

    ``repo`` is ``owner/name`` of the project on GitHub, where it is known. ``details`` is more text about
    the task, which may name issues and files too. ``is_typed``: the user typed the words here, so that the
    files which they name are granted; those that anyone else's words name are proposed.
    """
    issues = find_named(f"{task.words}\n{details}", ground.root)["issue"]
    written = await find_written(task.words, details, ground.root, is_typed=is_typed)
    files = dict.fromkeys((*written.granted, *find_named(details, ground.root)["file"]))
    named = {"issue": issues, "file": list(files)[:MOST_NAMED]}
    rest = tuple(path for path in written.proposed if path not in files)
    target = dict(task.target)
    text = mask(make_visible(task.words))
    values = {"words": text, "title": mask(make_visible(task.title))}
    user_words = text if (task.says_more or not task.target) else ""
    if "pr" in target:
        number = str(target["pr"])
        review = await pull_request(target["pr"], target.get("repo"), ground.root)
        values |= {"subject": f"PR #{number}", "number": number, "target": f"PR #{number}"}
        if review.rev:
            target["head"] = review.rev
        return await _started(
            task_type, values, named, target, ground.root, repo, review, user_words, rest
        )
    if "range" in target:
        spelled = str(target["range"])
        if not (target.get("base") and target.get("tip")):
            try:
                target = await resolve_range(spelled, Repository(ground.root))
            except IntentUnclear as error:
                raise OpeningFailed(str(error)) from error
        base, tip = str(target["base"]), str(target["tip"])
        review = await commit_range(spelled, base, tip, ground.root)
        range_text = mask(make_visible(spelled))
        values |= {
            "subject": range_text,
            "range": range_text,
            "target": range_text,
            "base": base,
            "tip": tip,
        }
        return await _started(
            task_type, values, named, target, ground.root, repo, review, user_words, rest
        )
    if task_type.needs_target:
        raise OpeningFailed(f"{task_type.command} needs {task_type.arguments}.")
    values["subject"] = values["title"]
    if "issue" in target:
        values["issue"] = str(target["issue"])
    elif task_type.needs_issue:
        raise OpeningFailed(f"{task_type.command} needs {task_type.arguments}.")
    if task_type.needs_branch:
        values |= await branch_values(ground.root, task_type.command)
    return await _started(
        task_type, values, named, target, ground.root, repo, None, user_words, rest
    )


async def _started(
    task_type: TaskType,
    values: dict[str, str],
    named: Mapping[str, Sequence[str]],
    target: dict[str, Any],
    root: Path,
    repo: str | None,
    review: ReviewContext | None,
    user_words: str,
    rest: tuple[str, ...],
) -> Opening:
    listed = dict(named)
    if "issue" in values:
        listed["issue"] = [values["issue"]]
    filled, in_message = await asyncio.to_thread(_fill, values, review, task_type.placeholders)
    gateway = ContextGateway.of(root=root, rev=review.rev if review else None, repo=repo)
    declared = await check_declared(
        task_type, values, listed, gateway, in_message=tuple(in_message)
    )
    applying = {item.removeprefix(OPTIONAL) for item in task_type.scope_items(values, listed)}
    in_message = {item: tokens for item, tokens in in_message.items() if item in applying}
    notices = [review.notice if review else "", declared.notice]
    message = task_type.message(filled, local="range" in target)
    if user_words and "words" not in task_type.placeholders:
        # Its template names the target alone, and the user may have user_words more than that.
        message = f"{message.rstrip()}\n\n### In the User's Words\n\n{user_words}\n"
    return Opening(
        text=await asyncio.to_thread(mask, message),
        scope_items=(*in_message, *declared.items),
        in_message=in_message,
        target=target,
        rev=review.rev if review else None,
        notice=" ".join(notice for notice in notices if notice),
        named=tuple(
            each for each in declared.items if each.removeprefix("file:") in listed["file"]
        ),
        proposed=await keep_short(rest, gateway),
    )


def _fill(
    values: Mapping[str, str], review: ReviewContext | None, placeholders: frozenset[str]
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the values of the first message, and the scope items that it contains with their tokens.

    To mask a long difference and to count its tokens takes long: call it in a thread.
    """
    if review is None:
        return dict(values), {}
    filled = {**values, **review.values()}
    return filled, _in_message(filled, placeholders)


def _in_message(filled: Mapping[str, str], placeholders: frozenset[str]) -> dict[str, int]:
    """Return the scope items that a review's first message contains, with their tokens there.

    ``placeholders`` are those of its template: what that leaves out is read as any other context.
    """
    about = f"{filled['title']}\n{filled['body']}\n{filled['file_list']}"
    if "number" in filled:
        items = {f"pr:{filled['number']}": ({"body", "diff"}, f"{about}\n{filled['diff']}")}
    else:
        items = {
            f"log:{filled['range']}": ({"body"}, about),
            f"diff:{filled['range']}": ({"diff"}, filled["diff"]),
        }
    return {
        item: count_tokens(text) for item, (names, text) in items.items() if names <= placeholders
    }
