"""A session's journal as text to read from top to bottom, for headless output and reports.

What others wrote stands behind a bar on each line: only lines of cockpit's own begin elsewhere. Lines are not
cleaned for a terminal; the caller that prints them does that.
"""

from __future__ import annotations

from msgspec import UNSET

from cockpit.loop.views.event_text import EventLine, event_line, name_speaker
from cockpit.loop.views.quoted_text import BarredText, bar_text, cut_columns
from cockpit.store.journal.details import agent_turns, agents, proposals, sessions, waves
from cockpit.store.journal.journal import Row

_LEFT_OUT = (
    waves.PacketVerified,
    waves.FactPinned,
    waves.FeedbackRecorded,
    sessions.SessionChanged,
    proposals.ActionQueued,
)
_AGENT_LINES = (
    agents.RunnerStarted,
    agents.RunnerToolEnded,
    agents.RunnerNoted,
    agent_turns.RunnerTurn,
    agent_turns.RunnerThought,
    agent_turns.RunnerPlan,
    agent_turns.RunnerFileWritten,
)
"""What the story of an external agent's own session tells; that of a chain tells none of it."""


def returning(detail: waves.WaveStarted) -> str:
    """Return why a wave goes back to Orient, to follow its number; '' where it does not."""
    return f" · {detail.returns}" if detail.returns is not UNSET else ""


class Storyteller:
    """Turns rows, in the order of the journal, into text to print as it is.

    An agent's text comes as it streams. When a message's fragments were removed before they were read,
    the rest of the message follows with its last row. ``hints`` adds the command that shows a proposal
    that waits for the user, ``agents`` what an external agent does. ``width`` is that of the terminal that
    the text is for; 0 where it is for none. Without ``signs`` it is in words only, for a reader that speaks.
    """

    def __init__(
        self, *, hints: bool = True, agents: bool = False, width: int = 0, signs: bool = True
    ) -> None:
        self._hints = hints
        self._signs = signs
        self._agents = agents
        self._width = width
        self._bar = BarredText(width)
        self._pending: list[str] = []
        self._streaming = ""
        self._streamed = ""
        self._assigned = ""
        """The role of a chain's session until the message that gives it its task."""

    def tell(self, row: Row) -> str:
        """Return the text that this row adds; ``""`` for a row without text."""
        detail = row.detail
        match detail:
            case sessions.MessageDelta():
                return self._delta(detail)
            case sessions.MessageCompleted():
                return self._message(detail)
            case proposals.ProposalCreated():
                self._pending.append(detail.proposal_id)
            case proposals.ProposalDecided() if detail.proposal_id in self._pending:
                self._pending.remove(detail.proposal_id)
        line = self._behind_bar(self._line(row))
        return f"{self._end_stream()}{line}\n" if line else ""

    def _line(self, row: Row) -> str:
        detail = row.detail
        match detail:
            case sessions.SessionWaiting():
                return self._waiting(detail)
            case sessions.SessionCreated():
                self._assigned = detail.role
                return f"{detail.task_type} · {detail.title} · {detail.model}"
            case waves.WaveStarted() if self._agents:
                return ""  # an action over its worktree has a wave of its own; the agent has turns
            case waves.WaveStarted():
                return f"{self._rule}wave {detail.ordinal}{returning(detail)}"
            case waves.WaveReentered():
                return f"{self._rule}wave {detail.ordinal}, resumed"
            case proposals.ProposalCreated():
                line = event_line(detail)
                return self._plain(EventLine("?", line.text if line else detail.title))
            case _ if isinstance(detail, _LEFT_OUT):
                return ""
            case _ if row.action.startswith("runner.") and not (
                self._agents and isinstance(detail, _AGENT_LINES)
            ):
                return ""
        line = event_line(detail)
        if line is None:
            return ""
        return self._plain(line, "" if isinstance(detail, sessions.SessionEntered) else "  ")

    @property
    def _rule(self) -> str:
        return "── " if self._signs else ""

    def _plain(self, line: EventLine, indent: str = "  ") -> str:
        return line.plain(indent) if self._signs else line.words(indent)

    def _waiting(self, detail: sessions.SessionWaiting) -> str:
        if detail.for_ != "proposal" or not self._pending or not self._hints:
            return ""
        return f"  ⏸ waits for you: cockpit proposals {self._pending[-1]}"

    def _delta(self, detail: sessions.MessageDelta) -> str:
        text = detail.text
        if detail.message_id != self._streaming:
            heading = f"{self._end_stream()}{name_speaker('agent')}\n"
            self._streaming, self._streamed = detail.message_id, text
            self._bar = BarredText(self._width)
            return heading + self._bar.feed(text)
        self._streamed += text
        return self._bar.feed(text)

    def _message(self, detail: sessions.MessageCompleted) -> str:
        text = detail.text
        end = " … (interrupted)\n" if detail.interrupted else "\n"
        if detail.message_id == self._streaming:
            streamed, self._streaming, self._streamed = self._streamed, "", ""
            if text.startswith(streamed):
                return self._bar.feed(text[len(streamed) :]) + end
            # Masking the whole message changed its beginning: print it all.
            return f"\n{bar_text(text, self._width)}{end}"
        if not text and not detail.interrupted:
            return ""
        speaker = name_speaker(detail.role, self._assigned if detail.role == "person" else "")
        if detail.role == "person":
            self._assigned = ""
        return f"{self._end_stream()}{speaker}\n{bar_text(text, self._width)}{end}"

    def _end_stream(self) -> str:
        """Return a line end when another event interrupts a message that still streams."""
        if not self._streaming:
            return ""
        self._streaming, self._streamed = "", ""
        return "\n"

    def _behind_bar(self, line: str) -> str:
        """Keep an event one line: what others wrote in it goes on behind a bar, and passes for no event."""
        first, *rest = [part for part in line.splitlines() if part.strip()] or [""]
        rows = [*cut_columns(first, self._width)] if self._width else [first]
        lines = [rows[0], *(f"  ┆ {row}" for row in rows[1:])]
        return "\n".join([*lines, *(bar_text(part, self._width, indent="  ") for part in rest)])
