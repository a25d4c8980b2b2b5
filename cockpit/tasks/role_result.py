"""How a role's session ended: what it says, what its agent did, and what it was refused for good.

What an external agent was refused and neither got later nor did another way means that its work is not what
it set out to do: it never counts as done. See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import UNSET, Struct

from cockpit.agents.streams.final_status import OwnLine, own_lines
from cockpit.core.secrets import mask
from cockpit.loop.permissions.waiting_permission import KIND, SHOWN_ANEW
from cockpit.store.journal import journal
from cockpit.store.journal.details.agents import RunnerEnded, RunnerStarted, RunnerToolEnded
from cockpit.store.journal.details.proposals import ActionRefused, ProposalDecided
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import EDITED, Proposal

_READS = frozenset(("read", "search", "fetch"))
_ASKS = frozenset(("stdio", "acp"))
"""Formats of runs whose agents ask cockpit for each permission."""
_MOST_ROWS = 100_000
_MOST_TITLE = 200

_Key = tuple[str, ...]
_Event = tuple[int, _Key, str, bool, str]
"""Its place in the journal; what; in words; whether it only reads; who allowed it, '' for a refusal."""


class RoleResult(Struct, frozen=True):
    """How a role's session ended."""

    status: str
    """``done``, ``blocked``, ``limit`` (its waves were used up), ``stuck`` (its calls repeated), or
    ``needs_answer`` (it ended in words, without ``finish``)."""
    summary: str
    """Its last message."""
    tools: int | None = None
    """How many tools an external agent used; None where its output does not say, and for the built-in one."""
    refused: Sequence[str] = ()
    """What an external agent had no permission for, one line each."""
    standing: Sequence[str] = ()
    """Those of them that it neither got later nor did another way that the user approved."""


_LAST_WORDS = 400


def ended_without_finish(result: RoleResult) -> str:
    """Return the reason that a role's work does not count, in its own last words."""
    last = result.summary[-_LAST_WORDS:]
    words = f" Its last words: {'…' if last != result.summary else ''}{last}" if last else ""
    return f"It ended in words without saying that it is done, and needs an answer.{words}"


def count_tools(connection: sqlite3.Connection, session_id: str) -> tuple[int | None, list[str]]:
    """Return the tools that an external agent used in all runs of the session, and what it was refused."""
    tools: int | None = None
    refused: list[str] = []
    for row in journal.rows(connection, session_id=session_id, action=str(Action.RUNNER_ENDED)):
        detail = row.detail
        if isinstance(detail, RunnerEnded):
            if detail.tools is not UNSET:
                tools = (tools or 0) + detail.tools
            refused += () if detail.refused is UNSET else detail.refused
    return tools, refused


def select_standing_refusals(connection: sqlite3.Connection, session_id: str) -> list[str]:
    """Return what the agent was refused for good in all runs of the session, one line each.

    A refusal no longer stands once the agent asked for the same again and was allowed, or once the user
    approved another request of its after it: the work another way.
    """
    events = [
        *_read_decisions(connection, session_id),
        *_read_denials(connection, session_id),
    ]
    standing: dict[_Key, tuple[str, bool]] = {}
    for _, key, line, reads, allowed_by in sorted(events, key=lambda event: event[0]):
        if not allowed_by:
            standing[key] = (line, reads)
            continue
        standing.pop(key, None)
        if allowed_by == "person":
            standing = {other: each for other, each in standing.items() if each[1] != reads}
    lines = [line for line, _ in standing.values()]
    return [*lines, *_read_reported(connection, session_id)]


def _read_decisions(connection: sqlite3.Connection, session_id: str) -> list[_Event]:
    places = {
        row.detail.proposal_id: row.seq
        for row in journal.rows(
            connection, session_id=session_id, action=Action.PROPOSAL_DECIDED, limit=_MOST_ROWS
        )
        if isinstance(row.detail, ProposalDecided)
    }
    events: list[_Event] = []
    for proposal in proposals.select_for_session(connection, session_id):
        is_question = str(proposal.body.get("type", "")) == "think"
        if proposal.kind != KIND or is_question or proposal.proposal_id not in places:
            continue
        allowed_by = str(proposal.decided_by) if proposal.status == "approved" else ""
        is_refusal = proposal.status in ("rejected", "discussed") or (
            proposal.status == "expired" and proposal.decided_by == "deadline"
        )
        is_revised = proposal.reason in (EDITED, SHOWN_ANEW)
        if allowed_by or (is_refusal and not is_revised):
            body = proposal.body
            line = f"{body.get('tool', '')}: {proposal.title}"[:_MOST_TITLE]
            reads = str(body.get("type", "")) in _READS
            events.append(
                (places[proposal.proposal_id], _key_of(proposal), line, reads, allowed_by)
            )
    return events


def _key_of(proposal: Proposal) -> _Key:
    """Return what makes two requests the same: the command, the files, or else the title."""
    body: Mapping[str, Any] = proposal.body
    kind, command = str(body.get("type", "")), str(body.get("command", ""))
    if command:
        return ("command", " ".join(command.split()))
    paths = sorted(str(diff.get("path", "")) for diff in body.get("diffs", ()))
    return ("files", *paths) if paths else (kind, proposal.title)


def _read_denials(connection: sqlite3.Connection, session_id: str) -> list[_Event]:
    """Return what a deny rule refused, without a proposal; nothing allows it later."""
    events: list[_Event] = []
    action = str(Action.ACTION_REFUSED)
    for row in journal.rows(connection, session_id=session_id, action=action):
        detail = row.detail
        if isinstance(detail, ActionRefused):
            title = str(detail.payload.get("title", "")) or detail.message
            line = f"{detail.tool}: {title}"[:_MOST_TITLE]
            events.append((row.seq, ("denied", line), line, False, ""))
    return events


def _read_reported(connection: sqlite3.Connection, session_id: str) -> list[str]:
    """Return what runs without a protocol reported as refused, but for calls that succeeded as well."""
    lines: list[str] = []
    asks = False
    for action in (Action.RUNNER_STARTED, Action.RUNNER_ENDED):
        for row in journal.rows(connection, session_id=session_id, action=str(action)):
            match row.detail:
                case RunnerStarted() as started:
                    asks = asks or started.format in _ASKS
                case RunnerEnded() as ended if ended.refused is not UNSET:
                    lines += ended.refused
    if asks or not lines:
        return []
    succeeded = {
        mask(row.detail.title)
        for row in journal.rows(
            connection,
            session_id=session_id,
            action=str(Action.RUNNER_TOOL_ENDED),
            limit=_MOST_ROWS,
        )
        if isinstance(row.detail, RunnerToolEnded) and not row.detail.failed
    }
    return [line for line in lines if line not in succeeded]


Status = Literal["PASS", "FAIL", "BLOCKED"]

_LINE = re.compile(
    r"[ \t*_#`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)[ \t*_`.!\u2705\u2714\u274c\ufe0f]*",
    re.I | re.A,
)
# Beside the verdict, even a longer line is enough to doubt it.
_ALSO = re.compile(r"[ \t*_#]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)\b", re.I | re.A)
_LOOKED_AT = re.compile(r"[ \t*_#`-]*looked at[ \t*_`]*[:=][ \t*_`]*(\S.*)", re.I | re.A)


class Verdict(Struct, frozen=True):
    """A reviewer's decision."""

    status: Status
    findings: str
    """The rest of the message."""
    looked_at: str = ""
    """What it says that it looked at: its line ``LOOKED AT: …``; empty without one."""
    readable: bool = True
    """False where no verdict could be read; ``status`` is then FAIL."""


def parse_verdict(text: str, change: str = "") -> Verdict:
    """Return the last verdict of ``text``: a line of its own, which begins or ends the message or is a
    paragraph by itself.

    A verdict in code or in a quotation is not the reviewer's. A message with two that contradict each
    other is FAIL. Where the reviewed ``change`` has such a line itself, only the message's first line
    counts: the reviewer may repeat the others.
    """
    lines = own_lines(text)
    places = [place for place, line in enumerate(lines) if _stands_alone(lines, place)]
    if any(_LINE.fullmatch(line.lstrip("+- ")) for line in change.splitlines()):
        places = [place for place in places if place == 0]
    statuses = [
        match[1].upper()
        for line in lines
        if (match := _LINE.fullmatch(line.text) or _ALSO.match(line.text))
    ]
    if not places:
        return Verdict(
            "FAIL", f"The reviewer gave no readable verdict. {text.strip()}", readable=False
        )
    if len(set(statuses)) > 1:
        return Verdict(
            "FAIL", f"The reviewer gave more than one verdict. {text.strip()}", readable=False
        )
    own = {lines[place].number for place in places}
    rest = [line for number, line in enumerate(text.splitlines()) if number not in own]
    looked_at = next(
        (match[1].strip() for line in lines if (match := _LOOKED_AT.match(line.text))), ""
    )
    return Verdict(cast("Status", statuses[-1]), "\n".join(rest).strip(), looked_at)


def _stands_alone(lines: list[OwnLine], place: int) -> bool:
    """Whether the line is a verdict that begins or ends the message, or is a paragraph by itself."""
    if _LINE.fullmatch(lines[place].text) is None:
        return False
    if place in (0, len(lines) - 1):
        return True
    follows = lines[place + 1]
    ends = follows.begins_paragraph or _LOOKED_AT.match(follows.text) is not None
    return lines[place].begins_paragraph and ends
