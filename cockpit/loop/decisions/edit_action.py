"""Editing an action before it is approved: the person's words take the place of the agent's.

What is edited is the one text that matters of each action. The result is a new revision that is shown
and decided like any other; what the agent had proposed ends as discussed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from cockpit.access.gh_command import parse_gh
from cockpit.act.preview import shown
from cockpit.act.tools import parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approved_effects import Commission, commissioned
from cockpit.loop.decisions.await_decision import EDITED
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import plans, proposals
from cockpit.store.sessions.proposals import Proposal

_FIELD = {"write_file": "content", "edit_file": "new", "git_commit": "message"}


class NotEditable(CockpitError):
    """This proposal has no text to edit."""

    code = "not_editable"


async def editable(engine: Engine, proposal_id: str) -> tuple[str, str]:
    """The text that the person may edit, and a file suffix for the editor ('.py', '.md', …)."""
    proposal = await engine.store.read(lambda connection: proposals.load(connection, proposal_id))
    commission = commissioned(engine.settings.commissions, proposal)
    if commission is not None:
        return commission.editable(proposal)
    arguments = await _arguments(engine, proposal)
    kind = str(proposal.body["type"])
    if kind == "run":
        argv = arguments.get("argv")
        return (shlex.join(argv) if argv else str(arguments.get("command", ""))), ".txt"
    if kind == "github":
        command = parse_gh(str(arguments["command"]))
        return (str(arguments["command"]) if command.body is None else command.body), ".md"
    text = str(arguments[_FIELD[kind]])
    path = str(arguments.get("path", "message.md"))
    return text, PurePosixPath(path).suffix or ".txt"


async def edit(engine: Engine, proposal_id: str, shown_digest: str, text: str) -> Proposal:
    """Put the person's ``text`` in place and propose the result anew.

    Raises :class:`NotEditable`, the errors of reading and showing a call, and those of a decision
    that came too late; then nothing changed.
    """
    proposal = await engine.store.read(lambda connection: proposals.load(connection, proposal_id))
    commission = commissioned(engine.settings.commissions, proposal)
    if commission is not None:
        return await engine.store.write(
            lambda tx: revise(tx, commission, proposal_id, shown_digest, text)
        )
    arguments = _edited(proposal, await _arguments(engine, proposal), text)
    call = parse_call(str(proposal.body["type"]), canonical_json(arguments))
    seen = await shown(call, engine.ground)
    body = {
        **seen.proposal_body(),
        "key": proposal.body["key"],
        "arguments": dict(arguments),
        "changes": [EDITED],
    }

    def step(tx: Tx) -> Proposal:
        return _instead(tx, proposal, shown_digest, seen.title, body, seen.risk)

    return await engine.store.write(step)


def revise(
    tx: Tx, commission: Commission, proposal_id: str, shown_digest: str, text: str
) -> Proposal:
    """Put the person's ``text`` in place of a proposal of that commission, which ends as discussed."""
    proposal = proposals.load(tx.connection, proposal_id)
    made = commission.edited(tx.connection, proposal, text)
    body = {**made.body, "changes": [EDITED]}
    return _instead(tx, proposal, shown_digest, made.title, body, proposal.risk)


def _instead(
    tx: Tx, proposal: Proposal, shown_digest: str, title: str, body: Mapping[str, Any], risk: str
) -> Proposal:
    proposals.decide(
        tx,
        proposal.proposal_id,
        "discussed",
        by="person",
        shown_digest=shown_digest,
        reason=EDITED,
    )
    return proposals.create(
        tx,
        proposal_id=f"p-{digest([proposal.proposal_id, body])[:10]}",
        kind="action",
        session_id=proposal.session_id,
        wave_id=proposal.wave_id,
        title=title,
        body=body,
        risk=risk,
        revises=proposal.proposal_id,
        task_id=proposal.task_id,
    )


def _edited(proposal: Proposal, arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    kind = str(proposal.body["type"])
    if kind == "run":
        rest = {name: value for name, value in arguments.items() if name != "argv"}
        return {**rest, "command": text.strip()}
    if kind == "github":
        command = parse_gh(str(arguments["command"]))
        if command.body is None:
            return {**arguments, "command": text.strip()}
        return {**arguments, "command": shlex.join(command.with_body(text).argv)}
    return {**arguments, _FIELD[kind]: text}


async def _arguments(engine: Engine, proposal: Proposal) -> Mapping[str, Any]:
    if proposal.kind != "action" or "key" not in proposal.body:
        raise NotEditable("Only an action can be edited; narrow a context request, or discuss it.")
    if "arguments" in proposal.body:
        kept: Mapping[str, Any] = proposal.body["arguments"]
        return kept
    plan = await engine.store.read(lambda connection: plans.find(connection, proposal.wave_id))
    for call in plan.calls if plan else ():
        if call["key"] == proposal.body["key"]:
            found: Mapping[str, Any] = call["arguments"]
            return found
    raise NotEditable("The plan behind this proposal is gone; discuss it instead.")
