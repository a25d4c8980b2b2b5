"""The context that a task type declares: its placeholders' values, and whether all of it can be read.

Nothing is read here that the session keeps: its first wave reads every item through the gateway. See
``docs/reference/task-types.md``, context.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.access.secret_files import is_sensitive
from cockpit.core.named_files import find_named_files
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.review_template import OpeningFailed
from cockpit.loop.intake.task_types import LISTED_PLACEHOLDERS, OPTIONAL, TaskType
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import REMOTE, ScopeItem, ScopeRefused, parse_item

MOST_NAMED = 8
"""Issues, and files, of one task's text that are read without asking."""
MOST_TOKENS_OF_FILE, MOST_TOKENS_OF_FILES = 8_000, 30_000
"""Tokens of one file that the user names, and of all, that are read without asking."""

_ISSUE = re.compile(r"(?<![\w/#&])#([1-9][0-9]{0,8})(?!\w)")
_FILE = re.compile(r"(?<![\w@.])@([^\s,;:!?'\"`()<>\[\]{}]+)")


class DeclaredContext(Struct, frozen=True):
    """The items that the first wave reads, and one line for the user about items left out."""

    items: tuple[str, ...] = ()
    notice: str = ""


def find_named(words: str, root: Path, *, bare: str = "") -> Mapping[str, Sequence[str]]:
    """Return what ``words`` name: issues as ``#7``, and files of the project as ``@path``.

    ``bare`` is a text in which the path alone names a file, from the root or, as in a traceback, absolute.
    """
    confined, below = Confined(root), f"{root}/"
    issues = dict.fromkeys(_ISSUE.findall(words))
    paths: dict[str, None] = {}
    for name in (*_FILE.findall(words), *sorted(find_named_files(bare), key=bare.find)):
        path = _find_file(confined, name.rstrip(".").removeprefix(below))
        if path is not None:
            paths[path] = None
    return {"issue": list(issues)[:MOST_NAMED], "file": list(paths)[:MOST_NAMED]}


def _find_installed(text: str, root: Path) -> Sequence[str]:
    """Return files of the project whose installed copy ``text`` names, as ``…/site-packages/PATH``.

    The longest end of the path that is a file here counts; a name alone could be any file.
    """
    confined = Confined(root)
    paths: dict[str, None] = {}
    for name in sorted(find_named_files(text), key=text.find):
        parts = name.rstrip(".").split("/")
        if parts[0] or name.startswith(f"{root}/"):
            continue
        ends = (_find_file(confined, "/".join(parts[n:])) for n in range(1, len(parts) - 1))
        longest = next((end for end in ends if end is not None), None)
        if longest is not None:
            paths[longest] = None
    return list(paths)[:MOST_NAMED]


def _find_file(confined: Confined, name: str) -> str | None:
    """Return the path from the root of the file ``name``; None where the project has no such file."""
    try:
        path = confined.relative(name)
        return path if confined.inside(path).is_file() else None
    except (PathRefused, OSError):
        return None


class WrittenFiles(Struct, frozen=True):
    """Files that the text of a task names, as far as git tracks them and they hold no secrets."""

    granted: tuple[str, ...]
    """Those that the user named by typing them."""
    proposed: tuple[str, ...]
    """The others: what pasted text, or that of another program, names."""


async def find_written(words: str, details: str, root: Path, *, is_typed: bool) -> WrittenFiles:
    """Return the files that ``words`` and the further text ``details`` name by their path, or as ``@path``.

    With ``is_typed`` the user typed the words. A path in the lines behind the first counts as typed only as
    ``@path``: such lines are often pasted, and what a traceback names was not named by the user.
    """
    first, _, _ = words.strip().partition("\n")
    typed = find_named(words, root, bare=first)["file"] if is_typed else ()
    text = f"{words}\n{details}"
    pasted = (*find_named(text, root, bare=text)["file"], *_find_installed(text, root))
    paths = dict.fromkeys((*typed, *pasted))
    safe = [path for path in paths if not is_sensitive(path)]
    if safe:
        done = await run_git("ls-files", "-z", "--", *safe, cwd=root)
        tracked = done.text.split("\0") if done.ok else safe
        safe = [path for path in safe if path in tracked]
    return WrittenFiles(
        tuple(path for path in safe if path in typed),
        tuple(path for path in safe if path not in typed),
    )


async def keep_short(paths: Sequence[str], gateway: ContextGateway) -> tuple[str, ...]:
    """Return the items of files that can be read and are within the limits of what a task's text names."""
    items: list[str] = []
    tokens = 0
    for path in paths[:MOST_NAMED]:
        item = str(ScopeItem("file", path))
        refused, size = await _preview(item, gateway)
        is_short = size <= min(MOST_TOKENS_OF_FILE, MOST_TOKENS_OF_FILES - tokens)
        if not refused and is_short:
            tokens += size
            items.append(item)
    return tuple(items)


async def branch_values(root: Path, command: str) -> dict[str, str]:
    """Return the current branch, and the branch on which it is based.

    The base is the default branch as the remote has it, where this clone knows that. Raises
    :class:`OpeningFailed` where there is no branch of its own.
    """
    git = Repository(root)
    try:
        done = await run_git("symbolic-ref", "--quiet", "--short", "HEAD", cwd=root)
    except ProgramMissing as error:
        raise OpeningFailed(
            f"git is not installed, and {command} needs it. Install git."
        ) from error
    branch = done.text.strip() if done.ok else ""
    if not branch:
        raise OpeningFailed(
            f"{command} needs a branch, and none is checked out here. Run `git switch -c NAME` first."
        )
    default = await git.default_branch()
    if default is None:
        raise OpeningFailed(
            f"{command} needs a branch to compare {branch} with, and there is no main or master."
        )
    name = default.removeprefix("origin/")
    if branch == name:
        raise OpeningFailed(
            f"You are on {branch}, the branch that changes go into. Run `git switch -c NAME`, commit "
            f"there, and start {command} again."
        )
    remote = f"origin/{name}"
    return {"branch": branch, "base_branch": remote if await git.is_branch(remote) else name}


async def check_declared(
    task_type: TaskType,
    values: Mapping[str, str],
    listed: Mapping[str, Sequence[str]],
    gateway: ContextGateway,
    *,
    in_message: Sequence[str] = (),
) -> DeclaredContext:
    """Return the items that apply, without those that ``in_message`` names, which the first message has.

    Raises :class:`OpeningFailed` for an item that cannot be read, unless it is optional. An optional item
    that cannot be read is left out; the notice says so where the user named it.
    """
    items: list[str] = []
    left_out: list[str] = []
    tokens = 0
    for entry in task_type.deterministic:
        named = any(f"{{{name}}}" in entry for name in LISTED_PLACEHOLDERS)
        single = task_type.scope_items(values, listed, only=entry)
        for marked in single:
            item = marked.removeprefix(OPTIONAL)
            if item in in_message or item in items:
                continue
            refused, size = await _preview(item, gateway)
            if not refused and named and item.startswith("file:"):
                tokens += size
                if size > MOST_TOKENS_OF_FILE or tokens > MOST_TOKENS_OF_FILES:
                    refused = "it is long; the agent asks for the parts that it needs"
            if not refused:
                items.append(item)
            elif marked == item:
                raise OpeningFailed(
                    f"{task_type.command} starts from {item}, which cannot be read: {refused}."
                )
            elif named:
                left_out.append(f"{item} was not read: {refused}")
    return DeclaredContext(tuple(items), "; ".join(left_out))


async def _preview(item: str, gateway: ContextGateway) -> tuple[str, int]:
    """Return why ``item`` cannot be read now, empty when it can, and about how many tokens it has."""
    try:
        scope = parse_item(item)
    except ScopeRefused as error:
        return str(error), 0
    request = ContextRequest("start a task", "Can this be read?", (scope,), rev=gateway.ground.rev)
    if scope.kind in REMOTE:
        # Only reading says whether it can be read, and what a task type declares may be read.
        (outcome,) = (await gateway.fetch(request)).outcomes
        return outcome.error.rstrip("."), 0
    (preview,) = await gateway.preview(request)
    return preview.refused.rstrip("."), preview.tokens or 0
