"""Details of sessions with external agents that cockpit talks to: turns, thoughts, plans, modes, files."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail, Part


class RunnerTurn(Detail, frozen=True, kw_only=True):
    """The user's messages were sent to the external agent, and its turn begins; or it ended its turn."""

    run: int
    """Which run of the session it is, from 1."""
    end: str = ""
    """Empty where the turn begins; then why it ended, in the protocol's words: ``end_turn``, ``cancelled``,
    ``refusal``, ``max_tokens``, ``max_turn_requests``; or ``failed``."""
    message_ids: tuple[str, ...] = ()
    """The user's messages in the prompt; empty for words that cockpit repeated to it."""
    text: str = ""
    """Text of cockpit itself in the prompt, for example why the user rejected a permission; the error with
    which a turn ended."""


class RunnerToolUpdated(Detail, frozen=True, kw_only=True):
    """The external agent said more of a tool call that runs; at most a few rows a second."""

    run: int
    """Which run of the session it is, from 1."""
    call_id: str
    """The agent's id of the call."""
    title: str
    """The call in one line."""
    output: str
    """The end of its output so far."""


class RunnerThought(Detail, frozen=True, kw_only=True):
    """The external agent thought before it continued."""

    run: int
    """Which run of the session it is, from 1."""
    text: str
    """The thought."""


class PlanStep(Part, frozen=True, kw_only=True):
    """One step of an agent's plan."""

    text: str
    """The text of the step."""
    status: str
    """``pending``, ``in_progress`` or ``completed``."""
    priority: str
    """``high``, ``medium`` or ``low``."""


class RunnerPlan(Detail, frozen=True, kw_only=True):
    """The external agent's plan, whole."""

    run: int
    """Which run of the session it is, from 1."""
    steps: tuple[PlanStep, ...]
    """Its steps, in order."""


class Choice(Part, frozen=True, kw_only=True):
    """One value that a choice of the agent can have."""

    id: str
    """The agent's id of it."""
    name: str
    """Its name for people."""


class RunnerChoices(Detail, frozen=True, kw_only=True):
    """The external agent listed a setting and its choices: its mode, its model or another option."""

    kind: str
    """``mode``, ``model``, or the agent's id of the option."""
    name: str
    """Its name for people."""
    current: str
    """The id of the value that it has."""
    choices: tuple[Choice, ...] | UnsetType = UNSET
    """All values; absent where only the current one changed."""


class AgentCommand(Part, frozen=True, kw_only=True):
    """One command of the agent."""

    name: str
    """Its name, without a slash."""
    text: str
    """A description of the command."""


class RunnerCommands(Detail, frozen=True, kw_only=True):
    """The commands that the external agent offers."""

    commands: tuple[AgentCommand, ...]
    """The commands."""


class RunnerContext(Detail, frozen=True, kw_only=True):
    """How full the external agent's context window is."""

    used: int
    """Tokens in it."""
    size: int
    """Tokens that it can hold."""


class RunnerFileRead(Detail, frozen=True, kw_only=True):
    """The external agent read a file."""

    path: str
    """The file, from the worktree's top."""
    version: str
    """The digest of its content, as far as cockpit saw the read."""
    first: int
    """The first line that was read, from 1."""
    last: int
    """The last line that was read; 0 for an empty file."""
    gated: bool
    """Whether it read through cockpit; not where its stream or a hook tells of its own tools."""


class RunnerFileWritten(Detail, frozen=True, kw_only=True):
    """The external agent wrote a file through cockpit."""

    path: str
    """The file, from the worktree's top."""
    version: str
    """The digest of its new content."""
    proposal_id: str
    """The proposal that allowed it."""
    diff: str
    """The change; cut when it is long."""
