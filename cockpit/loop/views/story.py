"""The journal of a session as a story in words: one projection for people without a screen.

Lines are not cleaned for a terminal here; who prints them does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cockpit.core.text import pluralize
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row

WHO = {"person": "you", "agent": "agent", "notice": "note"}


class Storyteller:
    """Turns rows, in the order of the journal, into text to print as it stands.

    An agent's words come out as they stream; a row whose fragments were folded away before it was
    read gives the rest of the message. ``hints`` adds how to decide what waits for a person.
    """

    def __init__(self, *, hints: bool = True) -> None:
        self._hints = hints
        self._open: list[str] = []
        self._streaming = ""
        self._heard = ""

    def tell(self, row: Row) -> str:
        """The text that this row adds; '' for rows that a story leaves out."""
        if row.action == Action.MESSAGE_DELTA:
            return self._delta(row.raw_detail())
        if row.action == Action.MESSAGE_COMPLETED:
            return self._message(row.raw_detail())
        if row.action == Action.PROPOSAL_CREATED:
            self._open.append(str(row.raw_detail()["proposal_id"]))
        elif row.action in _DECIDED and row.raw_detail()["proposal_id"] in self._open:
            self._open.remove(str(row.raw_detail()["proposal_id"]))
        if row.action == Action.SESSION_WAITING:
            line = self._waiting(row.raw_detail())
        else:
            write = _LINES.get(row.action)
            line = write(row.raw_detail()) if write else ""
        return f"{self._interrupting()}{line}\n" if line else ""

    def _waiting(self, detail: Mapping[str, Any]) -> str:
        if detail["for"] != "proposal" or not self._open or not self._hints:
            return ""
        return f"  ⏸ waits for you: cockpit proposals show {self._open[-1]}"

    def _delta(self, detail: Mapping[str, Any]) -> str:
        text = str(detail["text"])
        if detail["message_id"] != self._streaming:
            start = self._interrupting() + f"{WHO['agent']}\n"
            self._streaming, self._heard = str(detail["message_id"]), ""
            text, heard = start + text, text
            self._heard = heard
            return text
        self._heard += text
        return text

    def _message(self, detail: Mapping[str, Any]) -> str:
        words, end = str(detail["text"]), "\n"
        if detail.get("interrupted"):
            end = " … (interrupted)\n"
        if detail["message_id"] == self._streaming:
            heard, self._streaming, self._heard = self._heard, "", ""
            if words.startswith(heard):
                return words[len(heard) :] + end
            return f"\n{words}{end}"  # masked as a whole it reads otherwise: say it again, whole
        if not words and not detail.get("interrupted"):
            return ""
        return f"{self._interrupting()}{WHO[detail['role']]}\n{words}{end}"

    def _interrupting(self) -> str:
        """A line end when something else is told while a message still streams."""
        if not self._streaming:
            return ""
        self._streaming, self._heard = "", ""
        return "\n"


def _session(detail: Mapping[str, Any]) -> str:
    return f"{detail['task_type']} · {detail['title']} · {detail['model']}"


def _requested(detail: Mapping[str, Any]) -> str:
    items = detail["items"]
    tokens = sum(int(item["tokens"]) for item in items)
    how = "declared by the task" if detail["auto"] else "asked for"
    refused = [item for item in items if item.get("refused")]
    line = f"  context {how}: {pluralize(len(items), 'item')}, about {tokens:,} tokens"
    return line + "".join(f"\n    ✘ {item['item']}: {item['refused']}" for item in refused)


def _fetched(detail: Mapping[str, Any]) -> str:
    failed = [item for item in detail["items"] if item.get("error")]
    facts = int(detail["facts"])
    new = int(detail.get("new", facts))
    line = f"  ↳ {pluralize(facts, 'fact')}, {detail['tokens']:,} tokens"
    if not new and not failed:
        line = "  ↳ already in this session"
    elif new < facts:
        line += f"; {facts - new} of them already in this session"
    return line + "".join(f"\n    ✘ {item['item']}: {item['error']}" for item in failed)


def _packet(detail: Mapping[str, Any]) -> str:
    return (
        f"  ↳ packet {detail['digest'][:6]} · {pluralize(detail['facts'], 'fact')}"
        f" · {detail['dropped']} dropped"
        f" · {detail['token_used']:,} of {detail['token_budget']:,} tokens"
    )


def _model(detail: Mapping[str, Any]) -> str:
    cost = detail["cost_usd"]
    paid = f" · ${cost:.4f}" if cost else ""
    if not detail["input_tokens"] and not detail["output_tokens"]:
        return ""
    return f"  ↳ {detail['input_tokens']:,} tokens in, {detail['output_tokens']:,} out{paid}"


def _proposal(detail: Mapping[str, Any]) -> str:
    return f"  ? {detail['kind']} · {detail['risk']} risk · {detail['title']}"


def _approved(detail: Mapping[str, Any]) -> str:
    kept = detail.get("narrowed") or ()
    only = f", narrowed to {pluralize(len(kept), 'item')}" if kept else ""
    return f"  ✔ approved by {detail['decided_by']}{only}"


def _decided(sign: str, verb: str, words: str) -> Callable[[Mapping[str, Any]], str]:
    def line(detail: Mapping[str, Any]) -> str:
        said = detail.get(words) or ""
        by = f" by {detail['decided_by']}" if detail.get("decided_by") else ""
        return f"  {sign} {verb}{by}" + (f": {said}" if said else "")

    return line


def _ended(detail: Mapping[str, Any]) -> str:
    sign = "✔" if detail.get("status") == "done" else "✘"
    summary = detail.get("summary") or ""
    return f"{sign} {detail.get('status', 'ended')}" + (f": {summary}" if summary else "")


_DECIDED = frozenset(
    {
        Action.PROPOSAL_APPROVED,
        Action.PROPOSAL_REJECTED,
        Action.PROPOSAL_DISCUSSED,
        Action.PROPOSAL_EXPIRED,
    }
)

_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    Action.SESSION_CREATED: _session,
    Action.SESSION_COMPLETED: _ended,
    Action.SESSION_FAILED: lambda detail: f"✘ failed: {detail['message']}",
    Action.SESSION_STOPPED: lambda detail: f"■ stopped: {detail.get('reason') or 'by you'}",
    Action.WAVE_STARTED: lambda detail: f"── wave {detail['ordinal']}",
    Action.WAVE_FAILED: lambda detail: f"  ✘ wave {detail['ordinal']}: {detail['message']}",
    Action.WAVE_REENTERED: lambda detail: f"── wave {detail['ordinal']}, taken up again",
    Action.CONTEXT_REQUESTED: _requested,
    Action.CONTEXT_FETCHED: _fetched,
    Action.CONTEXT_REFUSED: lambda detail: f"  ✘ context refused: {detail['message']}",
    Action.PACKET_COMPILED: _packet,
    Action.MODEL_COMPLETED: _model,
    Action.MODEL_RETRIED: lambda d: f"  ↻ {d['reason']}; trying again in {d['wait_s']:g} s",
    Action.MODEL_FAILED: lambda detail: f"  ✘ {detail['message']}",
    Action.MODEL_MALFORMED_CALL: lambda d: f"  ✘ malformed call of {d['tool']}: {d['message']}",
    Action.PROPOSAL_CREATED: _proposal,
    Action.PROPOSAL_APPROVED: _approved,
    Action.PROPOSAL_REJECTED: _decided("✘", "rejected", "reason"),
    Action.PROPOSAL_DISCUSSED: _decided("…", "discussed", "words"),
    Action.PROPOSAL_EXPIRED: lambda _: "  ✘ nobody decided before the deadline",
    Action.ACTION_DISPATCHED: lambda detail: f"  ▶ {detail['title']}",
    Action.ACTION_CONFIRMED: lambda detail: f"  ✔ {detail['summary']}",
    Action.ACTION_RETRIED: lambda d: f"  ↻ {d['message']}; trying again in {d['wait_s']:g} s",
    Action.ACTION_FAILED: lambda detail: f"  ✘ {detail['message']}",
    Action.ACTION_UNCERTAIN: lambda detail: f"  ? uncertain: {detail['message']}",
    Action.ACTION_REFUSED: lambda d: f"  ✘ {d['tool']} refused by {d['guard']}: {d['message']}",
}
