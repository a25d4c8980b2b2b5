"""Results of a wave's tool calls, as facts of the next wave.

An exchange is one call of the agent and its result: one fact, kept or dropped together. Call ids name
places (``call-3-1``: third wave, first call) instead of a provider's ids, so that the same session
compiles to the same facts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.act.dispatch_actions import LOOK_FIRST
from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.core.canonical_json import canonical_json
from cockpit.core.failure_lines import clip_middle, find_failure_lines, shorten_line
from cockpit.core.secrets import mask, mask_value
from cockpit.core.text import pluralize
from cockpit.loop.decisions import profile_change_tool, task_type_tool, wip_tool
from cockpit.loop.decisions.await_decision import DecidedProposal
from cockpit.loop.decisions.propose_changing import CHANGING
from cockpit.loop.phases.propose_context_request import FROM_STORE, request_id_of_call
from cockpit.loop.phases.reading_calls import asks_to_read, request_arguments
from cockpit.loop.planner import plan_tool
from cockpit.loop.planner.plan_target import PLAN_TOOL
from cockpit.loop.reentry.kept_actions import HeldAction, read_held_in
from cockpit.loop.trust.pass_items import request_id_by_rules
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.rendered_cost import with_cost
from cockpit.store.context import pins
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import context_requests, outbox, plans, proposals
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.waves import Wave

MAX_RESULT_CHARS = 24_000
"""Characters of a result that are stored; the middle of a longer one is cut out."""

MOST_OUTPUT_LINES = 30
"""Lines of what a command printed that a result shows whole; of a longer one the two ends."""
FIRST_LINES, LAST_LINES = 10, 20

KEPT_STATUSES = ("failed", "held", "uncertain", "rejected", "discussed")
"""Results that stay in every packet, at least in outline: what failed, and what the user said about it."""

OUTLINED_ARGUMENT_CHARS = 400
"""Characters of a call's arguments that its outline shows."""

_RECEIPT_FIELDS_LEFT_OUT = ("stdout", "stderr", "duration_ms")
"""Fields of a receipt that follow as text, or that differ from run to run without a reason."""

MIN_OUTLINED_CHARS = 1_200
"""Shorter results have no outline: they are short enough as they are."""
_HEAD_LINES = 2
_TAIL_LINES = 6


class Exchange(Struct, frozen=True):
    """One call of the agent and its result."""

    wave: int
    place: int
    """The call's number in its wave, from 1."""
    text: str
    """The agent's text before the call."""
    call: str
    """The tool's name; empty for text without a call."""
    arguments: Mapping[str, Any]
    result: str
    status: str
    """One of approved, held, narrowed, rejected, discussed, expired, confirmed, failed, uncertain, refused,
    malformed, fetched, said, interrupted."""
    sandbox: str = ""
    """``reading`` for what a command read in the reading sandbox; empty for any other call."""
    thinking: Sequence[Mapping[str, Any]] | None = None
    """Blocks of what the model thought before its first call; None where it did not think. They are empty for
    the answer's further calls, and where no block is kept."""

    def fact(self) -> Fact:
        """Return the exchange as a fact of the situational band."""
        whole = mask(self.result)
        receipt = f"receipt:{self.wave}.{self.place}"
        is_output = self.call == "run" and self.status == "confirmed" and not self.sandbox
        result = clip_middle(keep_ends(whole, receipt) if is_output else whole, MAX_RESULT_CHARS)
        arguments = mask_value(dict(self.arguments))
        text = mask(self.text)
        body = text if not self.call else f"{self.call} {canonical_json(arguments)}\n→ {result}"
        full = f"{text}\n{body}" if text and self.call else body
        name = self.call or "words"
        place = f"{self.wave}.{self.place}"
        brief = f"wave {self.wave}: {name} → {self.status}"
        shorter = None
        if self.call:
            brief += f"; {receipt} shows it"
            short_result = outline_result(whole, receipt)
            short_arguments = clip_text(canonical_json(arguments), OUTLINED_ARGUMENT_CHARS)
            if short_result is not None or len(body) > MIN_OUTLINED_CHARS:
                shorter = f"{self.call} {short_arguments}\n→ {short_result or result}"
        return with_cost(
            Fact(
                source_type="exchange",
                source_ref=f"exchange:{place}",
                band="situational",
                full=Level(full, count_tokens(full)),
                reference=Level(brief, count_tokens(brief)),
                outline=None if shorter is None else Level(shorter, count_tokens(shorter)),
                provenance={
                    "text": text,
                    "call": self.call,
                    "call_id": f"call-{self.wave}-{self.place}" if self.call else "",
                    "arguments": arguments,
                    "result": result,
                    "status": self.status,
                    **({"sandbox": self.sandbox} if self.sandbox else {}),
                    **({} if self.thinking is None else {"thinking": list(self.thinking)}),
                },
                utility=800_000,
                pinned=self.status in KEPT_STATUSES,
                pinned_short=shorter is not None,
            )
        )


def keep_ends(output: str, receipt: str) -> str:
    """Return what a command printed with the first and last lines of a long output, the rest by receipt."""
    lines = output.splitlines()
    if len(lines) <= MOST_OUTPUT_LINES:
        return output
    left_out = pluralize(len(lines) - FIRST_LINES - LAST_LINES, "line")
    notice = f"[… {left_out} left out; {receipt} shows them …]"
    return "\n".join([*lines[:FIRST_LINES], notice, *lines[-LAST_LINES:]])


def clip_text(text: str, limit: int = MAX_RESULT_CHARS) -> str:
    """Return ``text``, its middle cut out when it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return (
        f"{text[:half]}\n[… {pluralize(len(text) - limit, 'character')} left out …]\n{text[-half:]}"
    )


def pinned_text_fact(
    source_type: str, source_ref: str, text: str, *, band: str = "objectives"
) -> Fact:
    """Return a message to the agent, from the user or from cockpit, as a pinned fact."""
    masked = mask(text)
    brief = masked.strip().splitlines()[0][:120] if masked.strip() else source_ref
    return with_cost(
        Fact(
            source_type=source_type,
            source_ref=source_ref,
            band=band,
            full=Level(masked, count_tokens(masked)),
            reference=Level(brief, count_tokens(brief)),
            pinned=True,
            utility=1_000_000,
        )
    )


def subject_of(call: str, arguments: Mapping[str, Any]) -> str:
    """Return what a call is about: its command, its file, or all of its arguments.

    A later result about the same replaces what an earlier one said.
    """
    match call:
        case "run":
            argv = arguments.get("argv")
            subject = list(argv) if argv else str(arguments.get("command", "")).split()
        case "write_file" | "edit_file":
            return f"write {arguments.get('path')}"
        case _:
            subject = [call, dict(arguments)]
    return canonical_json([call, subject])


def release_kept_results(tx: Tx, wave: Wave, results: Sequence[Exchange], max_tokens: int) -> None:
    """Unpin kept results of earlier waves that ``results`` replace, and the oldest beyond ``max_tokens``.

    They stay in the session, and compete by their score.
    """
    subjects = {subject_of(result.call, result.arguments) for result in results if result.call}
    taken = 0
    for kept in pins.select_kept_results(tx.connection, wave.session_id):
        taken += kept.least_tokens
        call = str(kept.provenance.get("call", ""))
        is_replaced = subject_of(call, kept.provenance.get("arguments", {})) in subjects
        if kept.ordinal < wave.ordinal and (is_replaced or taken > max_tokens):
            pins.release(tx, wave.session_id, kept, wave.ordinal)


def read_exchanges(connection: sqlite3.Connection, wave: Wave) -> list[Exchange]:
    """Return the exchanges of ``wave`` in the order of its calls, all of which have ended."""
    plan = plans.find(connection, wave.wave_id)
    if plan is None:
        return []
    exchanges = []
    for place, call in enumerate(plan.calls, start=1):
        result, status = _result_of_call(connection, wave, call)
        exchanges.append(
            Exchange(
                wave=wave.ordinal,
                place=place,
                text=plan.text if place == 1 else "",
                call=str(call["name"]),
                arguments=call["arguments"],
                result=result,
                status=status,
                sandbox=_read_sandbox(connection, wave, call),
                thinking=call.get("thinking"),
            )
        )
    if not exchanges and plan.text:
        status = "interrupted" if plan.stop in ("interrupted", "cut") else "said"
        exchanges.append(Exchange(wave.ordinal, 1, plan.text, "", {}, "", status))
    return exchanges


def _result_of_call(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the result of one call, as the agent reads it, and its status."""
    if call["error"]:
        return f"Not understood: {call['error']}", "malformed"
    if call["name"] == "finish":
        return "Not finished: another call of the same answer did not succeed.", "refused"
    if asks_to_read(call):
        result, status = _result_of_request(connection, wave, call)
        result += _result_by_rules(connection, call)
        if call["name"] != "request_context":
            items = ", ".join(map(str, request_arguments(call)["scope"]))
            result = f"Reading is not an action, so instead you asked for {items}. {result}"
        return result, status
    if call["name"] == wip_tool.TOOL:
        return wip_tool.read_call_result(call)
    if call["name"] == profile_change_tool.TOOL:
        return profile_change_tool.read_call_result(connection, str(call["key"]))
    if call["name"] == task_type_tool.TOOL:
        return task_type_tool.read_call_result(connection, wave.session_id, call)
    if call["name"] == PLAN_TOOL:
        return plan_tool.read_call_result(connection, wave.session_id, call)
    return _result_of_action(connection, wave, call)


def _result_of_request(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[str, str]:
    request_id = request_id_of_call(call["key"])
    request = context_requests.find(connection, request_id)
    if request is None:
        messages = connection.execute(
            "SELECT json_extract(detail_json,'$.message') FROM journal WHERE session_id=?"
            " AND wave_id=? AND action=? ORDER BY seq",
            (wave.session_id, wave.wave_id, str(Action.CONTEXT_REFUSED)),
        ).fetchall()
        return f"Refused: {'; '.join(message for (message,) in messages)}", "refused"
    if request.status == "fetched" and request.decided_by == FROM_STORE:
        return _answer_from_store(request), "approved"
    if request.status != "fetched" or request.proposal_id is None:
        return _result_of_unread_request(connection, request)
    unreadable = {str(item["item"]): item["refused"] for item in request.items if item["refused"]}
    offered = [str(item["item"]) for item in request.items if not item["refused"]]
    granted = [item for item in offered if item in request.approved]
    not_granted = [item for item in offered if item not in request.approved]
    by = request.decided_by
    if not not_granted and len(granted) == len(request.items):
        return answer_approved(by, request.outcomes), "approved"
    verb = f"Narrowed by {by} to" if not_granted else f"Approved by {by}:"
    lines = [f"{verb} {', '.join(granted)}."]
    if not_granted:
        lines.append(f"Not granted: {', '.join(not_granted)}.")
    lines += [f"{item}: cannot be read: {reason}" for item, reason in unreadable.items()]
    lines += _describe_failures(request.outcomes)
    lines.append("What was read is in the context under its source.")
    return "\n".join(lines), "narrowed" if not_granted else "approved"


def _result_by_rules(connection: sqlite3.Connection, call: Mapping[str, Any]) -> str:
    """Return the sentence about items that the user's rules let pass apart from the request; '' without."""
    own_id = request_id_by_rules(request_id_of_call(call["key"]))
    passed = context_requests.find(connection, own_id)
    if passed is None or passed.status != "fetched":
        return ""
    lines = [f"Approved by {passed.decided_by}: {', '.join(passed.approved)}."]
    return "\n" + "\n".join([*lines, *_describe_failures(passed.outcomes)])


def answer_approved(by: str, outcomes: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the result of a request of which all was granted: short, as the call names what it asked for."""
    begin = f"Approved by {by}; it is in the context under its source."
    return "\n".join([begin, *_describe_failures(outcomes)])


def _answer_from_store(request: context_requests.ContextRequest) -> str:
    """Return the result of a request whose facts were served again, and of its items that were not."""
    shown = [f"{item['item']}: {item['refused']}." for item in request.items if item["refused"]]
    begin = "You read this before and nothing has changed: it is in the context under its source."
    return "\n".join([begin, *shown, *_describe_failures(request.outcomes)])


def _describe_failures(outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{outcome['item']}: could not be read: {outcome['error']}"
        for outcome in outcomes
        if outcome.get("error")
    ]


def _result_of_unread_request(
    connection: sqlite3.Connection, request: context_requests.ContextRequest
) -> tuple[str, str]:
    if request.proposal_id is None:
        return "Not read.", "refused"
    decided = DecidedProposal(proposals.load(connection, request.proposal_id))
    # The offline rules strip this last sentence from the user's text.
    return f"{decided.message} Nothing was read.", decided.status


def _result_of_action(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> tuple[str, str]:
    action = _find_last_action(connection, wave, call)
    assert action is not None  # noqa: S101 - Decide planned it with the call
    if action.phase == "failed_terminal":
        held = next(
            (
                each
                for each in read_held_in(connection, wave.wave_id)
                if each.action_id == action.action_id
            ),
            None,
        )
        if held is not None:
            return _result_of_held(connection, wave, call, action, held)
    receipts = outbox.select_receipts(connection, action.action_id)
    if not receipts:
        return _result_without_receipt(connection, action)
    last = receipts[-1]
    result = f"{last.summary}\n{_format_receipt(last.detail)}".strip()
    return result, "confirmed" if action.phase == "confirmed" else "failed"


def _find_last_action(
    connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]
) -> OutboxAction | None:
    """Return the action of a call, or the one that it was proposed as when the reading sandbox refused it."""
    keys = (str(call["key"]), f"{call['key']}{CHANGING}")
    actions = outbox.select_for_wave(connection, wave.wave_id)
    return next((action for action in reversed(actions) if action.key in keys), None)


def _read_sandbox(connection: sqlite3.Connection, wave: Wave, call: Mapping[str, Any]) -> str:
    """Return ``reading`` for a call whose output came from the reading sandbox; '' for any other."""
    action = _find_last_action(connection, wave, call) if call["name"] == "run" else None
    return "reading" if action is not None and action.payload.get("reading") else ""


def _result_of_held(
    connection: sqlite3.Connection,
    wave: Wave,
    call: Mapping[str, Any],
    action: OutboxAction,
    held: HeldAction,
) -> tuple[str, str]:
    """Return what the agent reads of an action that is kept, and of the request in its name."""
    event = held.event
    again = (
        f"To propose it again as it was, call resume_action with call '{event.call}'; to change it, call"
        f" {call['name']} anew."
    )
    if event.cause == "discussed":
        result, status = _result_without_receipt(connection, action)
        # The user's own words come last: the offline rules read all that follows their marker.
        return f"The action is kept until the user agrees. {again} {result}", status
    reading = ""
    if context_requests.find(connection, request_id_of_call(call["key"])) is not None:
        result, _ = _result_of_request(connection, wave, call)
        result += _result_by_rules(connection, call)
        reading = f" You asked for {', '.join(event.items)}. {result}"
    return f"It did not run, and is kept: {event.why}.{reading} {again}", "held"


def _result_without_receipt(
    connection: sqlite3.Connection, action: OutboxAction
) -> tuple[str, str]:
    if action.phase == "uncertain":
        return (
            f"{action.last_error} {LOOK_FIRST}",
            "uncertain",
        )
    revisions = proposals.select_for_action(connection, action.wave_id, action.key)
    last = revisions[-1] if revisions else None
    is_decided = last is not None and last.status in ("discussed", "rejected", "expired")
    if last is not None and is_decided and last.decided_by != "engine":
        decided = DecidedProposal(last)
        return decided.message, decided.status
    if action.action_type == ADOPT and revisions:
        return f"There is no such tool. {action.last_error}", "failed"
    return f"It did not run: {action.last_error}", "refused"


def _format_receipt(detail: Mapping[str, Any]) -> str:
    """Return a receipt's detail as text for a model: outputs as they are, the rest in one line."""
    outputs = [str(detail[name]) for name in ("stdout", "stderr") if detail.get(name)]
    rest = {
        name: value
        for name, value in detail.items()
        if name not in _RECEIPT_FIELDS_LEFT_OUT and value not in (None, "", [], {})
    }
    head = canonical_json(rest) if rest else ""
    return "\n".join(part for part in (head, *outputs) if part)


def outline_result(result: str, receipt: str) -> str | None:
    """Return a result's head, the lines that say what failed, and its end, or None where it is short.

    ``receipt`` is the scope item that shows the whole result.
    """
    if len(result) < MIN_OUTLINED_CHARS:
        return None
    lines = result.splitlines()
    last = max(len(lines) - _TAIL_LINES, 0)
    shown = [*range(min(_HEAD_LINES, len(lines))), *range(last, len(lines))]
    # The end of an output sums up what failed; its first failures say why.
    failures = [_HEAD_LINES + at for at in find_failure_lines(lines[_HEAD_LINES:last])]
    places = sorted({*shown, *failures})
    text = "\n".join(shorten_line(lines[at]) for at in places)
    left_out = len(lines) - len(places)
    return f"{text}\n[{pluralize(left_out, 'line')} left out; {receipt} shows the whole result]"
