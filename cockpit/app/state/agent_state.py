"""What an external agent says of itself: what can be chosen in it, its commands, its plan and its context."""

from __future__ import annotations

from msgspec import Struct, field

from cockpit.store.journal.details import agent_turns
from cockpit.store.journal.journal import Row

_NAME = 40


class AgentState(Struct):
    """The newest of each kind of report of one session's agent."""

    choices: dict[str, agent_turns.RunnerChoices] = field(default_factory=dict)
    """What can be chosen, by kind, with all values."""
    commands: tuple[agent_turns.AgentCommand, ...] = ()
    steps: tuple[agent_turns.PlanStep, ...] = ()
    used: int = 0
    """Tokens in the context window."""
    size: int = 0
    """Tokens that it can hold; 0 where the agent does not say."""
    turns: int = 0
    """How many turns it began."""

    def apply(self, row: Row) -> None:
        """Fold one row of the session."""
        match detail := row.detail:
            case agent_turns.RunnerChoices():
                self.choices[detail.kind] = merge_choice(self.choices.get(detail.kind), detail)
            case agent_turns.RunnerCommands():
                self.commands = detail.commands
            case agent_turns.RunnerPlan():
                self.steps = detail.steps
            case agent_turns.RunnerTurn(end=""):
                self.steps = ()
                self.turns += 1
            case agent_turns.RunnerContext():
                self.used, self.size = detail.used, detail.size
            case _:
                return

    def name_of(self, kind: str) -> str:
        """Return the name of the value that a kind of choice has now; empty where there is none."""
        return value_name(self.choices.get(kind))[:_NAME]

    def plan(self) -> str:
        """Return how many steps of the plan are done; empty without a plan."""
        ended = sum(step.status == "completed" for step in self.steps)
        return f"{ended}/{len(self.steps)}" if self.steps else ""

    def context(self) -> str:
        """Return how full the context window is; empty where the agent does not say."""
        return f"{100 * self.used / self.size:.0f}%" if self.size > 0 else ""


def merge_choice(
    before: agent_turns.RunnerChoices | None, now: agent_turns.RunnerChoices
) -> agent_turns.RunnerChoices:
    """Return ``now``, with the name and the values from ``before`` where it has only the current value."""
    if before is None or isinstance(now.choices, tuple):
        return now
    return agent_turns.RunnerChoices(
        kind=now.kind, name=before.name, current=now.current, choices=before.choices
    )


def value_name(choice: agent_turns.RunnerChoices | None) -> str:
    """Return the name of the value that a choice has now."""
    if choice is None:
        return ""
    values = choice.choices if isinstance(choice.choices, tuple) else ()
    return next((each.name for each in values if each.id == choice.current), "") or choice.current
