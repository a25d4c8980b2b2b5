"""The wording of journal events, the same on the screen, in headless output and in transcripts.

One function words an event as an :class:`EventLine`; the screen draws its parts in columns and headless
output prints them in one line. See ``docs/reference/journal.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from cockpit.core.text import format_total, pluralize
from cockpit.loop.reentry.kept_actions import EVIDENCE, MOST_RETURNS
from cockpit.loop.views.estimate_text import basis_text, expected_text, unit_text
from cockpit.loop.views.state_signs import Kind, Tone, state_sign
from cockpit.store.journal.details import (
    agent_turns,
    agents,
    estimates,
    evolution,
    notes,
    profiles,
    proposals,
    reentry,
    sessions,
    skills,
    tools,
    trust,
    waves,
)
from cockpit.store.journal.details.detail import Detail
from cockpit.store.sessions.context_requests import FRAME_PURPOSE, NAMED_PURPOSE
from cockpit.store.sessions.proposals import EDITED
from cockpit.store.sessions.session_states import session_state
from cockpit.store.sessions.sessions import model_for_people

_LISTED_ITEMS = 6
_SAYS_FAILED = ("failed", "rejected", "refused", "blocked")


class EventLine(msgspec.Struct, frozen=True):
    """An event in words."""

    sign: str
    """One character that shows the kind of result."""
    text: str
    """What happened."""
    tone: Tone = "dim"
    """How the line is coloured on the screen."""
    remark: str = ""
    """A short addition: a cost, a number of tokens, a state."""
    below: tuple[EventLine, ...] = ()
    """Lines about parts of the event, for example items that could not be read."""

    def words(self, indent: str = "  ") -> str:
        """Return the line, and those below it, without signs: for a reader that speaks."""
        parts = [self.text, self.remark] if self.remark else [self.text]
        if self.tone == "bad" and not any(part.startswith(_SAYS_FAILED) for part in parts):
            parts[0] = f"failed: {parts[0]}"
        lines = [f"{indent}{', '.join(parts)}"]
        return "\n".join([*lines, *(line.words(f"{indent}  ") for line in self.below)])

    def plain(self, indent: str = "  ") -> str:
        """Return the line, and those below it, as plain text."""
        remark = f" · {self.remark}" if self.remark else ""
        lines = [f"{indent}{self.sign} {self.text}{remark}"]
        return "\n".join([*lines, *(line.plain(f"{indent}  ") for line in self.below)])


def name_speaker(role: str, assigned: str = "") -> str:
    """Return the heading of a message by its author's ``role``.

    ``assigned`` is the role of a chain's session, for the message that gives it its task: nobody typed that.
    """
    if role == "person" and assigned:
        return f"task for the {assigned.replace('_', ' ')}"
    return {"person": "you", "notice": "note"}.get(role, "agent")


def person_name(actor: str) -> str:
    """Return how text names who did something: the user is ``you``."""
    return "you" if actor == "person" else actor


def event_line(detail: Detail) -> EventLine | None:
    """Word an event; None for an event that has no line of its own.

    Messages, the phases of waves and the creation of a session are drawn by the surfaces themselves.
    """
    match detail:
        case sessions.SessionEntered() | sessions.SessionChanged() | sessions.SessionForked():
            return _session(detail)
        case sessions.SessionRewound():
            there = "came forward from" if detail.forward else "went back in"
            return EventLine(
                "↶", f"{there} {detail.source}", remark=pluralize(len(detail.files), "file")
            )
        case proposals.ProposalCreated():
            text = f"{detail.kind} · {detail.risk} risk · {detail.title}"
            if detail.kind == "permission":
                text = f"{detail.shown().agent or 'an agent'} asks · {detail.risk} risk · {detail.title}"
            revised = "revised, " if detail.revises else ""
            look = state_sign("proposal", "pending")
            return EventLine(look.sign, text, look.tone, f"{revised}{look.word}")
        case proposals.ProposalDecided():
            return _decision(detail)
        case proposals.OfAction() | proposals.ActionRefused():
            return _action(detail)
        case reentry.ActionKept():
            return _return(detail)
        case waves.ContextRequested() | waves.ContextFetched() | waves.ContextRefused():
            return _context(detail)
        case waves.PacketCompiled() | waves.PacketVerified():
            return _packet(detail)
        case tools.ToolsOffered():
            rare = [] if detail.rare is UNSET else [each.name for each in detail.rare]
            names = [*rare, *(each.tool_id.rpartition(":")[2] for each in detail.tools)]
            shown = " · ".join(names[:_LISTED_ITEMS]) or "none"
            rest = len(names) - _LISTED_ITEMS
            return EventLine(
                "◈", f"tools offered: {shown}", remark=f"{rest} more" if rest > 0 else ""
            )
        case waves.FactPinned():
            sign, verb = ("◆", "pinned") if detail.pinned else ("◇", "unpinned")
            from_wave = f"from wave {detail.from_wave}"
            return EventLine(sign, f"{verb} {detail.source_ref}", "dim", from_wave)
        case evolution.EvolutionTried():
            text = f"{detail.name or 'the tool'}: the {detail.step} is {detail.outcome}"
            return EventLine(
                "⚘", text, "good" if detail.outcome == "green" else "dim", f"round {detail.round}"
            )
        case evolution.EvolutionEnded():
            good = detail.outcome == "adopted"
            return EventLine("⚘", detail.reason, "good" if good else "warn", detail.outcome)
        case estimates.OfEstimate():
            return _estimate(detail)
        case notes.NoteChanged(change="proposed"):
            return EventLine("✎", f"note proposed: {detail.text}", "dim", detail.kind)
        case notes.NoteChanged(change="forgotten"):
            why = f": {detail.reason}" if detail.reason else ""
            return EventLine("✎", f"note forgotten{why}: {detail.text}", "dim", detail.kind)
        case skills.SkillChanged(status="loaded"):
            return EventLine(
                "✦", f"skill {detail.name}: {detail.why}", "dim", f"{detail.tokens:,} tokens"
            )
        case skills.SkillChanged(status="named"):
            return EventLine("✧", f"skill {detail.name} may fit, not loaded: {detail.why}", "dim")
        case skills.SkillChanged(status="unloaded"):
            return EventLine("✧", f"skill {detail.name} unloaded: {detail.why}", "dim")
        case waves.FeedbackRecorded(operator=waves.UserVerdict() as verdict) if verdict.verdict:
            good = verdict.verdict == "good"
            words = f": {verdict.words}" if verdict.words else ""
            text = f"wave {detail.ordinal} was {verdict.verdict}{words}"
            return EventLine("+" if good else "−", text, "good" if good else "warn", "you")
        case trust.OfRule():
            return _rule(detail)
        case profiles.ProfileEnded() if detail.how != "rolled_back":
            return _judged(detail)
        case waves.WaveFailed():
            return EventLine("✗", f"wave {detail.ordinal}: {detail.message}", "bad")
        case _:
            return _model(detail) or _runner(detail)


def list_items(items: Sequence[waves.ContextItem]) -> str:
    """Name the items of a context request, the first few of many."""
    names = [item.item for item in items]
    shown = " · ".join(names[:_LISTED_ITEMS])
    rest = len(names) - _LISTED_ITEMS
    return f"{shown} · {rest} more" if rest > 0 else shown


def _session(detail: Detail) -> EventLine | None:
    match detail:
        case sessions.SessionCompleted():
            return _state(
                "session", session_state("completed", detail.status or ""), detail.summary
            )
        case sessions.SessionFailed():
            return _state("session", "failed", detail.message or "no reason was recorded")
        case sessions.SessionStopped():
            return _state("session", "stopped", detail.reason)
        case sessions.SessionChanged():
            changes = {
                "policy": detail.policy,
                "model": model_for_people(detail.model or ""),
                "task type": detail.task_type,
            }
            lines = [f"{name} is now {value}" for name, value in changes.items() if value]
            return EventLine("·", "; ".join(lines)) if lines else None
        case sessions.SessionForked():
            text = f"forked from {detail.source} after wave {detail.wave}"
            shared = f"{pluralize(detail.messages, 'message')}, {pluralize(detail.facts, 'fact')}"
            return EventLine("⑂", text, remark=shared)
        case _:
            return None


def _state(kind: Kind, state: str, words: str | UnsetType) -> EventLine:
    """Word that something came to a state, and why."""
    look = state_sign(kind, state)
    text = f"{look.word}: {words}" if words else look.word
    return EventLine(look.sign, text, look.tone)


def _estimate(detail: estimates.OfEstimate) -> EventLine | None:
    match detail:
        case estimates.EstimateMade():
            now = "now " if detail.why else ""
            text = f"{now}{expected_text(detail.expected, _unit_of(detail))}"
            return EventLine("≈", text, "dim", detail.why or basis_text(detail.expected))
        case estimates.EstimateLearned(expected=estimates.Expected() as expected):
            low, high = expected.waves.low, expected.waves.high
            where = "within" if low <= detail.waves <= high else "outside"
            took = pluralize(detail.waves, _unit_of(detail))
            text = f"took {took}; expected about {round(expected.waves.likely):,}"
            return EventLine("≈", text, "dim", f"{where} the range of {low:g} to {high:g}")
        case _:
            return None


def _unit_of(detail: estimates.EstimateMade | estimates.EstimateLearned) -> str:
    return unit_text(detail.unit, detail.model or "")


def _rule(detail: trust.OfRule) -> EventLine | None:
    where = f" in {detail.task_type}" if detail.task_type else ""
    match detail:
        case trust.TrustChanged(status="offered"):
            what = "a short card" if detail.effect == "card" else "a rule"
            text = f"{what} can be accepted: {detail.says}{where}"
            return EventLine(
                "◇", text, "accent", f"{detail.approvals} approvals · {detail.rule_id}"
            )
        case trust.TrustChanged(status="accepted"):
            return EventLine("◆", f"rule accepted: {detail.says}{where}", "good", detail.rule_id)
        case trust.TrustUsed(effect="pass"):
            return EventLine("»", f"passed by rule: {detail.what}", "dim", detail.rule_id)
        case trust.TrustChanged(status="suspended"):
            text = f"rule suspended: {detail.says}{where}"
            return EventLine("◇", text, "warn", detail.why)
        case trust.TrustChanged():
            return EventLine("◇", f"rule revoked: {detail.says}{where}", "warn", detail.rule_id)
        case _:
            return None


def _judged(detail: profiles.ProfileEnded) -> EventLine:
    """Say how a temporary change of the profile ended, and what it gained."""
    is_kept = detail.how == "promoted"
    end = "kept" if is_kept else "reverted"
    before, during = detail.base_quality, detail.quality
    measured = "too few of its waves were judged"
    if before is not None and during is not None:
        waves_of = f"{pluralize(detail.judged_waves, 'wave')}, {detail.base_judged_waves} before"
        measured = f"decision quality {before:.2f} → {during:.2f} ({waves_of})"
    text = f"temporary profile change {end}: {measured}"
    return EventLine("↺", text, "good" if is_kept else "dim", f"version {detail.version}")


def _decision(detail: proposals.ProposalDecided) -> EventLine:
    by = f" by {person_name(detail.decided_by)}" if detail.decided_by else ""
    is_permission = detail.kind == "permission"
    verb = "allowed" if is_permission else "approved"
    look = state_sign("proposal", detail.status)
    match detail.status:
        case "approved":
            items = detail.narrowed
            narrowed = f", narrowed to {pluralize(len(items), 'item')}" if items else ""
            return EventLine(look.sign, f"{verb}{by}{narrowed}", look.tone)
        case "rejected":
            return EventLine(
                look.sign,
                f"{'refused' if is_permission else 'rejected'}{by}",
                look.tone,
                detail.reason,
            )
        case "discussed" if detail.reason == EDITED:
            look = state_sign("proposal", "edited")
            return EventLine(look.sign, f"edited{by}", look.tone)
        case "discussed":
            return EventLine(look.sign, f"discussed{by}", look.tone, detail.reason)
        case _ if detail.is_taken_back:
            return EventLine("·", f"withdrawn: {detail.reason or 'no longer asked for'}", "dim")
        case _:
            return EventLine(look.sign, "expired without a decision", look.tone)


def _action(detail: Detail) -> EventLine | None:
    match detail:
        case proposals.ActionDispatched():
            running = f"attempt {detail.attempt}" if detail.attempt > 1 else "running"
            return EventLine("▶", detail.title or detail.type, "warn", running)
        case proposals.ActionConfirmed():
            return EventLine("✔", detail.summary or detail.title or detail.type, "good")
        case proposals.ActionRetried():
            remark = f"again in {detail.wait_s:g} s"
            return EventLine("↻", _failure(detail, detail.message), "warn", remark)
        case proposals.ActionFailed():
            return EventLine("✗", _failure(detail, detail.message), "bad", "failed")
        case proposals.ActionUncertain():
            return EventLine("?", _failure(detail, detail.message), "warn", "uncertain")
        case proposals.ActionRefused():
            guard = f"guard {detail.guard}" if detail.guard else ""
            return EventLine("✗", f"{detail.tool} refused: {detail.message}", "warn", guard)
        case _:
            return None


def _return(detail: Detail) -> EventLine | None:
    match detail:
        case reentry.ActionKept(status="held", cause="discussed", items=()):
            return None  # the decision above says it
        case reentry.ActionKept(status="held"):
            again = f"{detail.times} of {MOST_RETURNS}" if detail.times else ""
            return EventLine("↩", f"kept: {detail.title}: {detail.why}", "warn", again)
        case reentry.ActionKept(status="resumed"):
            how = "as it was" if detail.how == "same" else "changed"
            return EventLine("↪", f"the kept action is resumed, {how}", "dim")
        case reentry.ActionKept():
            return EventLine("·", f"given up: {detail.title}: {detail.why}", "dim")
        case _:
            return None


def _failure(detail: proposals.OfAction, message: str) -> str:
    return f"{detail.title or detail.type}: {message}"


def _context(detail: Detail) -> EventLine | None:
    match detail:
        case waves.ContextRequested():
            how = "declared by the task type" if detail.auto else "requested"
            if detail.auto and detail.stored:
                how = "served again from stored facts"
            if detail.auto and detail.purpose in (EVIDENCE, NAMED_PURPOSE):
                how = "that you named"
            if detail.auto and detail.purpose == FRAME_PURPOSE:
                how = "that every task starts with"
            if detail.rule:
                how = f"fetched by attention rule {detail.rule}"
            text = f"context {how}: {list_items(detail.items)}"
            size = format_total(
                [
                    item.tokens if isinstance(item.tokens, int) else None
                    for item in detail.items
                    if not item.refused
                ]
            )
            remark = f"{pluralize(len(detail.items), 'item')}, {size}"
            refused = tuple(
                EventLine("✗", f"{item.item}: {item.refused}", "warn")
                for item in detail.items
                if item.refused
            )
            return EventLine("↳", text, "dim", remark, refused)
        case waves.ContextFetched():
            new = detail.new if isinstance(detail.new, int) else detail.facts
            failed = tuple(
                EventLine("✗", f"{item.item}: {item.error}", "warn")
                for item in detail.items
                if item.error
            )
            text = f"fetched {pluralize(detail.facts, 'fact')}"
            if not new and not failed:
                text = "already in this session"
            elif new < detail.facts:
                text += f", {detail.facts - new:,} of them already in this session"
            remark = f"{detail.tokens:,} tokens" if new else ""
            return EventLine("↳", text, "dim", remark, failed)
        case waves.ContextRefused():
            return EventLine("✗", f"context refused: {detail.message}", "warn")
        case _:
            return None


def _packet(detail: Detail) -> EventLine | None:
    match detail:
        case waves.PacketCompiled():
            dropped = f" · {detail.dropped:,} dropped" if detail.dropped else ""
            text = f"packet {detail.digest[:8]} · {pluralize(detail.facts, 'fact')}{dropped}"
            remark = f"{detail.sent:,} of {detail.token_budget:,} tokens"
            return EventLine("◇", text, "dim", remark)
        case waves.PacketVerified(ok=False):
            return EventLine("✗", "the packet does not compile to the same bytes again", "bad")
        case _:
            return None


def _model(detail: Detail) -> EventLine | None:
    match detail:
        case waves.ModelCompleted() if detail.input_tokens or detail.output_tokens:
            text = f"{detail.input_tokens:,} tokens in, {detail.output_tokens:,} out"
            return EventLine("↳", text, "dim", f"${detail.cost_usd:.4f}" if detail.cost_usd else "")
        case waves.ModelRetried():
            tries = f"failed {detail.attempt} times, " if detail.attempt > 1 else ""
            return EventLine("↻", detail.reason, "warn", f"{tries}again in {detail.wait_s:g} s")
        case waves.ModelMalformedCall():
            return EventLine("✗", f"malformed call of {detail.tool}: {detail.message}", "warn")
        case _:
            return None


def _runner(detail: Detail) -> EventLine | None:
    match detail:
        case agents.RunnerStarted():
            number = f"run {detail.number}" if detail.number > 1 else ""
            if not detail.sandbox or detail.sandbox == "bubblewrap":
                where = " in the sandbox" if detail.sandbox else ""
                return EventLine("↳", f"{detail.runner} runs this session{where}", "dim", number)
            words = f"{detail.runner} runs this session with all of your rights: {detail.sandbox}"
            return EventLine("↳", words, "warn", number)
        case agents.RunnerToolStarted():
            return EventLine("▶", detail.title, "warn", "running")
        case agents.RunnerToolEnded(failed=True):
            return EventLine("✗", f"{detail.title}: {detail.summary}", "bad", "failed")
        case agents.RunnerToolEnded():
            remark = "seen, not gated" if detail.gated is False else ""
            return EventLine("✔", detail.title, "good", remark)
        case agents.RunnerNoted():
            return EventLine("·", detail.message, "warn")
        case _:
            return _agent_turn(detail)


def _agent_turn(detail: Detail) -> EventLine | None:
    match detail:
        case agent_turns.RunnerTurn(end=""):
            text = f"told the agent: {detail.text}"
            return EventLine("→", text, "dim") if detail.text else None
        case agent_turns.RunnerTurn() if detail.end != "end_turn":
            reason = detail.end.replace("_", " ")
            text = f"{reason}: {detail.text}" if detail.text else reason
            look = state_sign("session", "paused")
            return EventLine(look.sign, f"the agent's turn ended: {text}", look.tone)
        case agent_turns.RunnerToolUpdated():
            return EventLine("▶", detail.title, "warn", "running")
        case agent_turns.RunnerThought():
            return EventLine("∴", " ".join(detail.text.split()), "dim", "thought")
        case agent_turns.RunnerPlan():
            ended = sum(step.status == "completed" for step in detail.steps)
            now = next((step.text for step in detail.steps if step.status == "in_progress"), "")
            text = f"plan: {ended} of {len(detail.steps)}" + (f" · {now}" if now else "")
            return EventLine("☰", text, "dim")
        case agent_turns.RunnerChoices():
            names = {choice.id: choice.name for choice in detail.choices or ()}
            return EventLine("·", f"{detail.kind}: {names.get(detail.current, detail.current)}")
        case agent_turns.RunnerFileRead():
            return EventLine("·", f"read {detail.path}:{detail.first}-{detail.last}")
        case agent_turns.RunnerFileWritten():
            return EventLine("✔", f"wrote {detail.path}", "good")
        case _:
            return None
