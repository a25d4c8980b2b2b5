"""A role's part of a task taken by an agent from outside: what it is told, and what it may not leave.

A reviewer's agent has tools of its own, whatever its role says: what it changed is put back. Source:
design of work, "The runner of a session is configurable".
"""

from __future__ import annotations

from pathlib import Path

from cockpit.access.run_program import ProgramMissing
from cockpit.access.token_scopes import AGENT_SCOPES, READ, WORK_READ
from cockpit.agents.agent_command import RunnerMissing, placeholders_in
from cockpit.agents.agent_hooks import wait_for_hook_events
from cockpit.agents.run_agent import count_runs, run_agent
from cockpit.core.errors import CockpitError, Stale
from cockpit.decide.choose_model import OFFLINE
from cockpit.loop.intake.assign_role import Assignment
from cockpit.loop.intake.roles import Role
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.git import WorktreeError, commit_of, discard_changes, git, try_git
from cockpit.tasks.task_context import EMBEDDED, TaskContext

_WRITES = frozenset(("write_file", "edit_file", "run", "git_commit"))
_SHOWN = 20

_HOW = """## How You Are Run Here

cockpit runs you as a program of your own, in {worktree}. You have your own tools and none of those that the
text above names: read and change files, run commands, and commit as you always do.

- Where it says to call `finish`, end with a last message instead: {last}
- Stay in this folder and on the branch `{branch}`. Do not push, and leave other branches alone.
- cockpit keeps the status of {task}, runs its tests and merges it. Do not change its status yourself.
- Nobody reads along: ask nothing. What you cannot decide is a reason to end as blocked.{reads}{files}{again}
"""
_DONE = (
    "its first line is `STATUS: done` or `STATUS: blocked`, alone, and below it what you would have "
    "said in the summary."
)
_VERDICT = "its first line is your verdict, alone, and below it the findings."
_AGAIN = "\n- An earlier run of yours was cut off: look first at what stands in the tree already."
_READS = "\n- You only read: whatever you change is put back."


class RunnerCrashed(CockpitError):
    """An outside agent ended without a finish; its part is taken again."""

    code = "runner_crashed"


def find_runner(settings: RuntimeSettings, name: str | None) -> RunnerSettings | None:
    """The runner of that name; None is the engine.

    Raises :class:`~cockpit.agents.agent_command.RunnerMissing` for one that nobody configured.
    """
    if name is None or name == EMBEDDED:
        return None
    found = settings.runners.get(name)
    if found is None:
        there = ", ".join([EMBEDDED, *settings.runners])
        raise RunnerMissing(
            f"There is no runner {name!r} here; there are: {there}. Your own configuration names"
            f" others: [runner.{name}] command = [...]."
        )
    return found


def began_session(session: Session, runner: RunnerSettings | None) -> bool:
    """Whether ``runner`` (None: the engine) is who began the session, and can go on with it."""
    if runner is None:
        return session.model != OFFLINE and not session.model.startswith(sessions.RUNNER_PREFIX)
    return session.model == f"{sessions.RUNNER_PREFIX}{runner.name}"


async def run_role_with_agent(
    desk: TaskContext, tree: Worktree, given: Assignment, session_id: str, runner: RunnerSettings
) -> None:
    """Have the agent take the session; it is completed then.

    Raises :class:`RunnerCrashed`, ``RunnerMissing`` when its program cannot be started, ``Stale``,
    ``WorktreeTrouble`` when the agent left the branch, and what
    :func:`~cockpit.agents.run_agent.run_agent` raises.
    """
    root, role = Path(tree.path), given.role
    writes = bool(_WRITES & set(role.tools))
    before = await commit_of(root, "HEAD")
    again = desk.store.read_now(lambda found: count_runs(found, session_id)) > 0
    try:
        outcome = await run_agent(
            desk.store,
            desk.place,
            runner,
            session_id=session_id,
            prompt=role_prompt(given, tree, writes=writes, again=again),
            worktree=root,
            task_id=given.task.task_id,
            environment=desk.settings.environment,
            policy=desk.approve,
            scopes=AGENT_SCOPES if writes else frozenset({READ, WORK_READ}),
            max_tokens=role.max_tokens,
        )
    except Stale:
        raise  # the tree is another process's now
    except ProgramMissing as error:
        raise RunnerMissing(
            f"{error}. Install it, or correct [runner.{runner.name}] command in your configuration."
        ) from error
    except BaseException:
        await _undo(tree, root, None if writes else before)
        raise
    await _undo(tree, root, None if writes else before)
    if "hooks" in placeholders_in(runner):
        await wait_for_hook_events(desk.store, given.task.task_id)
    await _on_its_branch(tree, root)
    if outcome.status in ("crashed", "stopped"):
        raise RunnerCrashed(outcome.reason)


def role_prompt(given: Assignment, tree: Worktree, *, writes: bool, again: bool) -> str:
    """What the agent is told: the role's words, then how it is run; ``again``: not for the first time."""
    role: Role = given.role
    named = [item.removeprefix("file:") for item in given.scope][:_SHOWN]
    how = _HOW.format(
        worktree=tree.path,
        branch=tree.branch,
        task=given.task.task_id,
        last=_VERDICT if role.gives_verdict else _DONE,
        reads="" if writes else _READS,
        again=_AGAIN if again and writes else "",
        files=f"\n- Begin with: {', '.join(named)}." if named else "",
    )
    return f"{given.text}\n\n{how}"


async def _undo(tree: Worktree, root: Path, before: str | None) -> None:
    """Put the tree back to where a role that only reads found it; None for one that writes."""
    if before is None:
        return
    if await _branch(root) == tree.branch and await commit_of(root, "HEAD") != before:
        await git(root, "reset", "--quiet", "--hard", before)
    await discard_changes(root)


async def _on_its_branch(tree: Worktree, root: Path) -> None:
    now = await _branch(root)
    if now != tree.branch:
        where = f"on {now}" if now else "on no branch"
        raise WorktreeError(
            f"The agent left the branch {tree.branch}: {tree.path} is {where} now. Its work is kept;"
            f" bring what you want of it to {tree.branch}, switch back to it, and unblock the task."
        )


async def _branch(root: Path) -> str:
    ended = await try_git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return ended.text.strip() if ended.ok else ""
