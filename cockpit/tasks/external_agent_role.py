"""A role's step run by an external agent: its prompt, and what it may not leave behind.

An external reviewer has its own tools, whatever its role allows, so its changes are undone. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.access.run_program import ProgramMissing
from cockpit.access.token_scopes import AGENT_SCOPES, READ, WORK_READ
from cockpit.agents.registry.known_agents import load_agents
from cockpit.agents.runs.agent_command_line import RunnerMissing, placeholders_in
from cockpit.agents.runs.agent_hooks import wait_for_hook_events
from cockpit.agents.runs.run_agent import run_agent
from cockpit.agents.runs.run_rows import count_runs, describe_cut_off_calls
from cockpit.agents.stdio.driven_runners import ACP_PREFIX
from cockpit.agents.stdio.permissions import ask_in_queue
from cockpit.agents.streams.provider_limit import ProviderLimited, read_limit
from cockpit.core.errors import CockpitError, MachineFault, Stale, find_full_disk
from cockpit.decide.choose_model import OFFLINE
from cockpit.loop.intake.assign_role import Assignment
from cockpit.loop.intake.roles import Role
from cockpit.loop.intake.task_words import join_task_words
from cockpit.loop.permissions.ask_context import ensure_turn_wave
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.loop.skills.agent_skills import give_skills
from cockpit.loop.wave_context import Engine
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.git import WorktreeError, commit_of, discard_changes, git, try_git
from cockpit.tasks.task_context import TaskContext

_WRITING_TOOLS = frozenset(("write_file", "edit_file", "run", "git_commit"))
_MAX_FILES = 20

_INSTRUCTIONS = """## How You Are Run Here

cockpit runs you as a program of your own in {worktree}. You have your own tools and none of those that the
text above names: read and change files, and run commands. Do not commit: cockpit commits your work on the
task's branch when you end, and a commit of yours would wait for an approval.

- Where the text says to call `finish`, end with a last message instead: {last}
  If you are given a form for your answer, fill that in.
- Stay in this folder and on the branch `{branch}`. Do not push, and do not touch other branches.
- cockpit keeps the status of {task}, runs its tests and merges it. Do not change its status yourself.
- No user follows this run: ask no questions. If you cannot decide, end as blocked.{reads}{files}{again}
"""
_DONE = (
    "its first line is `STATUS: done` or `STATUS: blocked`, alone, and below it what you would have "
    "written as the summary. Without such a line your work does not count. If the task is done already, "
    "change nothing: the first line is `STATUS: nothing to do`, and below it say what shows that."
)
_VERDICT = "its first line is your verdict, alone, and below it the findings."
_AGAIN = "\n- An earlier run of yours was cut off: first look at the changes in the worktree."
_READS = "\n- You only read: cockpit undoes every change that you make."


class RunnerCrashed(CockpitError):
    """An external agent ended without a final message; its step runs again."""

    code = "runner_crashed"


def began_session(session: Session, runner: RunnerSettings | None) -> bool:
    """Whether ``runner`` (None: the built-in agent) started the session and can resume it."""
    if runner is None:
        return session.model != OFFLINE and not session.model.startswith(sessions.RUNNER_PREFIX)
    return session.model == f"{sessions.RUNNER_PREFIX}{runner.name}"


async def run_role_with_agent(
    context: TaskContext,
    worktree: Worktree,
    assignment: Assignment,
    session_id: str,
    runner: RunnerSettings,
    engine: Engine,
) -> None:
    """Run the role's session with an external agent until the session is completed.

    Raises :class:`RunnerCrashed`, ``MachineFault``, ``RunnerMissing`` when the agent's program cannot be
    started, ``Stale``, ``WorktreeError`` when the agent left its branch, and the errors of
    :func:`~cockpit.agents.runs.run_agent.run_agent`.
    """
    root, role = Path(worktree.path), assignment.role
    writes = bool(_WRITING_TOOLS & set(role.tools))
    asked_tokens = context.settings.limits.max_tokens
    before = await commit_of(root, "HEAD")
    again = context.store.read_now(lambda connection: count_runs(connection, session_id)) > 0
    prompt = role_prompt(assignment, worktree, writes=writes, again=again)
    if skills := await _give_skills(engine, assignment, session_id):
        prompt = f"{prompt}\n\n{skills}"
    if runner.protocol != "acp" and (
        cut_off := context.store.read_now(lambda c: describe_cut_off_calls(c, session_id))
    ):
        prompt = f"{prompt}\n\n{cut_off}"
    scopes = AGENT_SCOPES if writes else frozenset({READ, WORK_READ})
    try:
        if runner.protocol == "acp":
            # Its library takes most of a second to import: only where such an agent runs.
            from cockpit.agents.acp_client.open_session import run_acp_prompt

            agent = load_agents(engine.settings.user_dir).find(runner.name.removeprefix(ACP_PREFIX))
            crash = await run_acp_prompt(
                engine, agent, session_id, prompt, scopes=scopes, timeout_s=runner.timeout_s
            )
        else:
            outcome = await run_agent(
                context.store,
                context.place,
                runner,
                session_id=session_id,
                prompt=prompt,
                worktree=root,
                environment=context.settings.environment,
                policy=context.approve,
                scopes=scopes,
                max_tokens=min(filter(None, (asked_tokens, role.max_tokens)), default=None),
                must_count=asked_tokens is not None,
                choices=context.settings.sandbox,
                ask=ask_in_queue(context.store, context.settings, session_id, root),
                form="verdict" if role.gives_verdict else "status",
            )
            crash = outcome.reason if outcome.status in ("crashed", "stopped") else ""
    except Stale:
        raise  # another process owns the worktree now
    except ProgramMissing as error:
        raise RunnerMissing(
            f"{error}. Install it, or correct [runner.{runner.name}] command in your configuration."
        ) from error
    except BaseException:
        await _undo_changes(worktree, root, None if writes else before)
        raise
    await _undo_changes(worktree, root, None if writes else before)
    if "hooks" in placeholders_in(runner):
        await wait_for_hook_events(context.store, assignment.task.task_id)
    await _check_branch(worktree, root)
    if crash and (fault := find_full_disk(crash, root)):
        raise MachineFault(f"The agent broke off: {fault}. Make room, then resume.")
    if crash and (limit := read_limit(crash, context.store.clock.now())):
        raise ProviderLimited(crash, limit.resets_at)
    if crash:
        raise RunnerCrashed(crash)


async def _give_skills(engine: Engine, assignment: Assignment, session_id: str) -> str:
    """Return the texts of the skills for the role's task; they are facts of the session from then on."""

    async def open_wave() -> str:
        return await engine.store.write(lambda tx: ensure_turn_wave(tx, session_id, ""))

    words = join_task_words(assignment.task, assignment.role.name)
    return await give_skills(engine, session_id, words, open_wave, is_new_agent=True)


def role_prompt(assignment: Assignment, worktree: Worktree, *, writes: bool, again: bool) -> str:
    """Return the agent's prompt: the role's text, then how it is run.

    ``again``: an earlier run of the same session was cut off.
    """
    role: Role = assignment.role
    files = [item.removeprefix("file:") for item in assignment.scope][:_MAX_FILES]
    instructions = _INSTRUCTIONS.format(
        worktree=worktree.path,
        branch=worktree.branch,
        task=assignment.task.task_id,
        last=_VERDICT if role.gives_verdict else _DONE,
        reads="" if writes else _READS,
        again=_AGAIN if again and writes else "",
        files=f"\n- Start with: {', '.join(files)}." if files else "",
    )
    return f"{assignment.text}\n\n{instructions}"


async def _undo_changes(worktree: Worktree, root: Path, before: str | None) -> None:
    """Reset the worktree to the commit ``before`` a role that only reads; None keeps the changes."""
    if before is None:
        return
    if await _branch(root) == worktree.branch and await commit_of(root, "HEAD") != before:
        await git(root, "reset", "--quiet", "--hard", before)
    await discard_changes(root)


async def _check_branch(worktree: Worktree, root: Path) -> None:
    branch = await _branch(root)
    if branch != worktree.branch:
        position = f"on {branch}" if branch else "on no branch"
        raise WorktreeError(
            f"The agent left the branch {worktree.branch}: {worktree.path} is {position} now. Its work"
            f" is kept. Bring what you want of it to {worktree.branch}, switch back to that branch, and"
            " unblock the task."
        )


async def _branch(root: Path) -> str:
    ended = await try_git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return ended.text.strip() if ended.ok else ""
