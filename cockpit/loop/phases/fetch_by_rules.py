"""Attention rules that fetch: what the wave's profile reads without asking, each item through the gateway.

An enabled rule reads its items in a session's first wave under it. After an action it reads again what the
action may have changed; what the session has already stays as it is. The user approved the profile that has
the rule. See ``docs/reference/kernel.md``, rules that fetch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.act.model_tools import ACTIONS, ADDED_ACTIONS
from cockpit.core.canonical_json import parse_json
from cockpit.loop.phases.orienting import load_pinned_profile
from cockpit.loop.phases.propose_context_request import open_gateway, preview_record
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest as GatewayRequest
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import ScopeItem, parse_item
from cockpit.store.context.profile_model import Profile, Rule
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, outbox
from cockpit.store.sessions.context_requests import ContextRequest

_CHANGED_BY_ACTIONS = ("file", "search", "tree", "symbol", "diff", "log")
"""Sources that are read again after an action."""

_ACTING = frozenset((*ACTIONS, *ADDED_ACTIONS))
_DECIDER = "policy:rule/"


class _DueRule(Struct, frozen=True):
    """What one rule reads in this wave."""

    rule: Rule
    first: tuple[str, ...]
    """Items that the session has not read by this rule."""
    again: tuple[str, ...]
    """Items that an action may have changed."""


def is_by_rule(request: ContextRequest) -> bool:
    """Whether an attention rule made the request."""
    return request.decided_by.startswith(_DECIDER)


def quotas_by_request(requests: Sequence[ContextRequest], profile: Profile) -> Mapping[str, int]:
    """Return the most jobs of each request that an attention rule made, by request id."""
    quotas = {rule.rule_id: rule.quota for rule in profile.rules}
    return {
        request.request_id: quotas.get(request.decided_by.removeprefix(_DECIDER), 0)
        for request in requests
        if is_by_rule(request)
    }


def has_acted(connection: sqlite3.Connection, context: WaveContext) -> bool:
    """Whether an action of the wave before may have changed the project, or it is the first of a fork."""
    if context.wave.ordinal == 1 or context.session.rev is not None:
        return False
    previous = f"{context.session.session_id}-w{context.wave.ordinal - 1}"
    if _was_copied(connection, previous):
        return True
    return any(
        action.phase == "confirmed"
        and action.action_type in _ACTING
        and not action.payload.get("reading")
        for action in outbox.select_for_wave(connection, previous)
    )


def _was_copied(connection: sqlite3.Connection, wave_id: str) -> bool:
    """Whether the wave ran in the session that this one was forked from: only such a one has no packet."""
    row = connection.execute(
        "SELECT 1 FROM wave_runs WHERE wave_id=? AND phase='completed' AND orientation_packet_id IS NULL",
        (wave_id,),
    ).fetchone()
    return row is not None


async def request_by_rules(context: WaveContext) -> None:
    """Record one approved request for every enabled rule that has something to read in this wave."""
    due = context.store.read_now(lambda connection: _list_due(connection, context))
    if not due:
        return
    gateway = open_gateway(context)
    requests: list[tuple[Rule, list[dict[str, object]]]] = []
    for rule in due:
        previews = await _preview(context, gateway, rule)
        if previews:
            requests.append((rule.rule, previews))

    def write(tx: Tx) -> None:
        for rule, items in requests:
            context_requests.create(
                tx,
                request_id=f"q-{context.wave.wave_id}-rule-{rule.rule_id}",
                session_id=context.session.session_id,
                wave_id=context.wave.wave_id,
                purpose=f"attention rule {rule.rule_id}",
                question="What does the profile read in every session?",
                items=items,
                decided_by=f"{_DECIDER}{rule.rule_id}",
                rule=rule.rule_id,
            )

    if requests:
        await context.store.write(write)


def _list_due(connection: sqlite3.Connection, context: WaveContext) -> list[_DueRule]:
    profile = load_pinned_profile(connection, context)
    rules = [rule for rule in profile.rules if rule.enabled and rule.fetch]
    if not rules:
        return []
    acted = has_acted(connection, context)
    due: list[_DueRule] = []
    for rule in rules:
        so_far = _items_so_far(connection, context, rule)
        first = tuple(item for item in rule.fetch if item not in so_far)
        again = tuple(item for item in rule.fetch if item in so_far) if acted else ()
        if first or again:
            due.append(_DueRule(rule, first, again))
    return due


def _items_so_far(connection: sqlite3.Connection, context: WaveContext, rule: Rule) -> set[str]:
    """The items of the rule that earlier waves of the session requested, as the rule writes them."""
    rows = connection.execute(
        "SELECT scope_json FROM context_requests WHERE session_id=? AND decided_by=? AND wave_id<>?",
        (
            context.session.session_id,
            f"{_DECIDER}{rule.rule_id}",
            context.wave.wave_id,
        ),
    )
    requested = {str(item["item"]) for (scope,) in rows for item in parse_json(scope)}
    return {item for item in rule.fetch if str(parse_item(item)) in requested}


async def _preview(
    context: WaveContext, gateway: ContextGateway, due: _DueRule
) -> list[dict[str, object]]:
    """Preview what there is to read; of items that are read again, only those that can be read."""
    again = [item for item in map(parse_item, due.again) if item.kind in _CHANGED_BY_ACTIONS]
    first = list(map(parse_item, due.first))
    unread = await _leave_out_files_in_session(context, gateway, again, most=due.rule.quota)
    scope = [*first, *(item for item in unread if item not in first)]
    if not scope:
        return []
    previews = await gateway.preview(
        GatewayRequest(
            f"attention rule {due.rule.rule_id}",
            "What does it read?",
            tuple(scope),
            rev=context.session.rev,
        )
    )
    return [
        preview_record(preview)
        for preview in previews
        if preview.item in first or not preview.refused
    ]


async def _leave_out_files_in_session(
    context: WaveContext, gateway: ContextGateway, items: Sequence[ScopeItem], *, most: int
) -> list[ScopeItem]:
    """Return ``items`` with globs replaced by at most ``most`` files that the session has not read.

    A file that it has read is read again when it changed, like every granted file.
    """
    if not items:
        return []
    rows = context.store.read_now(
        lambda connection: connection.execute(
            "SELECT DISTINCT source_ref FROM session_facts WHERE session_id=? AND source_type='file'"
            " AND superseded_at IS NULL",
            (context.session.session_id,),
        ).fetchall()
    )
    read = {str(ref) for (ref,) in rows}
    files = [item for item in items if item.kind == "file"]
    expanded = [part for parts in await gateway.expand(files) for part in parts]
    new_files = [part for part in expanded if str(part) not in read and part not in files]
    missing = [item for item in files if item in expanded and str(item) not in read]
    return [*(item for item in items if item.kind != "file"), *[*missing, *new_files][:most]]
