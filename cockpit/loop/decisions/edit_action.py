"""Editing a proposed action before it is approved: the user's text replaces the agent's.

Each type of action has one text that can be edited. The edit is a new revision, shown and decided like any
other proposal; the agent's own proposal ends as discussed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from cockpit.access.gh_command import parse_gh
from cockpit.access.principals import Caller
from cockpit.act.model_tools import ADDED_ACTIONS, parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approval_effects import ApprovalEffect, find_approval_effect
from cockpit.loop.decisions.decide_proposal import FindCaller, decide_proposal, find_decider
from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.loop.permissions.changed_input import editable_text
from cockpit.loop.permissions.edit_permission import edit_permission
from cockpit.loop.permissions.waiting_permission import KIND as PERMISSION
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import Engine
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import plans, proposals
from cockpit.store.sessions.proposals import EDITED, Proposal

_EDITABLE_ARGUMENT = {
    "write_file": "content",
    "edit_file": "new",
    "git_commit": "message",
    "create_skill": "body",
}


class NotEditable(CockpitError):
    """This proposal has no text to edit."""

    code = "not_editable"


async def load_editable_text(engine: Engine, proposal_id: str) -> tuple[str, str]:
    """Return the text that the user may edit, and the suffix of the editor's file ('.py', '.md', …).

    Raises :class:`NotEditable` and ``NotFound``.
    """
    proposal = await engine.store.read(lambda connection: proposals.load(connection, proposal_id))
    if proposal.kind == PERMISSION:
        return editable_text(proposal.body)
    effect = find_approval_effect(engine.settings.approval_effects, proposal)
    if effect is not None:
        return effect.editable_text(proposal)
    arguments = await _load_arguments(engine, proposal)
    action_type = str(proposal.body["type"])
    if action_type in ADDED_ACTIONS:
        return json.dumps(arguments, ensure_ascii=False, indent=2) + "\n", ".json"
    if action_type == "run":
        argv = arguments.get("argv")
        return (shlex.join(argv) if argv else str(arguments.get("command", ""))), ".txt"
    if action_type == "github":
        command = parse_gh(str(arguments["command"]))
        return (str(arguments["command"]) if command.body is None else command.body), ".md"
    if action_type not in _EDITABLE_ARGUMENT:
        raise NotEditable(f"{proposal.title!r} has no text to edit. Discuss it instead.")
    text = str(arguments[_EDITABLE_ARGUMENT[action_type]])
    path = str(arguments.get("path", "message.md"))
    return text, PurePosixPath(path).suffix or ".txt"


async def edit_action(
    engine: Engine,
    proposal_id: str,
    shown_digest: str,
    text: str,
    find_editor: FindCaller | None = None,
) -> Proposal:
    """Replace the agent's text by the user's ``text``; returns the new revision, which is pending.

    ``find_editor`` says who edits; by default the user at the terminal, or the environment's token.

    Raises :class:`NotEditable`, the errors of parsing and previewing a call, and those of
    :func:`~cockpit.loop.decisions.decide_proposal.decide_proposal`; then nothing changed.
    """
    from cockpit.loop.tools.run_added import (
        parse_edited_call,
        preview_call,
    )  # late: it loads the loop

    settings = engine.settings
    find = find_editor or (lambda tx: find_decider(tx, settings))
    proposal = await engine.store.read(lambda connection: proposals.load(connection, proposal_id))
    if proposal.kind == PERMISSION:
        return await edit_permission(engine.store, settings, proposal, shown_digest, text, find)
    effect = find_approval_effect(settings.approval_effects, proposal)
    if effect is not None:
        return await engine.store.write(
            lambda tx: revise_proposal(
                tx,
                settings,
                effect,
                proposal_id,
                shown_digest,
                text,
                editor=find(tx),
            )
        )
    if proposal.body["type"] in ADDED_ACTIONS:
        call = parse_edited_call(engine, str(proposal.body["payload"]["tool_id"]), text)
        arguments = dict(call.arguments)
    else:
        arguments = _with_text(proposal, await _load_arguments(engine, proposal), text)
        call = parse_call(str(proposal.body["type"]), canonical_json(arguments))
    preview = await preview_call(engine, call)
    body = {
        **preview.proposal_body(),
        "key": proposal.body["key"],
        "arguments": dict(arguments),
    }
    body["changes"] = list_changes(proposal, body, was_edited=True)

    def write_revision(tx: Tx) -> Proposal:
        return _replace_proposal(
            tx,
            settings,
            proposal,
            shown_digest,
            preview.title,
            body,
            preview.risk,
            editor=find(tx),
        )

    return await engine.store.write(write_revision)


def revise_proposal(
    tx: Tx,
    settings: RuntimeSettings,
    effect: ApprovalEffect,
    proposal_id: str,
    shown_digest: str,
    text: str,
    *,
    editor: Caller,
) -> Proposal:
    """Replace a proposal with an approval effect by the revision that ``text`` makes of it.

    Raises ``NotAllowed`` unless ``editor`` is the user, and the errors of the effect.
    """
    proposal = proposals.load(tx.connection, proposal_id)
    revision = effect.revise(tx.connection, proposal, text)
    changes = list_changes(proposal, revision.body, was_edited=True)
    body = {**revision.body, "changes": changes}
    return _replace_proposal(
        tx, settings, proposal, shown_digest, revision.title, body, proposal.risk, editor=editor
    )


def _replace_proposal(
    tx: Tx,
    settings: RuntimeSettings,
    proposal: Proposal,
    shown_digest: str,
    title: str,
    body: Mapping[str, Any],
    risk: str,
    *,
    editor: Caller,
) -> Proposal:
    decide_proposal(
        tx,
        settings,
        proposal.proposal_id,
        "discussed",
        editor,
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


def _with_text(proposal: Proposal, arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    action_type = str(proposal.body["type"])
    if action_type not in ("run", "github", *_EDITABLE_ARGUMENT):
        raise NotEditable(f"{proposal.title!r} has no text to edit. Discuss it instead.")
    if action_type == "run":
        others = {name: value for name, value in arguments.items() if name != "argv"}
        return {**others, "command": text.strip()}
    if action_type == "github":
        command = parse_gh(str(arguments["command"]))
        if command.body is None:
            return {**arguments, "command": text.strip()}
        return {**arguments, "command": shlex.join(command.with_body(text).argv)}
    return {**arguments, _EDITABLE_ARGUMENT[action_type]: text}


async def _load_arguments(engine: Engine, proposal: Proposal) -> Mapping[str, Any]:
    if proposal.kind != "action" or "key" not in proposal.body:
        raise NotEditable(
            "Only an action or a permission can be edited. Narrow a context request, or discuss it."
        )
    arguments: Mapping[str, Any]
    if "arguments" in proposal.body:
        arguments = proposal.body["arguments"]
        return arguments
    plan = await engine.store.read(lambda connection: plans.find(connection, proposal.wave_id))
    for call in plan.calls if plan else ():
        if call["key"] == proposal.body["key"]:
            arguments = call["arguments"]
            return arguments
    raise NotEditable("The store no longer has the plan of this proposal. Discuss it instead.")
