"""The runtime: what the screen, the command line, HTTP and MCP call to run sessions of a project.

What runs a session or decides is loaded where it begins: the screen opens a runtime before it is drawn.
See ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.access import user_presence
from cockpit.act.workspace import open_workspace
from cockpit.core.clock import Clock, Ids
from cockpit.core.errors import CockpitError, IllegalTransition
from cockpit.core.project_paths import ProjectPaths
from cockpit.decide.known_prices import require_price
from cockpit.decide.model import Prompt
from cockpit.loop.branch_and_task_completions import complete_reference
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.checkout_head import find_repository, read_branch, read_head_reference
from cockpit.loop.decisions.approval_effects import find_approval_effect
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH
from cockpit.loop.external_agent_interface import AgentChoice, AgentEntry, ExternalAgents
from cockpit.loop.file_completions import FileCompletions
from cockpit.loop.intake.intent import (
    Task,
    UnknownCommand,
    begins_with_command,
    make_title,
    read_command_kind,
    resolve,
    resolve_as,
)
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.task_type_files import TaskTypeFiles
from cockpit.loop.intake.task_types import TaskType
from cockpit.loop.permissions.question_form import Answer
from cockpit.loop.permissions.waiting_permission import has_abandoned, withdraw_abandoned
from cockpit.loop.phases.project_change import read_project_state
from cockpit.loop.planner.plan_target import PLAN_TYPE
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.loop.services import Services
from cockpit.loop.skills.session_skills import list_commands
from cockpit.loop.tools.added_tools import open_added_tools
from cockpit.loop.user_message import ACP, send_message
from cockpit.loop.user_message import EVOLVE as EVOLVE
from cockpit.loop.views import packet_inspection
from cockpit.loop.views.copy_journal import recorded
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog import tasks
from cockpit.store.backlog.tasks import Task as BacklogTask
from cockpit.store.context import pins, profiles
from cockpit.store.context.packets import Packet
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session

if TYPE_CHECKING:
    from cockpit.loop.decisions.decide_proposal import Decision, FindCaller
    from cockpit.loop.decisions.decision_outcome import DecisionOutcome

MAX_COMPLETIONS = 50
DROP = "drop_worktree"
"""The type of the action that removes an agent's worktree: no agent may work in it."""


@asynccontextmanager
async def open_runtime(
    place: ProjectPaths,
    settings: RuntimeSettings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> AsyncIterator[Runtime]:
    """Open the project's store and a runtime on it, for the context. Raises the store's errors."""
    place.prepare()
    with Store.open(place.database, clock, ids) as store:
        async with runtime_over(store, place, settings) as runtime:
            yield runtime


@asynccontextmanager
async def runtime_over(
    store: Store, place: ProjectPaths, settings: RuntimeSettings
) -> AsyncIterator[Runtime]:
    """Open a runtime on an open store, which stays open."""
    files = TaskTypeFiles(place, settings.user_dir)
    repo = await find_repository(place)
    ground = await open_workspace(
        place.root, repo=repo, environment=settings.environment or None, choices=settings.sandbox
    )
    tools = open_added_tools(store, place, settings, ground)
    async with recorded(store, settings), tools as added:
        engine = Engine(
            store,
            place,
            settings,
            files.types,
            ground,
            ChangeWaiter(store),
            repo,
            added=added,
            type_problems=files.problems,
        )
        runtime = Runtime(engine, files)
        try:
            if await store.read(outbox.has_actions_of_no_wave):
                await runtime.finish_left()
            yield runtime
        finally:
            await runtime.close_agents()
            engine.close()


class Runtime(Services):
    """One open project. The methods raise ``CockpitError`` with a message for the user."""

    def __init__(self, engine: Engine, files: TaskTypeFiles | None = None) -> None:
        self.engine = engine
        self._files = files
        self.store = engine.store
        self.place = engine.place
        self._completions = FileCompletions(engine.place)
        self._agents: ExternalAgents | None = None

    async def start(
        self,
        words: str,
        *,
        model: str | None = None,
        policy: str | None = None,
        interactive: bool = True,
        limits: Limits | None = None,
        task_type: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        is_typed: bool = False,
    ) -> str:
        """Store a new session for the user's ``words``; returns its id. Nothing runs yet.

        With ``task_id`` the session is about that task of the backlog: its objectives contain the task and
        where it was left, and the session's work is recorded as the task's work in progress. Empty
        ``words`` stand for the task's title then. ``task_type`` overrules what ``words`` name.
        ``session_id`` is the id that it gets, taken from the store's ids before. ``is_typed``: the user
        typed ``words`` at this screen or terminal; files that they name are granted then.

        Where the settings name an external agent, it gets the session, unless ``words`` are a task type's
        command. Else the type's deterministic context is fetched first; when that fails nothing is stored.
        Raises ``IntentUnclear``, ``OpeningFailed``, ``ModelError``, and ``NotFound`` for an unknown task.
        """
        from cockpit.loop.intake.brief_on_task import brief_on_task
        from cockpit.loop.intake.first_message import opening
        from cockpit.loop.intake.submit_task import submit_task
        from cockpit.loop.planner.estimate_session import begin_estimate, find_price
        from cockpit.loop.planner.plan_tool import list_open_tasks

        engine = self.engine
        await self._refresh_task_types()
        if engine.settings.agent and not begins_with_command(words, engine.task_types):
            return await self.start_agent(
                engine.settings.agent,
                words,
                policy=policy,
                interactive=interactive,
                task_id=task_id,
            )
        backlog_task, details = None, ""
        if task_id is not None:
            backlog_task = self.store.read_now(lambda connection: tasks.load(connection, task_id))
            words = words.strip() or backlog_task.title
            details = _details_of(backlog_task)
            if task_type is None and not words.startswith("/"):
                task_type = backlog_task.task_type
                task_type = task_type if task_type in engine.task_types else "implement"
        task = await self._resolve(words, task_type, details)
        kind = engine.task_types[task.task_type]
        model_name = engine.model(model).name
        if (limits or engine.settings.limits).max_cost is not None:
            await asyncio.to_thread(require_price, model_name, engine.settings.model.prices)
        opened = await opening(
            task, kind, self.place, engine.repo, details=details, is_typed=is_typed
        )
        if backlog_task is not None:
            opened = await brief_on_task(engine, opened, backlog_task, self.agents)
        if kind.name == PLAN_TYPE:
            open_tasks = await self.store.read(list_open_tasks)
            opened = replace(opened, text=f"{opened.text}\n\n{open_tasks}")
        state = await read_project_state(self.place.root) if kind.must_change else ""
        branch = await read_branch(self.place)
        price = await find_price(engine.settings, model_name)
        budget = await engine.fit_budget(model_name)

        def create_session(tx: Tx) -> str:
            profile = profiles.ensure_default(tx, budget)
            session = sessions.create(
                tx,
                task_type=task.task_type,
                title=task.title,
                words=task.words,
                target=opened.target,
                model=model_name,
                policy=policy or _policy_of(kind, engine.settings),
                interactive=interactive,
                root=self.place.root,
                rev=opened.rev,
                profile_id=profile.profile_id,
                limits=(limits or engine.settings.limits).as_json(),
                project=engine.repo or self.place.root.name,
                branch=branch,
                task_id=None if backlog_task is None else backlog_task.task_id,
                session_id=session_id,
            )
            submit_task(tx, session, task, opened, engine.type_problems, state)
            begin_estimate(tx, session, price)
            return session.session_id

        return await sessions.store_new(self.store, create_session)

    async def start_agent(
        self,
        agent: str,
        words: str,
        *,
        policy: str | None = None,
        interactive: bool = True,
        where: str = "",
        task_id: str | None = None,
    ) -> str:
        """Store a new session of an external agent for the user's ``words``; returns its id.

        ``where`` is ``checkout``, ``worktree``, or '' for the rule: the second agent in a project gets a
        worktree. Nothing runs yet: :meth:`run` starts the agent, :meth:`say` queues a message for it.
        Raises ``AgentInvalid`` for an agent that is not known and ``ProgramMissing`` for one that is not
        installed, before anything is made, and ``WorktreeError``.
        """
        agents, session_id = self.agents(), ""
        while not session_id:  # again where another agent took the checkout meanwhile
            into = await read_head_reference(self.place)
            cwd = await agents.choose_folder(self.engine, agent, where)
            place = self.place if cwd is None else replace(self.place, root=cwd)
            session_id = await agents.create(
                self.engine,
                agent,
                words,
                policy=policy or self.engine.settings.policy,
                interactive=interactive,
                cwd=place.root,
                branch=await read_branch(place),
                task_id=task_id,
                target={} if cwd is None else {"into": into},
                alone=cwd is None and not where and bool(self.place.git),
            )
        return session_id

    def agents(self) -> ExternalAgents:
        """Return what drives the sessions of external agents: their choices, commands and forks."""
        if self._agents is None:
            make = self.engine.settings.external_agents
            if make is None:
                raise IllegalTransition("This process drives no external agents.")
            self._agents = make()
        return self._agents

    async def list_agents(self) -> Sequence[AgentEntry]:
        """Return the external agents that can have a session, those that are installed first."""
        return await self.agents().list_agents(self.engine)

    async def agent_choices(self, session_id: str) -> Sequence[AgentChoice]:
        """Return what can be chosen in the agent of a session; nothing while it is not open."""
        return self.agents().choices(session_id)

    async def choose(self, session_id: str, kind: str, value: str) -> None:
        """Choose a mode, a model or an option in the agent of a session, which is opened for it."""
        await self.agents().choose(self.engine, session_id, kind, value)

    async def fork_session(self, session_id: str, wave: int | None = None) -> str:
        """Store a session that continues after a wave, by default the last that ended; return its id.

        Raises what :func:`~cockpit.loop.intake.fork_session.fork_session` raises.
        """
        from cockpit.loop.intake.fork_session import fork_session

        fork = await self.store.write(lambda tx: fork_session(tx, session_id, wave))
        return fork.session.session_id

    async def fork_agent(self, session_id: str) -> str:
        """Store a session that continues from here, where its agent can; returns its id."""
        return await self.agents().fork(self.engine, session_id)

    async def propose_branch(self, name: str, *, drop: bool = False) -> str:
        """Propose to merge or drop the branch of a chain, a task or a session; returns the session of it."""
        return await self.engine.settings.propose_branch(self.engine, name, drop)

    async def close_agents(self) -> None:
        """End the external agents that this runtime opened."""
        if self._agents is not None:
            await asyncio.shield(self._agents.close())

    async def _resolve(self, words: str, task_type: str | None, details: str) -> Task:
        """Return the task that ``words`` name, of ``task_type`` where that is known already."""
        types, git = self.engine.task_types, Repository(self.place.root)
        try:
            if task_type is not None:
                return await resolve_as(types[task_type], words, details, git)
            return await resolve(words, types, git, await list_commands(self.engine, words))
        except UnknownCommand as error:
            if not self.engine.type_problems:
                raise
            problems = "; ".join(self.engine.type_problems)
            raise UnknownCommand(f"{error} Files that are not used: {problems}") from error

    async def run(self, session_id: str, *, interactive: bool | None = None) -> Session:
        """Run waves until the session ends or waits for the user. Cancel to interrupt.

        ``interactive`` says whether a user is at the screen from now on; None leaves it unchanged.
        """
        try:
            session = self.store.read_now(lambda connection: sessions.load(connection, session_id))
            if session.transport == EVOLVE:
                raise IllegalTransition(
                    f"{session_id} grows a tool. Resume it with `cockpit evolve --continue {session_id}`."
                )
            if session.transport == ACP:
                return await self.agents().run(self.engine, session_id, interactive=interactive)
            from cockpit.loop.session_loop import run_session

            return await run_session(self.engine, session_id, interactive=interactive)
        except asyncio.CancelledError:
            # Interrupted before a process owned the session, which would stay running for ever.
            await asyncio.shield(self.store.write(lambda tx: sessions.stop_unowned(tx, session_id)))
            raise

    async def say(self, session_id: str, text: str) -> None:
        """Send the user's message: it is pinned in the next wave, and a waiting session wakes up."""
        await self.store.write(lambda tx: send_message(tx, session_id, text))

    async def approve(
        self,
        proposal_id: str,
        *,
        shown_digest: str | None = None,
        narrowed: Sequence[str] | None = None,
        always: bool = False,
        by: str = "",
    ) -> None:
        """Approve a proposal; with ``narrowed`` only these items of a context request.

        ``by`` names what decides in the user's place, which its caller has checked; empty: the user. With
        ``always`` a rule of the user allows exactly this permission from now on. Raises
        ``ProfileChangeRefused`` for a profile change that the guard refuses by now, and ``RuleRefused``.
        """
        from cockpit.loop.permissions.permission_rules import add_rule, read_rule

        if always:
            read_rule((await self._load_proposal(proposal_id)).body)
        await self._decide(
            proposal_id, "approved", by, shown_digest=shown_digest, narrowed=narrowed
        )
        if always:
            # Of the proposal as it was decided: the decision compared it with the journal.
            rule = read_rule((await self._load_proposal(proposal_id)).body)
            await asyncio.to_thread(add_rule, self.engine.settings.user_dir, rule)

    async def _load_proposal(self, proposal_id: str) -> Proposal:
        return await self.store.read(lambda connection: proposals.load(connection, proposal_id))

    async def discuss(
        self, proposal_id: str, *, shown_digest: str | None = None, words: str = "", by: str = ""
    ) -> None:
        """End this revision and tell the agent ``words``, which may also follow later by :meth:`say`."""
        await self._decide(proposal_id, "discussed", by, shown_digest=shown_digest, reason=words)

    async def reject(
        self, proposal_id: str, *, shown_digest: str | None = None, reason: str = "", by: str = ""
    ) -> None:
        """Reject a proposal, with a reason for the agent."""
        await self._decide(proposal_id, "rejected", by, shown_digest=shown_digest, reason=reason)

    async def _decide(
        self, proposal_id: str, decision: Decision, by: str, **arguments: Any
    ) -> None:
        from cockpit.loop.decisions.decide_proposal import decide_and_tell, find_decider

        settings = self.engine.settings

        def decide(tx: Tx) -> DecisionOutcome:
            decider = by or find_decider(tx, settings)
            return decide_and_tell(tx, settings, proposal_id, decision, decider, **arguments)

        # Raised after the commit, so that the guard's refusal stays stored.
        (await self.store.write(decide)).raise_if_refused()
        if decision == "approved":
            await self.carry_out(proposal_id)

    async def carry_out(self, proposal_id: str) -> None:
        """Do what the approval of a proposal queued outside any wave, and wait for it."""
        carry_out, effects = self.engine.settings.carry_out, self.engine.settings.approval_effects
        if carry_out is None:
            return
        proposal = await self._load_proposal(proposal_id)
        if not proposal.session_id or find_approval_effect(effects, proposal) is None:
            return
        if proposal.body["type"] == DROP and self._agents is not None:
            await self._agents.close(proposal.session_id)
        await carry_out(self.engine)

    async def finish_left(self) -> None:
        """Do what a process that died had queued outside any wave; failures are in the journal."""
        if self.engine.settings.carry_out is not None:
            with suppress(CockpitError):  # its receipt, a notice and a new proposal say so
                await self.engine.settings.carry_out(self.engine)

    async def _refresh_task_types(self) -> None:
        if self._files is not None:
            await self._files.refresh()

    async def withdraw_abandoned(self) -> None:
        """Close permissions whose agent's process ended: nothing waits for their answers."""
        if await self.store.read(has_abandoned):
            await self.store.write(withdraw_abandoned)

    async def editable(self, proposal_id: str) -> tuple[str, str]:
        """Return the text of an action or permission to edit, and a suffix for the editor's file."""
        from cockpit.loop.decisions.edit_action import load_editable_text

        return await load_editable_text(self.engine, proposal_id)

    async def edit(
        self,
        proposal_id: str,
        *,
        shown_digest: str,
        text: str,
        find_editor: FindCaller | None = None,
    ) -> str:
        """Replace an action's text by the user's; returns the id of the revision to decide.

        ``find_editor`` says who edits; by default the user at the terminal, or the environment's token.
        """
        from cockpit.loop.decisions.edit_action import edit_action

        revision = await edit_action(self.engine, proposal_id, shown_digest, text, find_editor)
        return revision.proposal_id

    async def answer(
        self,
        proposal_id: str,
        *,
        shown_digest: str,
        answers: Sequence[Answer],
        find_editor: FindCaller | None = None,
    ) -> None:
        """Answer what an external agent asks its user. Raises ``AnswerInvalid``."""
        from cockpit.loop.permissions.answer_questions import answer_questions

        proposal = await self._load_proposal(proposal_id)
        settings = self.engine.settings
        await answer_questions(self.store, settings, proposal, shown_digest, answers, find_editor)

    async def feedback(self, wave_id: str, verdict: str, words: str = "") -> Feedback:
        """Store the user's verdict on a wave, ``good`` or ``bad``; it replaces an earlier one.

        Raises ``FeedbackRefused``, and ``NotFound`` for a wave that has no packet.
        """
        from cockpit.learn.judge_waves import record_verdict

        return await self.store.write(lambda tx: record_verdict(tx, wave_id, verdict, words))

    async def explain(
        self, session_id: str, ordinal: int | None = None, *, band: str = ""
    ) -> packet_inspection.Explanation:
        """Say why each fact of a packet was kept, shortened or dropped; None means the newest wave."""
        return await self.store.read(
            lambda connection: packet_inspection.explained(
                connection, session_id, ordinal, band=band
            )
        )

    async def rendered_prompt(self, wave_id: str) -> tuple[Prompt, Packet]:
        """Render the prompt of a wave's stored packet again. Raises ``NotFound`` without one."""
        from cockpit.loop.phases.wave_prompt import render_stored_prompt as render

        return await self.store.read(lambda connection: render(connection, self.engine, wave_id))

    async def packet_diff(
        self, session_id: str, before: int, after: int
    ) -> packet_inspection.Difference:
        """Compare the packets of two waves of a session."""
        return await self.store.read(
            lambda connection: packet_inspection.difference(connection, session_id, before, after)
        )

    async def pin(self, session_id: str, fact_id: str) -> pins.Pin:
        """Keep a fact in every packet from the next wave on."""
        return await self.store.write(lambda tx: pins.pin(tx, session_id, fact_id))

    async def unpin(self, session_id: str, fact_id: str) -> pins.Pin:
        """Let the compiler choose a fact by its utility again, from the next wave on."""
        return await self.store.write(lambda tx: pins.unpin(tx, session_id, fact_id))

    async def change(
        self,
        session_id: str,
        *,
        policy: str | None = None,
        model: str | None = None,
        task_type: str | None = None,
        title: str | None = None,
        limits: Limits | None = None,
    ) -> Session:
        """Change a session's settings, from its next phase on.

        Raises ``IllegalTransition``, and ``ModelError`` for a limit of cost with a model of unknown price.
        """
        fields: dict[str, Any] = {} if title is None else {"title": make_title(title)}
        if policy is not None:
            if policy not in POLICY_WIDTH:
                names = ", ".join(POLICY_WIDTH)
                raise IllegalTransition(f"There is no policy {policy!r}; there are {names}.")
            if policy != "ask":
                user_presence.require_no_agent(f"the approval policy {policy}")
            fields["policy"] = policy
        if model is not None:
            fields["model"] = self.engine.model(model).name
        if task_type is not None:
            await self._refresh_task_types()
            if task_type not in self.engine.task_types:
                names = ", ".join(sorted(self.engine.task_types))
                raise IllegalTransition(f"There is no task type {task_type!r}; there are {names}.")
            fields["task_type"] = task_type
        if limits is not None:
            fields["limits"] = limits.as_json()
        if limits is not None or model is not None:
            session = await self.store.read(
                lambda connection: sessions.load(connection, session_id)
            )
            if fields.get("limits", session.limits).get("max_cost") is not None:
                await asyncio.to_thread(
                    require_price,
                    fields.get("model", session.model),
                    self.engine.settings.model.prices,
                )
        return await self.store.write(lambda tx: sessions.change(tx, session_id, **fields))

    async def chain_options(self) -> Mapping[str, str]:
        """Return the options of `cockpit work` that stand for these settings."""
        settings = self.engine.settings
        model = {"--model": settings.model.model} if settings.model.model else {}
        return {"--approve": settings.policy, **model}

    async def default_model(self, chosen: str | None = None) -> str:
        """Return the full name of the default model, from now on ``chosen``. Raises ``ModelError``."""
        model = self.engine.models[None] = self.engine.model(chosen)
        return model.name

    async def command_kind(self, command: str) -> str:
        """Say whose ``/NAME`` is: ``task`` for a task type's, ``skill``, or '' for nobody's."""
        await self._refresh_task_types()
        skills = await list_commands(self.engine, command)
        return read_command_kind(command, self.engine.task_types, skills)

    async def complete(self, kind: str, prefix: str) -> list[tuple[str, str]]:
        """Return completions: task commands for ``/``, files for ``@``, tasks and branches."""
        words = await complete_reference(self.store, self.place, prefix, MAX_COMPLETIONS)
        if words is not None:
            return words
        if kind == "/":
            await self._refresh_task_types()
            types = self.engine.task_types.values()
            commands = [(each.command, each.arguments) for each in types]
            return sorted(each for each in commands if each[0].startswith(prefix))[:MAX_COMPLETIONS]
        paths = await self._completions.find(prefix.removeprefix("@"), MAX_COMPLETIONS)
        return [(f"@{path}", "") for path in paths]

    async def warm_completions(self) -> None:
        """List the project's files before the user completes the first one."""
        try:
            await self._completions.warm()
        except CockpitError:
            return  # without git nothing is completed


def _details_of(task: BacklogTask) -> str:
    """Return what a task says beside its title, with its files named as a user names them."""
    files = " ".join(f"@{path}" for path in task.files)
    return "\n".join(filter(None, (task.description, task.acceptance_criteria, files)))


def _policy_of(kind: TaskType, settings: RuntimeSettings) -> str:
    """Return the approval policy with which a session of this type starts."""
    return settings.policy if settings.policy_is_final or not kind.policy else kind.policy
