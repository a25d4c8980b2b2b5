"""What packets and handovers saved of prompts, estimated from the packets that were sent.

By compiling: each prompt against a transcript that keeps everything that its session has observed, in full.
By handover: a session of a task that has an earlier one starts from a handoff. It is compared with a session
that resumes the earlier one's last packet. Neither other way was tried, so both are estimates. See
``docs/reference/measures.md``, saved tokens.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.chains.report.measure_rows import MeasureRow
from cockpit.core.canonical_json import parse_json
from cockpit.core.text import pluralize
from cockpit.store.context.packets import packet_from_body
from cockpit.store.journal.event_types import Action

MOST_OF_A_PROMPT = 200_000
"""Tokens of a transcript that count for one prompt: a longer one fits into few models."""
MOST_SESSIONS = 1_000
"""Sessions that are measured, the newest of a period."""


class PromptSavings(Struct, frozen=True):
    """The prompts of cockpit's own agent from one time to another, in tokens."""

    prompts: int = 0
    sent: int = 0
    """Tokens of all prompts as they were rendered."""
    transcript: int = 0
    """Tokens of the transcripts that the prompts are compared with."""
    handovers: int = 0
    """Sessions of a task that had an earlier one."""
    by_handover: int = 0
    """Tokens that handovers saved."""

    @property
    def by_compiling(self) -> int:
        """Tokens that compiling saved; negative where packets have more than transcripts would."""
        return self.transcript - self.sent

    def body(self) -> dict[str, Any]:
        """Return the JSON objects ``compiling`` and ``handover`` of ``cockpit stats --json``."""
        return {
            "compiling": {
                "estimated": True,
                "tokens_saved": self.by_compiling,
                "prompts": self.prompts,
                "tokens_sent": self.sent,
                "tokens_of_transcripts": self.transcript,
            },
            "handover": {
                "estimated": True,
                "tokens_saved": self.by_handover,
                "handovers": self.handovers,
            },
        }


def measure_prompts(connection: sqlite3.Connection, since: str, before: str) -> PromptSavings:
    """Measure the packets compiled from ``since`` up to ``before`` (stored timestamps).

    Sessions whose facts were pruned are left out.
    """
    rendered = _select_rendered(connection, since, before)
    sent = transcript = prompts = handovers = by_handover = 0
    for session_id, waves in rendered.items():
        grown = _grow_transcript(connection, session_id, list(waves))
        if grown:
            prompts += len(waves)
            sent += sum(waves.values())
            transcript += sum(grown.values())
    for session_id, earlier in _select_earlier(connection, list(rendered)).items():
        waves = rendered[session_id]
        if last := _select_last(connection, earlier):
            handovers += 1
            by_handover += max(0, last - waves[min(waves)]) * len(waves)
    return PromptSavings(prompts, sent, transcript, handovers, by_handover)


def newest_packet(connection: sqlite3.Connection) -> int:
    """Return the seq of the newest row that a saving is made of; 0 without any."""
    (seq,) = connection.execute(
        "SELECT max(seq) FROM journal WHERE action=?", (str(Action.PACKET_COMPILED),)
    ).fetchone()
    return int(seq or 0)


def saving_rows(prompts: PromptSavings) -> tuple[MeasureRow, ...]:
    """Return the two sums, each as a row next to the measures of chains."""
    return (
        MeasureRow(
            "Tokens saved by compiling",
            float(prompts.by_compiling) if prompts.prompts else None,
            "number",
            more_is_better=True,
            detail=_describe_compiling(prompts),
        ),
        MeasureRow(
            "Tokens saved by handover",
            float(prompts.by_handover) if prompts.handovers else None,
            "number",
            more_is_better=True,
            detail="estimated: against resuming the prompt of the session before;"
            f" {pluralize(prompts.handovers, 'handover')}",
        ),
    )


def _describe_compiling(prompts: PromptSavings) -> str:
    against = "estimated: against transcripts of all facts"
    if not prompts.transcript:
        return against
    share = 100 * prompts.by_compiling / prompts.transcript
    return f"{against}; {share:.0f}% of {pluralize(prompts.prompts, 'prompt')}"


def _select_rendered(
    connection: sqlite3.Connection, since: str, before: str
) -> Mapping[str, Mapping[int, int]]:
    """Return the tokens of each wave's last prompt, by session in the order of their first ones."""
    rendered: dict[str, dict[int, int]] = defaultdict(dict)
    for session_id, ordinal, tokens in connection.execute(
        "SELECT session_id, json_extract(detail_json,'$.ordinal'),"
        " json_extract(detail_json,'$.epoch.rendered_tokens') FROM journal"
        " WHERE action=? AND at>=? AND at<? ORDER BY seq",
        (str(Action.PACKET_COMPILED), since, before),
    ):
        if tokens is not None:
            rendered[str(session_id)][int(ordinal)] = int(tokens)
    newest = list(rendered)[-MOST_SESSIONS:]
    return {session_id: rendered[session_id] for session_id in newest}


def _grow_transcript(
    connection: sqlite3.Connection, session_id: str, ordinals: Sequence[int]
) -> Mapping[int, int]:
    """Return the tokens that a transcript has in each of the waves; empty without stored facts."""
    observed = connection.execute(
        "SELECT ordinal, sum(max(cost_full, tokens_full)) FROM session_facts WHERE session_id=?"
        " GROUP BY ordinal",
        (session_id,),
    ).fetchall()
    first = connection.execute(
        "SELECT packet_json FROM wave_runs JOIN orientation_packets USING (wave_id)"
        " WHERE session_id=? ORDER BY ordinal LIMIT 1",
        (session_id,),
    ).fetchone()
    if not observed or first is None:
        return {}
    packet = packet_from_body(parse_json(first[0]))
    # The system text, the tools and the frames are those of the packet, whatever facts it has.
    around = (packet.rendered_tokens or 0) - (packet.token_used - packet.overheads.total)
    return {
        wave: min(
            MOST_OF_A_PROMPT,
            around + sum(int(tokens) for ordinal, tokens in observed if ordinal <= wave),
        )
        for wave in ordinals
    }


def _select_earlier(
    connection: sqlite3.Connection, session_ids: Sequence[str]
) -> Mapping[str, str]:
    """Return the session before each of those that are not the first of their task with a packet."""
    earlier: dict[str, str] = {}
    for session_id in session_ids:
        row = connection.execute(
            "SELECT before.session_id FROM sessions AS own JOIN sessions AS before"
            " ON before.task_id=own.task_id AND before.rowid<own.rowid"
            " WHERE own.session_id=? AND own.task_id<>'' AND EXISTS"
            " (SELECT 1 FROM wave_runs JOIN orientation_packets USING (wave_id)"
            "  WHERE wave_runs.session_id=before.session_id)"
            " ORDER BY before.rowid DESC LIMIT 1",
            (session_id,),
        ).fetchone()
        if row is not None:
            earlier[session_id] = str(row[0])
    return earlier


def _select_last(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the tokens of the session's last prompt; 0 without one."""
    row = connection.execute(
        "SELECT json_extract(detail_json,'$.epoch.rendered_tokens') FROM journal"
        " WHERE session_id=? AND action=? ORDER BY seq DESC LIMIT 1",
        (session_id, str(Action.PACKET_COMPILED)),
    ).fetchone()
    return int(row[0] or 0) if row is not None else 0
