"""Details of external agents: those that cockpit runs, and those whose hooks report to it."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail


class RunnerStarted(Detail, frozen=True, kw_only=True):
    """An external agent was started for the session."""

    runner: str
    """The runner's name in the configuration."""
    program: str
    """The program."""
    format: str
    """The format of its output."""
    task_id: str
    """The backlog task; empty without one."""
    number: int
    """Which run of the session it is, from 1."""
    sandbox: str
    """``bubblewrap``, or why the agent runs with all of the user's rights."""


class RunnerToolStarted(Detail, frozen=True, kw_only=True):
    """The external agent began to use one of its own tools."""

    run: int
    """Which run of the session it is, from 1."""
    call_id: str
    """The agent's id of the call."""
    tool: str
    """The tool."""
    title: str
    """The call in one line."""
    kind: str | UnsetType = UNSET
    """``read``, ``edit``, ``execute`` and so on, as the agent says; absent where it says none."""
    places: list[str] | UnsetType = UNSET
    """The files that it is about, as ``PATH`` or ``PATH:LINE``."""


class RunnerToolEnded(Detail, frozen=True, kw_only=True):
    """A tool of the external agent ended."""

    run: int
    """Which run of the session it is, from 1."""
    call_id: str
    """The agent's id of the call."""
    tool: str
    """The tool."""
    title: str
    """The call in one line."""
    failed: bool
    """Whether it failed."""
    exit_code: int | None
    """The exit code of a command."""
    summary: str
    """The beginning of its output."""
    kind: str | UnsetType = UNSET
    """``read``, ``edit``, ``execute`` and so on, as the agent says; absent where it says none."""
    places: list[str] | UnsetType = UNSET
    """The files that it is about, as ``PATH`` or ``PATH:LINE``."""
    diff: str | UnsetType = UNSET
    """The change that the agent reported; cut when it is long."""
    gated: bool | UnsetType = UNSET
    """Whether the agent asked before it; false: cockpit saw the call and did not gate it."""


class RunnerNoted(Detail, frozen=True, kw_only=True):
    """Something about the external agent's run that the user should know."""

    message: str
    """The text."""


class RunnerEnded(Detail, frozen=True, kw_only=True):
    """The external agent's run ended."""

    runner: str
    """The runner's name in the configuration."""
    status: str
    """``finished``, ``crashed``, ``stopped`` or ``limit``."""
    message: str
    """Why."""
    exit_code: int | None
    """The program's exit code."""
    agent_session: str
    """The agent's own name of the session."""
    odd_lines: int
    """How many lines of its output could not be read."""
    tools: int | UnsetType = UNSET
    """How many tools it used; agents whose output shows no tools lack it."""
    refused: tuple[str, ...] | UnsetType = UNSET
    """The calls that it had no permission for, one line each; left out for none."""


class AgentHook(Detail, frozen=True, kw_only=True):
    """An external agent that cockpit did not start reported an event by its hook."""

    agent_session: str
    """The agent's own name of the session."""
    agent: str
    """The external agent."""
    task_id: str
    """The backlog task; empty without one."""
    at: str
    """When the hook ran."""
    reason: str = ""
    """Why its session began or ended, as the agent says."""
    event: str
    """The agent's name of the event: ``SessionStart``, ``PostToolUse``, ``SessionEnd`` and so on."""
    tool: str
    """The tool used; empty without one."""
    answer: str | UnsetType = UNSET
    """cockpit's answer to a permission request: ``allow``, ``deny`` or ``ask`` (the user decides)."""
    by: str | UnsetType = UNSET
    """The decider: the user, a policy or a rule."""
    about: str | UnsetType = UNSET
    """The subject of the permission, for example a command."""
    path: str | UnsetType = UNSET
    """The file that the tool changed, from the worktree's top."""
