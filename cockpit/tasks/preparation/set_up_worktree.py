"""What a fresh worktree lacks: dependencies, ignored files, variables of its own.

``[work] link``, ``setup`` and ``copy`` are done once for each worktree, in this order: no secret that is
copied is there while the setup runs. See ``docs/reference/roles.md``, worktrees.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from cockpit.access.confined_paths import Confined
from cockpit.access.git_folders import locate_git_folders
from cockpit.act.command_line import split_command
from cockpit.act.sandbox.run_confined import run_confined
from cockpit.act.workspace import Workspace
from cockpit.core.canonical_json import canonical_json
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.agent_changes.unheld_files import list_left_out
from cockpit.tasks.git import WorktreeError, commit_of, uncommitted_files
from cockpit.tasks.preparation.base_tests import list_lock_files
from cockpit.tasks.task_context import TaskContext

SETUP_S = 1_800
"""The longest that one command of the setup may run, in seconds."""
_READY = "cockpit-ready.json"
"""In the worktree's own folder of git's state: how it was set up, and its port."""
_MOVABLE = ("node_modules", "vendor", "deps")
"""Folders that work at any path, so that the next worktree can have a copy."""
_MOST_CACHES = 4
_TAIL = 600


def worktree_settings(context: TaskContext, root: Path, task_id: str) -> RuntimeSettings:
    """Return the settings with the worktree's own variables, and with what its links point to readable."""
    settings, work = context.settings, context.work
    if not (work.env or work.link):
        return settings
    port = str(_read_ready(root).get("port", ""))
    own = {
        name: value.replace("{port}", port).replace("{task}", task_id)
        for name, value in (work.env or {}).items()
    }
    choices = settings.sandbox
    linked = tuple((context.place.root / name).resolve() for name in work.link)
    return replace(
        settings,
        environment={**settings.environment, **own},
        sandbox=replace(
            choices, variables=(*choices.variables, *own), read=(*choices.read, *linked)
        ),
    )


async def set_up_worktree(context: TaskContext, root: Path) -> None:
    """Choose the worktree's port, and make its links, if that was not done before."""
    work = context.work
    if not (work.env or work.link or work.setup or work.copy) or _read_ready(root):
        return
    await asyncio.to_thread(_link, context.place.root, root, work.link)
    _write_ready(root, {"port": _free_port()})


async def fill_worktree(context: TaskContext, tree: Worktree, ground: Workspace) -> None:
    """Run the setup and copy ignored files, once for each worktree and state of its lock files.

    Raises :class:`~cockpit.tasks.git.WorktreeError` where a command of the setup fails, ``PathRefused`` for a
    path that leads out, and :class:`~cockpit.act.command_line.CommandRefused`.
    """
    root = Path(tree.path)
    work, ready = context.work, _read_ready(root)
    if not (work.setup or work.copy):
        return
    digest = await asyncio.to_thread(_digest, root, work.setup)
    if ready.get("digest") == digest:
        return
    cache = context.place.state / "setups" / digest[:32]
    if work.setup and not await asyncio.to_thread(_take_copies, cache, root):
        if not ground.sandbox.works and context.approve != "all":
            raise WorktreeError(
                f"[work] setup was not run: there is no sandbox here ({ground.sandbox.missing}). Install"
                " bubblewrap, or allow it with --approve all."
            )
        # What an agent may have changed is in no other worktree.
        is_untouched = "digest" not in ready and await commit_of(root, "HEAD") == tree.base_commit
        is_untouched = is_untouched and not await uncommitted_files(root)
        for command in work.setup:
            await _run(command, root, ground)
        if is_untouched:
            await asyncio.to_thread(_keep_copies, cache, root)
    await asyncio.to_thread(_copy, context.place.root, root, work.copy)
    brought = [path for state, path in await list_left_out(root) if state == "!!"]
    _write_ready(root, {**ready, "digest": digest, "brought": brought})


def brought_files(root: Path) -> frozenset[str]:
    """Return the ignored files and folders that the setup of the worktree left, as git names them."""
    brought = _read_ready(root).get("brought")
    return frozenset(map(str, brought)) if isinstance(brought, list) else frozenset()


async def _run(command: str, root: Path, ground: Workspace) -> None:
    ended = await run_confined(
        ground.sandbox,
        split_command(command),
        root,
        ground.environment,
        timeout_s=SETUP_S,
        network=True,
    )
    if not ended.finished.ok or ended.passed:
        why = ended.passed or ended.finished.reason
        output = f"{ended.finished.text}\n{why}".strip()[-_TAIL:]
        raise WorktreeError(
            f"The setup of the worktree failed: `{command}`. Correct [work] setup, then unblock the task."
            f" Its output ends:\n{output}"
        )


def _digest(root: Path, setup: Sequence[str]) -> str:
    files = {path.name: sha256(path.read_bytes()).hexdigest() for path in list_lock_files(root)}
    return sha256(canonical_json([list(setup), files]).encode()).hexdigest()


def _take_copies(cache: Path, root: Path) -> bool:
    """Copy what an earlier setup left for the same lock files; whether there was anything."""
    if not cache.is_dir():
        return False
    for kept in cache.iterdir():
        target = Confined(root).inside(kept.name, write=True)
        shutil.rmtree(target, ignore_errors=True)  # a copy that was cut off
        shutil.copytree(kept, target, symlinks=True)
    return True


def _keep_copies(cache: Path, root: Path) -> None:
    """Keep copies of what the setup made, never links: a task that changes its own poisons no other."""
    names = [name for name in _MOVABLE if (root / name).is_dir() and not (root / name).is_symlink()]
    if not names or cache.is_dir():
        return
    cache.parent.mkdir(exist_ok=True)
    for old in sorted(cache.parent.iterdir(), key=lambda path: path.stat().st_mtime)[
        : 1 - _MOST_CACHES
    ]:
        shutil.rmtree(old)
    begun = cache.with_suffix(f".{root.name}")
    shutil.rmtree(begun, ignore_errors=True)
    for name in names:
        shutil.copytree(root / name, begun / name, symlinks=True)
    try:
        begun.rename(cache)
    except OSError:  # another task was first
        shutil.rmtree(begun)


def _link(checkout: Path, root: Path, names: Sequence[str]) -> None:
    """Link each; a folder becomes a folder of links, since ``node_modules/`` makes git ignore no link."""
    for name in names:
        source, target = _find(checkout, name), Confined(root).inside(name, write=True)
        links = {target: source}
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            links = {target / entry.name: entry for entry in source.iterdir()}
        for link, leads_to in links.items():
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists() and not link.is_symlink():
                link.symlink_to(leads_to)


def _copy(checkout: Path, root: Path, names: Sequence[str]) -> None:
    for name in names:
        source, target = _find(checkout, name), Confined(root).inside(name, write=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif not target.exists():
            shutil.copy2(source, target)


def _find(checkout: Path, name: str) -> Path:
    """Return the file of the checkout. Raises ``PathRefused``, and ``WorktreeError`` where it is not."""
    path = Confined(checkout).inside(name)
    if not path.exists():
        raise WorktreeError(
            f"[work] names {name}, and {checkout} has no such file. Make it, or take it out."
        )
    return path


def _read_ready(root: Path) -> dict[str, object]:
    try:
        read = json.loads(_ready_file(root).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return read if isinstance(read, dict) else {}


def _write_ready(root: Path, ready: dict[str, object]) -> None:
    _ready_file(root).write_text(canonical_json(ready), encoding="utf-8")


def _ready_file(root: Path) -> Path:
    folders = locate_git_folders(root)
    if folders is None:
        raise WorktreeError(
            f"{root} is no worktree of git any more. Unblock the task to make it again."
        )
    return Path(folders.own, _READY)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
