"""The loop's tools for external agents: request context, propose, and read packets.

No tool approves: a proposal waits in the queue until the user decides. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from cockpit.access.principals import journal_actor
from cockpit.access.token_scopes import PROPOSE, READ
from cockpit.core.read_record import describe
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher, LoopTool, WrongArguments
from cockpit.mcp.render_packet import FieldSet, render_packet, render_page

MAX_WAIT_S = 600
"""The longest that one call may wait for the user, in seconds."""

MOST_QUERY = 2_000
"""Characters of a search."""

MOST_PASSAGES = 20
"""Passages of one search."""

MOST_ESTIMATED = 40
"""Tasks that one estimate lists; all of a backlog count in its total."""

DEFAULT_WAIT_S = 20
"""How long a call waits unless it says otherwise: shorter than any client's own timeout."""

_ProposalId = Annotated[str | None, describe("alone: an earlier one's result")]


class RequestContext(Struct, frozen=True):
    """Ask to read, or (``proposal_id`` alone) ask for the result of an earlier request."""

    purpose: str | None = None
    question: str | None = None
    scope: Annotated[
        tuple[str, ...] | None,
        describe(
            "file:PATH[:A-B], search:REGEX [in GLOB], tree:DIR, symbol:NAME, diff:RANGE, pr:N, issue:N"
        ),
    ] = None
    escalation: str | None = None
    proposal_id: _ProposalId = None
    wait_s: int = DEFAULT_WAIT_S
    offset: int = 0

    def call_arguments(self) -> Mapping[str, Any]:
        """Return the arguments of the loop's own call."""
        return _present(self, "purpose", "question", "scope", "escalation")


class ProposeAction(Struct, frozen=True):
    """Propose an action, or (``proposal_id`` alone) ask for the result of an earlier proposal."""

    action: (
        Literal["write_file", "edit_file", "run", "github", "git_commit", "create_skill"] | None
    ) = None
    arguments: Annotated[
        Mapping[str, Any] | None,
        describe(
            "write_file {path, content}; edit_file {path, old, new, replace_all?}; run {argv, reason, "
            "timeout_s?}; github {command}; git_commit {message, paths}; create_skill {name, description, "
            "body, keywords?}"
        ),
    ] = None
    proposal_id: _ProposalId = None
    wait_s: int = DEFAULT_WAIT_S

    def call_arguments(self) -> Mapping[str, Any]:
        """Return the arguments of the action's own call."""
        return dict(self.arguments or {})


class ProposeProfileChange(Struct, frozen=True):
    """Propose a temporary profile change, or (``proposal_id`` alone) ask for an earlier one's result."""

    base_profile_version: int | None = None
    effective_waves: int | None = None
    bands: Annotated[
        Mapping[str, Any] | None, describe("by band: min_tokens, target_tokens, max_tokens")
    ] = None
    rules: Annotated[
        tuple[Mapping[str, Any], ...] | None,
        describe("rule_id with priority_weight, risk_weight, novelty_weight, recency_half_life"),
    ] = None
    reason: str | None = None
    proposal_id: _ProposalId = None
    wait_s: int = DEFAULT_WAIT_S

    def call_arguments(self) -> Mapping[str, Any]:
        """Return the arguments of the loop's own call."""
        return _present(self, "base_profile_version", "effective_waves", "bands", "rules", "reason")


class GetPacket(Struct, frozen=True):
    """Choose a packet: the newest of the client's session or of ``session_id``, or of wave ``wave``."""

    session_id: str | None = None
    wave: int | None = None
    fields: FieldSet = "standard"
    offset: int = 0


class SearchKnowledge(Struct, frozen=True):
    """Search the project's documents, docstrings, notes and handoffs."""

    query: str
    kinds: tuple[Literal["docs", "docstring", "note", "handoff"], ...] | None = None
    limit: int | None = None
    offset: int = 0


async def _search_knowledge(
    dispatcher: Dispatcher, client: ClientConnection, arguments: SearchKnowledge
) -> dict[str, Any]:
    caller = await dispatcher.authenticate(client)
    caller.require(READ, "search the project's knowledge")
    if not arguments.query.strip() or len(arguments.query) > MOST_QUERY:
        raise WrongArguments(f"search_knowledge: query must have 1 to {MOST_QUERY} characters.")
    if arguments.limit is not None and not 1 <= arguments.limit <= MOST_PASSAGES:
        raise WrongArguments(f"search_knowledge: limit must be 1 to {MOST_PASSAGES}.")
    engine = await dispatcher.engine()
    from cockpit.loop.knowledge.search_for_agent import search_for_agent

    passages = await search_for_agent(
        engine,
        arguments.query,
        kinds=arguments.kinds,
        limit=arguments.limit,
        actor=journal_actor(caller),
        session_id=dispatcher.session_id(caller, client),
    )
    if not passages:
        return {"passages": [], "next": "Nothing answers. Try other words, or request_context."}
    return render_page("passages", passages, arguments.offset)


class EstimateWork(Struct, frozen=True):
    """Estimate open tasks of the backlog (none named: all), or the session that ``words`` would start."""

    task_ids: tuple[str, ...] | None = None
    words: str | None = None


async def _estimate_work(
    dispatcher: Dispatcher, client: ClientConnection, arguments: EstimateWork
) -> dict[str, Any]:
    caller = await dispatcher.authenticate(client)
    caller.require(READ, "estimate work")
    words, task_ids = arguments.words, arguments.task_ids
    if words is not None and task_ids is not None:
        raise WrongArguments("estimate_work: give task_ids or words, not both.")
    if words is not None and not 1 <= len(words.strip()) <= MOST_QUERY:
        raise WrongArguments(f"estimate_work: words must have 1 to {MOST_QUERY} characters.")
    if task_ids is not None and not 1 <= len(task_ids) <= MOST_ESTIMATED:
        raise WrongArguments(f"estimate_work: name 1 to {MOST_ESTIMATED} tasks.")

    engine = await dispatcher.engine()
    from cockpit.loop.planner import estimate_for_agent

    if words is not None:
        return await estimate_for_agent.estimate_words(engine, words)
    return await estimate_for_agent.estimate_tasks(engine, task_ids or (), MOST_ESTIMATED)


async def _request_context(
    dispatcher: Dispatcher, client: ClientConnection, arguments: RequestContext
) -> dict[str, Any]:
    return await _propose(dispatcher, client, "request_context", arguments, arguments.offset)


async def _propose_action(
    dispatcher: Dispatcher, client: ClientConnection, arguments: ProposeAction
) -> dict[str, Any]:
    return await _propose(dispatcher, client, arguments.action or "propose_action", arguments)


async def _propose_profile_change(
    dispatcher: Dispatcher, client: ClientConnection, arguments: ProposeProfileChange
) -> dict[str, Any]:
    return await _propose(dispatcher, client, "propose_profile_change", arguments)


async def _get_packet(
    dispatcher: Dispatcher, client: ClientConnection, arguments: GetPacket
) -> dict[str, Any]:
    caller = await dispatcher.authenticate(client)
    caller.require(READ, "read packets")
    own_session = dispatcher.session_id(caller, client)
    return await dispatcher.store.read(
        lambda connection: render_packet(
            connection,
            arguments.session_id or own_session,
            wave=arguments.wave,
            fields=arguments.fields,
            offset=arguments.offset,
        )
    )


async def _propose(
    dispatcher: Dispatcher,
    client: ClientConnection,
    name: str,
    arguments: RequestContext | ProposeAction | ProposeProfileChange,
    offset: int = 0,
) -> dict[str, Any]:
    """Make a call of the loop, or return the result of an earlier one."""
    caller = await dispatcher.authenticate(client)
    caller.require(PROPOSE, "propose anything")
    _check_one_purpose(name, arguments)

    engine, session = await dispatcher.engine(), dispatcher.session(caller, client)
    if arguments.proposal_id:
        result = await session.follow_up(engine, arguments.proposal_id, arguments.wait_s)
    else:
        result = await session.call(engine, name, arguments.call_arguments(), arguments.wait_s)
    tool = "propose_action" if isinstance(arguments, ProposeAction) else name
    return result.body(tool, offset)


def _check_one_purpose(
    tool: str, arguments: RequestContext | ProposeAction | ProposeProfileChange
) -> None:
    """Refuse a call that both proposes and names an earlier proposal, and one that does neither."""
    if not 0 <= arguments.wait_s <= MAX_WAIT_S:
        raise WrongArguments(f"{tool}: wait_s must be 0 to {MAX_WAIT_S} seconds.")
    action = arguments.action if isinstance(arguments, ProposeAction) else None
    proposes = bool(arguments.call_arguments()) or action is not None
    if arguments.proposal_id and proposes:
        raise WrongArguments(
            f"{tool}: proposal_id asks for the result of an earlier proposal; give it alone, or with"
            " wait_s only."
        )
    if not arguments.proposal_id and not proposes:
        raise WrongArguments(f"{tool}: say what you propose, or give an earlier proposal_id.")
    if isinstance(arguments, ProposeAction) and proposes and action is None:
        raise WrongArguments("propose_action needs 'action': write_file, edit_file, run, …")


def _present(record: object, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}


LOOP_TOOLS = (
    LoopTool(
        "request_context",
        "core",
        "Ask to read. The user sees items and cost; if pending, ask again.",
        RequestContext,
        _request_context,
    ),
    LoopTool(
        "search_knowledge",
        "core",
        "Search the project's documents, docstrings, notes and handoffs. Passages with lines.",
        SearchKnowledge,
        _search_knowledge,
    ),
    LoopTool(
        "estimate_work",
        "standard",
        "What tasks, or a session of these words, will take: waves, tokens, cost, as ranges.",
        EstimateWork,
        _estimate_work,
    ),
    LoopTool(
        "propose_action",
        "standard",
        "Propose an edit, a command, a gh call or a commit. The user sees exactly what would happen; "
        "approved, cockpit does it once. Pending: call again with its proposal_id.",
        ProposeAction,
        _propose_action,
    ),
    LoopTool(
        "propose_profile_change",
        "standard",
        "Propose a temporary profile change. The user decides.",
        ProposeProfileChange,
        _propose_profile_change,
    ),
    LoopTool(
        "get_orientation_packet",
        "standard",
        "What a wave of the loop knew: your session's newest packet, or another's.",
        GetPacket,
        _get_packet,
    ),
)
