"""The settings of a runtime: models, budgets, limits, deadlines and the user's folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.core.errors import CockpitError
from cockpit.decide.model_settings import ModelSettings
from cockpit.loop.decisions.approval_effects import ApprovalEffects
from cockpit.loop.knowledge.knowledge_settings import KnowledgeSettings
from cockpit.loop.planner.plan_target import PlanTarget
from cockpit.observe.fan_out import ObserveLimits

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.sessions import Session

DEFAULT_BUDGET = 150_000
"""Tokens of a packet."""
DEFAULT_DEADLINE_S = 3600.0
"""Seconds until a proposal of a headless session expires."""


async def _refuse_branch(engine: Any, name: str, drop: bool) -> str:
    raise CockpitError(f"The branch of {name} cannot be merged here.")


class Limits(Struct, frozen=True):
    """The limits of a session: it ends when one of the first three is reached."""

    max_waves: int = 50
    max_cost: float | None = None
    """US dollars for model calls."""
    max_tokens: int | None = None
    """Tokens of model calls, read and written."""
    deadline_s: float = DEFAULT_DEADLINE_S
    """Seconds that a proposal of a headless session waits for a decision."""

    def as_json(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class ProfileChangeLimits(Struct, frozen=True):
    """The administrator's rules for profile changes; see ``docs/reference/kernel.md``."""

    auto: Literal["never", "suggested", "weights"] = "suggested"
    """Weights that pass without the user: none, those that a session suggests, or also an agent's."""
    at_horizon: Literal["revert", "promote_if_better"] = "promote_if_better"
    """What happens when a temporary change expires."""
    max_waves: int = 50
    """The longest that a temporary change applies."""
    floor_percent: int = 100
    """The lowest floor that a change may set, as a percentage of the shipped one."""
    min_judged_waves: int = 3
    """Waves that must have been judged under each of two versions before they are compared."""


class TrustSettings(Struct, frozen=True):
    """When a rule is offered, and how long it lasts; see ``docs/reference/trust.md``."""

    approvals: int = 5
    """Approvals of one shape until a rule is offered."""
    sessions: int = 3
    """Sessions that they have to be spread over."""
    expires_days: int = 90
    """Days after which a rule ends, and decisions no longer count."""


EMBEDDED = "embedded"
"""The runner that is the built-in agent."""


class RunnerSettings(Struct, frozen=True):
    """An external agent that may play a role in place of the built-in agent."""

    name: str
    command: tuple[str, ...]
    """The argv, with placeholders."""
    format: Literal["auto", "claude", "text"] = "auto"
    """How its output is parsed; ``auto``: Claude Code's lines where the command asks for them, else text."""
    env: tuple[str, ...] = ()
    """Variables that it gets although their names look like secrets."""
    timeout_s: float = 3600.0
    """Seconds after which a run is stopped."""
    max_output_mb: int = 64
    """Mebibytes of output after which a run is stopped."""
    sandbox: bool | None = None
    """Whether it runs in the sandbox; None: where cockpit knows what it needs."""
    hosts: tuple[str, ...] = ()
    """Servers that it may reach from there beside its provider's."""
    home: tuple[str, ...] = ()
    """Files and folders of the home directory that it gets a copy of there."""
    protocol: Literal["", "stdio", "acp"] = ""
    """The protocol by which it asks for each permission; empty: it only writes a stream."""


class WebhookRule(Struct, frozen=True):
    """``[webhook.NAME]``: which events of GitHub open a task."""

    name: str
    repository: str
    """``OWNER/NAME``."""
    event: str
    """``issues`` or ``pull_request``."""
    actions: tuple[str, ...]
    """What happened, such as ``labeled`` or ``opened``."""
    labels: tuple[str, ...]
    """Labels that the issue must have, all of them."""
    senders: tuple[str, ...]
    """Who may have done it; empty: everyone."""
    task_type: str
    story: str
    """The story that gets the task; empty for none."""


class RuntimeSettings(Struct, frozen=True):
    """Everything that a runtime needs and cannot read from the project."""

    model: ModelSettings = field(default_factory=ModelSettings)
    policy: str = "ask"
    """The approval policy of new sessions."""
    policy_is_final: bool = False
    """Whether an option or the project set it: then no task type changes it."""
    token_budget: int = DEFAULT_BUDGET
    limits: Limits = field(default_factory=Limits)
    observe: ObserveLimits = field(default_factory=ObserveLimits)
    adaptation: ProfileChangeLimits = field(default_factory=ProfileChangeLimits)
    skills_most: int = 3
    """Skills that are loaded at once without the user's key; 0 loads none."""
    frame: bool = True
    """Whether the first wave begins with the frame: names, state of the checkout, tests."""
    test_command: str | None = None
    """``[work] test_command``, as the frame names it; None: it is looked for."""
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    trust: TrustSettings = field(default_factory=TrustSettings)
    user_dir: Path = Path()
    """The folder of the user's own task types, roles and skills."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the process, as the configuration read them."""
    runners: Mapping[str, RunnerSettings] = field(default_factory=dict)
    mcp: Mapping[str, McpServer] = field(default_factory=dict)
    """The user's MCP servers, whose tools the built-in agent may be offered."""
    sandbox: SandboxChoices = field(default_factory=SandboxChoices)
    """What the user's own configuration says of the sandbox."""
    log_json: str | None = None
    webhooks: tuple[WebhookRule, ...] = ()
    """The user's rules for events of GitHub, in their order."""
    otlp_endpoint: str | None = None
    """The address of a collector of traces; None: no traces."""
    """Where journal rows are also written as JSON lines."""
    hook_wait_s: int = 540
    """Seconds that a question of an agent in the user's own terminal waits for an answer."""
    on_session_end: Callable[[Tx, Session], None] | None = None
    """Called in the transaction that completes a session."""
    agent: str = ""
    """The external agent that has sessions started without another word; empty: the built-in agent."""
    external_agents: Callable[[], Any] | None = None
    """Makes the ``ExternalAgents`` of a runtime, imported when it is called. Untyped, because they use
    these settings."""
    carry_out: Callable[[Any], Awaitable[None]] | None = None
    """Runs what approvals queued outside any wave; gets the runtime's engine."""
    propose_branch: Callable[[Any, str, bool], Awaitable[str]] = _refuse_branch
    """Proposes to merge or, where told so, to drop a branch; gets the runtime's engine and the branch's
    chain, task or session; returns the session of the proposal."""
    plan_target: PlanTarget | None = None
    """Reads and proposes plans for the backlog; None: sessions cannot plan."""
    grow_tool: Callable[[Any, Any], Awaitable[Any]] | None = None
    """Grows a tool that a wave waits for; gets its ``WaveContext`` and a ``GrowthOrder``, returns a
    ``GrowthEnd``. None where agents cannot ask for tools."""
    approval_effects: ApprovalEffects = field(default_factory=dict)
    """What cockpit does itself when an action that no wave proposed is approved, by the action's type."""
