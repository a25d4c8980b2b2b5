"""The engine as the screen uses it: it takes messages and decisions, and answers questions.

``cockpit.loop.runtime.Runtime`` implements it. The screen reads all results from the journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.external_agent_interface import AgentChoice, AgentEntry
    from cockpit.loop.intake.task_type_layers import TaskTypeService
    from cockpit.loop.knowledge.knowledge_service import KnowledgeService
    from cockpit.loop.notes.note_service import NoteService
    from cockpit.loop.permissions.question_form import Answer
    from cockpit.loop.planner.planner_service import PlannerService
    from cockpit.loop.session_state.guard_service import GuardService
    from cockpit.loop.tools.tool_service import ToolService
    from cockpit.loop.trust.trust_service import TrustService
    from cockpit.loop.views.packet_inspection import Difference, Explanation
    from cockpit.store.context.pins import Pin
    from cockpit.store.db.database import Store


class Engine(Protocol):
    """The engine behind the screen. Every method raises ``CockpitError`` with text for the user."""

    @property
    def store(self) -> Store: ...

    @property
    def place(self) -> ProjectPaths: ...
    async def start(
        self,
        words: str,
        *,
        model: str | None = None,
        policy: str | None = None,
        interactive: bool = True,
        task_type: str | None = None,
        is_typed: bool = False,
    ) -> str:
        """Start a session with a message; return its id.

        ``task_type`` overrules what ``words`` name; ``is_typed``: the user typed them here.
        """
        ...

    async def start_agent(self, agent: str, words: str, *, where: str = "") -> str:
        """Start a session of an external agent, with a message or without; return its id.

        ``where`` is ``checkout``, ``worktree``, or '' for the rule.
        """
        ...

    async def list_agents(self) -> Sequence[AgentEntry]:
        """Return the external agents, those that are installed first."""
        ...

    async def agent_choices(self, session_id: str) -> Sequence[AgentChoice]:
        """Return what can be chosen in the agent of a session; nothing while it is not open."""
        ...

    async def choose(self, session_id: str, kind: str, value: str) -> None:
        """Choose a mode, a model or an option in the agent of a session."""
        ...

    async def fork_agent(self, session_id: str) -> str:
        """Store a session that continues from here, where its agent can; return its id."""
        ...

    async def fork_session(self, session_id: str, wave: int | None = None) -> str:
        """Store a session of the built-in agent that continues after a wave, by default the last; its id."""
        ...

    async def propose_branch(self, name: str, *, drop: bool = False) -> str:
        """Propose to merge, or to drop, the branch of a chain, task or session; return the session of it."""
        ...

    async def chain_options(self) -> Mapping[str, str]:
        """Return the options of `cockpit work` that stand for the screen's own settings."""
        ...

    async def default_model(self, chosen: str | None = None) -> str:
        """Return the full name of the model that a new session gets; from now on ``chosen``."""
        ...

    async def run(self, session_id: str, *, interactive: bool | None = None) -> object:
        """Run waves until the session is done or waits for a message. Cancelling interrupts it."""
        ...

    async def say(self, session_id: str, text: str) -> None:
        """Send a message for the next wave of a session."""
        ...

    async def approve(
        self,
        proposal_id: str,
        *,
        shown_digest: str,
        narrowed: Sequence[str] | None = None,
        always: bool = False,
    ) -> None: ...

    async def discuss(self, proposal_id: str, *, shown_digest: str, words: str = "") -> None: ...

    async def reject(self, proposal_id: str, *, shown_digest: str, reason: str = "") -> None: ...

    async def withdraw_abandoned(self) -> None:
        """Close permissions whose agent's process ended."""
        ...

    async def editable(self, proposal_id: str) -> tuple[str, str]:
        """Return the text of an action to edit, and a suffix for the editor's file."""
        ...

    async def edit(self, proposal_id: str, *, shown_digest: str, text: str) -> str:
        """Propose the edited version instead; return the id of the new proposal."""
        ...

    async def answer(
        self, proposal_id: str, *, shown_digest: str, answers: Sequence[Answer]
    ) -> None:
        """Answer what an external agent asks its user."""
        ...

    async def explain(
        self, session_id: str, ordinal: int | None = None, *, band: str = ""
    ) -> Explanation:
        """Return the verdicts on the facts of a wave, by default of the newest with a packet.

        ``band`` limits them to one band.
        """
        ...

    async def packet_diff(self, session_id: str, before: int, after: int) -> Difference:
        """Return the difference between the packets of two waves."""
        ...

    async def pin(self, session_id: str, fact_id: str) -> Pin:
        """Pin a fact from the next wave on."""
        ...

    async def unpin(self, session_id: str, fact_id: str) -> Pin:
        """Unpin a fact from the next wave on."""
        ...

    async def feedback(self, wave_id: str, verdict: str, words: str = "") -> object:
        """Record the user's verdict on a wave: ``good`` or ``bad``."""
        ...

    async def change(
        self,
        session_id: str,
        *,
        policy: str | None = None,
        model: str | None = None,
        task_type: str | None = None,
        title: str | None = None,
    ) -> object: ...

    async def planner(self) -> PlannerService:
        """Return what estimates sessions and tasks."""
        ...

    async def tools(self) -> ToolService:
        """Return what reads and approves the project's tools."""
        ...

    async def knowledge(self) -> KnowledgeService:
        """Return what searches the project's knowledge."""
        ...

    async def trust(self) -> TrustService:
        """Return what reads and decides the project's trust rules."""
        ...

    async def notes(self) -> NoteService:
        """Return what reads and decides notes."""
        ...

    async def task_type_service(self) -> TaskTypeService:
        """Return what explains the project's task types."""
        ...

    async def guards(self) -> GuardService:
        """Return what reads and approves guards."""
        ...

    async def command_kind(self, command: str) -> str:
        """Say whose ``/NAME`` is: ``task`` for a task type's, ``skill``, or '' for nobody's."""
        ...

    async def complete(self, kind: str, prefix: str) -> list[tuple[str, str]]:
        """Return completions as (text, hint).

        ``kind`` is ``/`` for commands, ``@`` for files and ``T-`` for tasks; ``prefix`` and the answers start
        with it.
        """
        ...


Keys = Mapping[str, str | Sequence[str]]
"""The user's ``[keys]``: ids of actions and the key or keys of each."""
