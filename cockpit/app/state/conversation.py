"""One session's conversation folded from the journal: messages, decisions and actions, in order."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, field

from cockpit.app.state.agent_state import merge_choice, value_name
from cockpit.app.state.tool_lines import CallLines, draw_call, draw_plan
from cockpit.loop.views.event_text import EventLine, event_line, list_items, name_speaker
from cockpit.store.journal.details import agent_turns, agents, proposals, sessions, waves
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.journal import Row
from widgets.views import LineView, TurnView

Role = Literal["person", "agent", "thought", "tool", "wave", "note", "error"]

_PHASES = {
    "observing": "observe",
    "orienting": "orient",
    "deciding": "decide",
    "acting": "act",
    "learning": "learn",
}
_TEXT_MOST = 400
"""Characters of a line that the screen shows."""


class _Turn(Struct):
    key: str
    place: float
    role: Role
    text: str = ""
    lines: list[LineView] = field(default_factory=list)
    streaming: bool = False
    interrupted: bool = False
    before: str = ""
    speaker: str = ""
    rows: list[int] = field(default_factory=list)
    """The journal rows that it was made of, without fragments of streamed text."""

    def view(self) -> TurnView:
        return TurnView(
            self.key,
            self.role,
            self.text,
            tuple(self.lines),
            self.streaming,
            self.interrupted,
            folded=self.role in ("thought", "tool"),
            before=self.before,
            speaker=self.speaker,
        )


class RunningAction(msgspec.Struct, frozen=True):
    """An action that runs now."""

    action_id: str
    type: str
    title: str
    at: str
    """When it began."""


class _Slot(msgspec.Struct, frozen=True):
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
        self._titles: dict[str, str] = {}
        """What the proposals that wait are about, by their ids; it is drawn once they are decided."""
        self._opening = ""
        self._assigned = False
        self._choices: dict[str, agent_turns.RunnerChoices] = {}
        self._agent = ""
        self._agent_turns = 0
        self._agent_works = False
        self._row = 0
        self.running: dict[str, RunningAction] = {}
        """The actions that run now, by id."""

    def rows_of(self, key: str) -> tuple[int, ...]:
        """Return the seqs of the journal rows that a turn was made of."""
        turn = self._turns.get(key)
        return tuple(turn.rows) if turn is not None else ()

    def find_turns(self, role: Role) -> tuple[str, ...]:
        """Return the keys of the turns with a role, in order."""
        turns = sorted(self._turns.values(), key=lambda turn: turn.place)
        return tuple(turn.key for turn in turns if turn.role == role)

    def find_proposals(self) -> tuple[str, ...]:
        """Return the keys of the turns that proposals stand in, in order, each once."""
        slots = [slot for name, slot in self._slots.items() if name.startswith("p:")]
        return tuple(dict.fromkeys(slot.turn.key for slot in slots))

    def changed(self, since: int = 0) -> tuple[TurnView, ...]:
        """Turns that are new or different since revision ``since``."""
        turns = []
        for key in reversed(self._touched):
            if self._touched[key] <= since:
                break
            turns.append(self._turns[key])
        return tuple(turn.view() for turn in sorted(turns, key=lambda turn: turn.place))

    def apply(self, row: Row) -> None:
        """Fold one row of this session; a row without a line changes nothing."""
        detail = row.detail
        self._row = 0 if isinstance(detail, sessions.MessageDelta) else row.seq
        self._note_running(row, detail)
        match detail:
            case sessions.MessageStarted() | sessions.MessageDelta() | sessions.MessageCompleted():
                self._message(row, detail)
            case waves.WaveCreated() | waves.WaveMoved() if self._agent:
                return  # an action over its worktree has a wave of its own; the agent has turns
            case waves.WaveCreated():
                self._wave(row, detail.ordinal, "")
            case waves.WaveMoved():
                self._wave(row, detail.ordinal, _PHASES.get(detail.phase, ""))
                if isinstance(detail, waves.WaveStarted) and detail.returns is not UNSET:
                    self._note(row, EventLine("↩", str(detail.returns), "warn"))
            case waves.WaveReentered():
                self._wave(row, detail.ordinal, "resumed")
            case waves.WaveFailed():
                self._wave(row, detail.ordinal, "failed")
                self._error(row, detail.message or "The wave failed.")
            case sessions.SessionCreated():
                self._opening = detail.words
                self._agent = detail.agent if isinstance(detail.agent, str) else ""
                if self._opening:
                    turn = self._open(f"s:{row.seq}", "person", self._opening)
                    turn.speaker = name_speaker("person", detail.role)
                    self._assigned = bool(detail.role)
            case sessions.SessionFailed():
                self._error(row, detail.message or "The session failed.")
            case waves.ModelThought():
                self._thought(row, detail)
            case agent_turns.RunnerThought():
                self._open(f"t:{row.seq}", "thought", detail.text)
            case agents.RunnerToolStarted(kind=str()) | agents.RunnerToolEnded(kind=str()):
                self._draw_call(detail, draw_call(detail))
            case agent_turns.RunnerToolUpdated():
                self._update_call(row, detail)
            case agent_turns.RunnerPlan():
                self._draw_plan(detail)
            case agent_turns.RunnerChoices():
                self._choose(row, detail)
            case agent_turns.RunnerTurn():
                self._agent_turn(row, detail)
            case proposals.ProposalCreated():
                self._proposed(row, detail)
            case proposals.ProposalDecided():
                self._decided(row, detail)
            case waves.ContextRequested(auto=False):
                return  # the proposal of the request is drawn
            case waves.ModelCompleted():
                # The header shows the tokens. The next failure is that of another call.
                self._slots.pop(f"r:{row.wave_id}", None)
            case waves.FeedbackRecorded() if row.actor != "person":
                return  # What the engine measures is not shown as the user's verdict.
            case _:
                self._line(row, detail)

    def _line(self, row: Row, detail: Detail) -> None:
        """Draw the event's line, in the place of an earlier line about the same thing."""
        line = event_line(detail)
        if line is None:
            return
        slot = _slot(row, detail)
        if slot:
            self._rewrite(slot, row, line)
        else:
            self._note(row, line)
        for below in line.below:
            self._note(row, below)

    def _note_running(self, row: Row, detail: Detail) -> None:
        match detail:
            case proposals.ActionDispatched():
                self.running[detail.action_id] = RunningAction(
                    detail.action_id, detail.type, detail.title, row.at
                )
            case proposals.ActionQueued():
                return
            case proposals.OfAction():
                self.running.pop(detail.action_id, None)

    def _touch(self, turn: _Turn) -> None:
        if self._row and self._row not in turn.rows[-1:]:
            turn.rows.append(self._row)
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

    def _note(self, row: Row, line: EventLine, slot: str = "") -> None:
        """Add a line below the last wave or note; with ``slot`` later rows can rewrite it."""
        turn = self._last
        if turn is None or turn.role not in ("note", "wave"):
            turn = self._open(f"n:{row.seq}", "note")
        turn.lines.append(_view(line))
        self._touch(turn)
        if slot:
            self._slots[slot] = _Slot(turn, len(turn.lines) - 1)

    def _rewrite(self, slot: str, row: Row, line: EventLine) -> None:
        earlier = self._slots.get(slot)
        if earlier is None:
            self._note(row, line, slot)
            return
        earlier.turn.lines[earlier.index] = _view(line)
        self._touch(earlier.turn)

    def _error(self, row: Row, message: str) -> None:
        last = self._last
        if last is not None and last.role == "error" and last.text == message:
            return  # The wave and the session fail with the message of the call that failed.
        self._open(f"e:{row.seq}", "error", message)

    def _message(
        self,
        row: Row,
        detail: sessions.MessageStarted | sessions.MessageDelta | sessions.MessageCompleted,
    ) -> None:
        key = f"m:{detail.message_id}"
        match detail:
            case sessions.MessageStarted():
                turn = self._open(key, "agent")
                turn.text, turn.streaming, turn.interrupted = "", True, False
            case sessions.MessageDelta():
                turn = self._open(key, "agent")
                turn.text += detail.text
                turn.streaming = True
            case sessions.MessageCompleted(role="notice"):
                # It is addressed to the user: guidance, a refusal, what was left out.
                self._note(row, EventLine("·", detail.text, "accent"))
            case sessions.MessageCompleted():
                self._complete(key, "person" if detail.role == "person" else "agent", detail)

    def _thought(self, row: Row, detail: waves.ModelThought) -> None:
        """Show it above the answer that it led to, which was streamed before the thought was whole."""
        answer = self._last
        turn = self._open(f"t:{row.seq}", "thought", detail.text)
        if answer is not None and answer.role == "agent" and answer.streaming:
            turn.place, turn.before = answer.place - 0.5, answer.key
            self._last = answer
        if not detail.kept:
            turn.lines.append(LineView("·", "not sent back: it may hold a secret"))

    def _complete(self, key: str, role: Role, detail: sessions.MessageCompleted) -> None:
        if role == "person" and self._opening and detail.text == self._opening:
            self._opening = ""
            return  # The turn that opened the session shows this text already.
        if role == "person" and self._assigned:
            self._assigned = False
            return  # The task's name: the header has it, and the turn above what there is to do.
        turn = self._open(key, role)
        turn.text, turn.streaming = detail.text, False
        turn.interrupted = detail.interrupted
        if role == "person" and self._agent_works:
            turn.lines = [LineView("…", "queued: the agent gets it after this turn")]

    def _draw_call(
        self, detail: agents.RunnerToolStarted | agents.RunnerToolEnded, call: CallLines
    ) -> None:
        """Draw a tool call of an external agent as a block of its own, which later rows rewrite."""
        turn = self._open(_call_key(detail.run, detail.call_id), "tool")
        turn.lines, turn.text = list(call.lines), call.text

    def _update_call(self, row: Row, detail: agent_turns.RunnerToolUpdated) -> None:
        turn = self._turns.get(_call_key(detail.run, detail.call_id))
        if turn is None or not turn.lines:
            self._line(row, detail)
            return
        first = turn.lines[0]
        kind, sign, _ = first.text.partition(" · ")
        title = f"{kind}{sign}{detail.title}" if sign else detail.title
        turn.lines[0] = LineView(first.sign, title[:_TEXT_MOST], first.tone, first.right)
        turn.text = detail.output
        self._touch(turn)

    def _draw_plan(self, detail: agent_turns.RunnerPlan) -> None:
        """Draw the agent's plan, whole, in the place where this turn's plan came first."""
        turn = self._open(f"plan:{detail.run}:{self._agent_turns}", "tool")
        turn.lines = list(draw_plan(detail))

    def _choose(self, row: Row, detail: agent_turns.RunnerChoices) -> None:
        """Say that a mode, a model or an option has another value; the header has the first one."""
        before = self._choices.get(detail.kind)
        now = self._choices[detail.kind] = merge_choice(before, detail)
        if before is not None and before.current != now.current:
            self._note(row, EventLine("·", f"{now.name or now.kind} is now {value_name(now)}"))

    def _agent_turn(self, row: Row, detail: agent_turns.RunnerTurn) -> None:
        """Take the mark off the messages that are sent now."""
        self._agent_works = not detail.end
        if not detail.end:
            self._agent_turns += 1
            for message_id in detail.message_ids:
                turn = self._turns.get(f"m:{message_id}")
                if turn is not None and turn.lines:
                    turn.lines = []
                    self._touch(turn)
        self._line(row, detail)

    def _wave(self, row: Row, ordinal: int, phase: str) -> None:
        turn = self._open(f"w:{row.wave_id or ordinal}", "wave")
        turn.text = f"wave {ordinal} · {phase}" if phase else f"wave {ordinal}"

    def _proposed(self, row: Row, detail: proposals.ProposalCreated) -> None:
        line = event_line(detail)
        if line is None:
            return
        items = detail.shown().items
        self._titles[detail.proposal_id] = (
            f"{line.text}: {list_items(items)}" if items else line.text
        )
        # What waits stands in the proposals pane, once: here only that something does.
        text = line.text.removesuffix(f" · {detail.title}")
        self._rewrite(f"p:{detail.proposal_id}", row, msgspec.structs.replace(line, text=text))

    def _decided(self, row: Row, detail: proposals.ProposalDecided) -> None:
        """Show the decision beside the proposal, and its reason below."""
        slot = f"p:{detail.proposal_id}"
        decision = event_line(detail)
        if decision is None:
            return
        earlier = self._slots.get(slot)
        sign, text = ("?", f"{detail.kind} proposal")
        if earlier is not None:
            sign, text = earlier.line.sign, earlier.line.text
        text = self._titles.pop(detail.proposal_id, text)
        self._rewrite(slot, row, EventLine(sign, text, decision.tone, decision.text))
        if detail.status == "rejected" and detail.reason:
            self._note(row, EventLine(" ", detail.reason))


def _slot(row: Row, detail: Detail) -> str:
    """Name the line that this event rewrites and later events of the same thing rewrite again."""
    match detail:
        case proposals.OfAction():
            return f"a:{detail.action_id}"
        case waves.ContextFetched():
            return f"c:{detail.request_id}"
        case waves.ModelRetried():
            return f"r:{row.wave_id}"
        case waves.PacketCompiled():
            return f"k:{row.wave_id}"
        case (
            agents.RunnerToolStarted() | agents.RunnerToolEnded() | agent_turns.RunnerToolUpdated()
        ):
            # A later run of the agent numbers its calls from the beginning again.
            return f"t:{detail.run}:{detail.call_id}"
        case _:
            return ""


def _call_key(run: int, call_id: str) -> str:
    return f"call:{run}:{call_id}"


def _view(line: EventLine) -> LineView:
    return LineView(line.sign, line.text[:_TEXT_MOST], line.tone, line.remark)
