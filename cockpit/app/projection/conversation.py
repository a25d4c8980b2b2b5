"""One session's conversation folded from the journal: what was said, decided and done, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cockpit.app.projection import row_detail as read
from cockpit.app.projection.external_agents import outside_line
from cockpit.core.text import pluralize
from cockpit.store.journal.journal import Row
from widgets.text.numerals import tokens
from widgets.views import LineView, TurnView

Role = Literal["person", "agent", "wave", "note", "error"]
Tone = Literal["dim", "good", "bad", "warn", "accent"]

_PHASES = {
    "wave.created": "",
    "wave.started": "observe",
    "wave.observed": "orient",
    "wave.oriented": "decide",
    "wave.decided": "act",
    "wave.acted": "learn",
    "wave.completed": "",
}
_ITEMS_MOST = 6
_SUMMARY_MOST = 400


@dataclass(slots=True)
class _Turn:
    key: str
    place: int
    role: Role
    text: str = ""
    lines: list[LineView] = field(default_factory=list)
    streaming: bool = False
    interrupted: bool = False

    def view(self) -> TurnView:
        return TurnView(
            self.key, self.role, self.text, tuple(self.lines), self.streaming, self.interrupted
        )


@dataclass(frozen=True, slots=True)
class _Slot:
    """A line that later rows rewrite: the fate of a proposal, the end of an action."""

    turn: _Turn
    index: int

    @property
    def line(self) -> LineView:
        return self.turn.lines[self.index]


class Conversation:
    """The turns of one session. ``revision`` grows with every change; :meth:`changed` gives the
    turns that changed after one, oldest first."""

    def __init__(self) -> None:
        self.revision = 0
        self._turns: dict[str, _Turn] = {}
        self._touched: dict[str, int] = {}
        self._last: _Turn | None = None
        self._slots: dict[str, _Slot] = {}
        self._opening = ""

    def changed(self, since: int = 0) -> tuple[TurnView, ...]:
        """Turns that are new or different since revision ``since``."""
        found = []
        for key in reversed(self._touched):
            if self._touched[key] <= since:
                break
            found.append(self._turns[key])
        return tuple(turn.view() for turn in sorted(found, key=lambda turn: turn.place))

    def apply(self, row: Row) -> None:
        """Fold one row of this session; rows that nobody reads here change nothing."""
        action = row.action
        if action.startswith("message."):
            self._message(row)
        elif action.startswith("wave."):
            self._wave(row)
        elif action.startswith("proposal."):
            self._proposal(row)
        elif action.startswith("action."):
            self._action(row)
        elif action.startswith("context."):
            self._context(row)
        elif action.startswith("session."):
            self._session(row)
        elif action.startswith("model."):
            self._model(row)
        elif action.startswith("runner.") and (told := outside_line(row)) is not None:
            self._rewrite(told[0], row, told[1])
        elif action == "orientation.packet.compiled":
            self._packet(row)
        elif action == "feedback.recorded":
            self._feedback(row)
        elif action in ("fact.pinned", "fact.unpinned"):
            word = action.removeprefix("fact.")
            wave = read.number(row.raw_detail(), "from_wave")
            text = f"{word} {read.text(row.raw_detail(), 'source_ref')}"
            self._note(row, "◆" if word == "pinned" else "◇", text, right=f"from wave {wave}")
        elif action == "orientation.packet.replay_verified" and not read.truth(
            row.raw_detail(), "ok"
        ):
            self._note(row, "✗", "the packet does not compile to the same bytes again", "bad")

    def _feedback(self, row: Row) -> None:
        """Only the person's own verdict: what the engine measures is not said to them."""
        said = read.inner(row.raw_detail(), "operator")
        verdict, words = read.text(said, "verdict"), read.text(said, "words")
        if row.actor != "person" or not verdict:
            return
        wave = read.number(row.raw_detail(), "ordinal")
        text = f"wave {wave} was {verdict}" + (f": {words}" if words else "")
        good = verdict == "good"
        self._note(row, "+" if good else "−", text, "good" if good else "warn", "you")

    def _touch(self, turn: _Turn) -> None:
        self.revision += 1
        self._touched.pop(turn.key, None)
        self._touched[turn.key] = self.revision

    def _open(self, key: str, role: Role, text: str = "") -> _Turn:
        turn = self._turns.get(key)
        if turn is None:
            turn = _Turn(key, len(self._turns), role, text)
            self._turns[key] = turn
            self._last = turn
        self._touch(turn)
        return turn

    def _note(
        self, row: Row, sign: str, text: str, tone: Tone = "dim", right: str = "", slot: str = ""
    ) -> None:
        """A line below the last wave or note; with ``slot`` later rows can rewrite it."""
        turn = self._last
        if turn is None or turn.role not in ("note", "wave"):
            turn = self._open(f"n:{row.seq}", "note")
        turn.lines.append(LineView(sign, text, tone, right))
        self._touch(turn)
        if slot:
            self._slots[slot] = _Slot(turn, len(turn.lines) - 1)

    def _rewrite(self, slot: str, row: Row, line: LineView) -> None:
        found = self._slots.get(slot)
        if found is None:
            self._note(row, line.sign, line.text, line.tone, line.right, slot)
            return
        found.turn.lines[found.index] = line
        self._touch(found.turn)

    def _error(self, row: Row, message: str) -> None:
        last = self._last
        if last is not None and last.role == "error" and last.text == message:
            return  # the wave and the session fail with the words of the call that failed
        self._open(f"e:{row.seq}", "error", message)

    def _message(self, row: Row) -> None:
        detail = row.raw_detail()
        identity = read.text(detail, "message_id")
        key = f"m:{identity}"
        text = read.text(detail, "text")
        if row.action == "message.started":
            turn = self._open(key, "agent")
            turn.text, turn.streaming, turn.interrupted = "", True, False
        elif row.action == "message.delta":
            turn = self._open(key, "agent")
            turn.text += text
            turn.streaming = True
        elif read.text(detail, "role") == "notice":
            self._note(row, "·", text)
        else:
            self._said(key, "person" if read.text(detail, "role") == "person" else "agent", row)

    def _said(self, key: str, role: Role, row: Row) -> None:
        text = read.text(row.raw_detail(), "text")
        if role == "person" and self._opening and text == self._opening:
            self._opening = ""
            return  # the words that opened the session stand there already
        turn = self._open(key, role)
        turn.text, turn.streaming = text, False
        turn.interrupted = read.truth(row.raw_detail(), "interrupted")

    def _wave(self, row: Row) -> None:
        ordinal = read.number(row.raw_detail(), "ordinal")
        turn = self._open(f"w:{row.wave_id or ordinal}", "wave")
        if row.action == "wave.failed":
            turn.text = f"wave {ordinal} · failed"
            self._error(row, read.text(row.raw_detail(), "message") or "The wave failed.")
            return
        phase = "again" if row.action == "wave.reentered" else _PHASES.get(row.action, "")
        turn.text = f"wave {ordinal} · {phase}" if phase else f"wave {ordinal}"

    def _packet(self, row: Row) -> None:
        detail = row.raw_detail()
        facts, dropped = read.number(detail, "facts"), read.number(detail, "dropped")
        text = f"packet {read.text(detail, 'digest')[:8]} · {facts:,} facts"
        if dropped:
            text += f" · {dropped:,} dropped"
        used = tokens(read.number(detail, "token_used"))
        self._rewrite(f"k:{row.wave_id}", row, LineView("◇", text, "dim", f"{used} tok"))

    def _proposal(self, row: Row) -> None:
        detail = row.raw_detail()
        slot = f"p:{read.text(detail, 'proposal_id')}"
        by = read.text(detail, "decided_by")
        who = "you" if by == "person" else by
        if row.action == "proposal.created":
            self._proposed(row, slot)
            return
        found = self._slots.get(slot)
        text = found.line.text if found else f"{read.text(detail, 'kind')} proposal"
        sign = found.line.sign if found else "?"
        reason = read.text(detail, "reason")
        if row.action == "proposal.approved":
            kept = read.words(detail, "narrowed")
            how = f"narrowed to {len(kept)}" if kept else "approved"
            how = f"{how}, edited" if read.truth(detail, "edited") else how
            self._rewrite(slot, row, LineView(sign, text, "good", f"{how} ⏎ {who}"))
        elif row.action == "proposal.discussed":
            self._rewrite(slot, row, LineView(sign, text, "warn", f"discussed esc {who}"))
        elif row.action == "proposal.rejected":
            self._rewrite(slot, row, LineView(sign, text, "bad", f"rejected ✗ {who}"))
            if reason:
                self._note(row, " ", reason)
        else:
            self._rewrite(slot, row, LineView(sign, text, "warn", "expired"))

    def _proposed(self, row: Row, slot: str) -> None:
        detail, body = row.raw_detail(), read.inner(row.raw_detail(), "body")
        items = read.entries(body, "items")
        title = read.text(detail, "title")
        if read.text(detail, "kind") == "context":
            total = sum(read.number(item, "tokens") for item in items)
            count = pluralize(len(items), "item")
            text = f"context request  {count} · {tokens(total)} tok"
        else:
            text = title
        revised = "revised, " if read.text(detail, "revises") else ""
        self._rewrite(slot, row, LineView("?", text, "accent", f"{revised}waits for you"))
        if items:
            self._note(row, " ", _listed(items))

    def _action(self, row: Row) -> None:
        detail = row.raw_detail()
        slot = f"a:{read.text(detail, 'action_id')}"
        title = read.text(detail, "title") or read.text(detail, "type")
        message = read.text(detail, "message")
        match row.action:
            case "action.dispatched":
                attempt = read.number(detail, "attempt")
                right = f"attempt {attempt}" if attempt > 1 else "running"
                self._rewrite(slot, row, LineView("▶", title, "warn", right))
            case "action.confirmed":
                summary = read.text(detail, "summary")[:_SUMMARY_MOST]
                self._rewrite(slot, row, LineView("✔", summary or title, "good"))
            case "action.retried":
                self._rewrite(slot, row, LineView("↻", f"{title}: {message}", "warn"))
            case "action.failed":
                self._rewrite(slot, row, LineView("✗", f"{title}: {message}", "bad", "failed"))
            case "action.uncertain":
                self._rewrite(slot, row, LineView("?", f"{title}: {message}", "warn", "uncertain"))
            case "action.refused":
                guard = read.text(detail, "guard")
                right = f"guard {guard}" if guard else ""
                self._note(row, "✗", f"refused: {message}", "warn", right)

    def _context(self, row: Row) -> None:
        detail = row.raw_detail()
        slot = f"c:{read.text(detail, 'request_id')}"
        items = read.entries(detail, "items")
        if row.action == "context.requested":
            if not read.truth(detail, "auto"):
                return  # its proposal is drawn
            name = row.actor.removeprefix("task_type:").removeprefix("policy:")
            self._note(row, "↳", f"context by {name}  {_listed(items)}")
        elif row.action == "context.fetched":
            facts, cost = read.number(detail, "facts"), read.number(detail, "tokens")
            new = read.number(detail, "new") if "new" in detail else facts
            text = f"fetched {pluralize(facts, 'fact')}"
            if not new and not any(read.text(item, "error") for item in items):
                text = "already in this session"
            elif new < facts:
                text += f", {facts - new:,} of them already in this session"
            self._rewrite(
                slot, row, LineView("↳", text, "dim", f"{tokens(cost)} tok" if new else "")
            )
            for item in items:
                if error := read.text(item, "error"):
                    self._note(row, "✗", f"{read.text(item, 'item')}: {error}", "warn")
        elif row.action == "context.refused":
            self._note(row, "✗", f"request refused: {read.text(detail, 'message')}", "warn")

    def _session(self, row: Row) -> None:
        detail = row.raw_detail()
        match row.action:
            case "session.created":
                self._opening = read.text(detail, "words")
                if self._opening:
                    self._open(f"s:{row.seq}", "person", self._opening)
            case "session.completed":
                status, summary = read.text(detail, "status"), read.text(detail, "summary")
                good = status == "done"
                text = f"{status or 'ended'}: {summary}" if summary else status or "ended"
                self._note(row, "✔" if good else "■", text, "good" if good else "warn")
            case "session.failed":
                self._error(row, read.text(detail, "message") or "The session failed.")
            case "session.stopped":
                reason = read.text(detail, "reason")
                self._note(row, "■", f"stopped: {reason}" if reason else "stopped", "warn")
            case "session.changed":
                for name in ("policy", "model", "task_type"):
                    if name in detail:
                        label = name.replace("_", " ")
                        self._note(row, "·", f"{label} is now {read.text(detail, name)}")

    def _model(self, row: Row) -> None:
        detail = row.raw_detail()
        message = read.text(detail, "message")
        if row.action == "model.retried":
            wait = read.real(detail, "wait_s")
            again = f"again in {wait:g}s" if wait is not None else "again"
            self._note(row, "↻", f"{read.text(detail, 'reason')}", "warn", again)
        elif row.action == "model.failed":
            self._error(row, message or "The model failed.")
        elif row.action == "model.malformed_call":
            self._note(row, "✗", f"malformed {read.text(detail, 'tool')} call: {message}", "warn")


def _listed(items: tuple[read.Detail, ...]) -> str:
    names = [read.text(item, "item") for item in items]
    shown = " · ".join(names[:_ITEMS_MOST])
    rest = len(names) - _ITEMS_MOST
    return f"{shown} · {rest} more" if rest > 0 else shown
