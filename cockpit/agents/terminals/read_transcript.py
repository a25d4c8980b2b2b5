"""Tokens and model of a session in the user's own terminal, from the transcript that its agent writes.

Only what was written since the last look is read, a bounded piece at a time, because it is read in a
transaction; lines without a count of tokens are not parsed. See
``docs/reference/hooks.md``, sessions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from cockpit.agents.streams.account_usage import record_usage
from cockpit.agents.streams.stream_events import TokenUsage
from cockpit.agents.streams.stream_formats import message_usage, sum_usage
from cockpit.core.json_fields import get_count, get_object, get_text, parse_object
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import RUNNER_PREFIX, Session

_MOST_AT_ONCE = 8 * 1024 * 1024
"""Bytes read at one look; the next one goes on after them."""
_COUNTS = (b'"usage"', b'"total_token_usage"', b'"model"')
"""A line without one of these holds nothing that is counted."""


class NewUsage(Struct, frozen=True):
    """What new lines of a transcript add."""

    usage: TokenUsage
    model: str
    seen: str


def account_transcript(tx: Tx, session: Session) -> None:
    """Add the tokens that the transcript reports since the last call to the session's totals."""
    path = str(session.target.get("transcript", ""))
    if not path or not _is_own_file(path):
        return
    row = tx.execute(
        "SELECT read_to, seen FROM agent_transcripts WHERE session_id=?", (session.session_id,)
    ).fetchone()
    # How far it was read, and the last message counted, or Codex's totals so far.
    read_to, seen = (0, "") if row is None else (int(row[0]), str(row[1]))
    lines, offset = _read_new_lines(path, read_to)
    if offset == read_to:
        return
    reader = read_codex_lines if session.agent == "codex" else read_claude_lines
    added = reader(lines, seen)
    tx.execute(
        "INSERT INTO agent_transcripts(session_id, read_to, seen) VALUES (?,?,?)"
        " ON CONFLICT(session_id) DO UPDATE SET read_to=excluded.read_to, seen=excluded.seen",
        (session.session_id, offset, added.seen[:500]),
    )
    usage = added.usage
    if not usage.tokens:
        return
    model = f"{RUNNER_PREFIX}{session.agent}" + (f" {added.model[:100]}" if added.model else "")
    if added.model and model != session.model:
        sessions.change(tx, session.session_id, actor=f"agent:{session.agent}", model=model)
    actor = f"agent:{session.agent}"
    record_usage(tx, session.session_id, usage, model=model, stop="end", actor=actor)


def read_claude_lines(lines: Iterable[str], seen: str = "") -> NewUsage:
    """Count the usage in lines of a Claude Code transcript. Several lines of one message count once."""
    used, model = list[TokenUsage](), ""
    for line in lines:
        message = get_object(parse_object(line) or {}, "message")
        usage, identity = get_object(message, "usage"), get_text(message, "id")
        if not usage or not identity or identity == seen:
            continue
        seen, model = identity, get_text(message, "model") or model
        used.append(message_usage(usage))
    return NewUsage(sum_usage(used), model, seen)


def read_codex_lines(lines: Iterable[str], seen: str = "") -> NewUsage:
    """Count the usage in lines of a Codex transcript, which repeats the session's totals."""
    before = _totals(seen)
    after, model = before, ""
    for line in lines:
        payload = get_object(parse_object(line) or {}, "payload")
        model = get_text(payload, "model") or model
        totals = get_object(get_object(payload, "info"), "total_token_usage")
        if totals:
            names = ("input_tokens", "output_tokens", "cached_input_tokens")
            after = tuple(get_count(totals, name) for name in names)
    added = [max(0, new - old) for new, old in zip(after, before, strict=True)]
    return NewUsage(TokenUsage(*added), model, json.dumps(after))


def _totals(seen: str) -> tuple[int, ...]:
    try:
        values = json.loads(seen) if seen else None
    except ValueError:
        values = None
    whole = isinstance(values, list) and len(values) == 3
    return tuple(int(each) for each in values) if whole and values else (0, 0, 0)


def _is_own_file(path: str) -> bool:
    """Whether the path, which the hook's input names, is a transcript of the user's own agents."""
    try:
        real = Path(os.path.realpath(path))
    except ValueError:  # a character that no path has
        return False
    homes = [os.environ.get(name, "") for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")]
    homes += [str(Path.home() / ".claude"), str(Path.home() / ".codex")]
    inside = any(home and real.is_relative_to(os.path.realpath(home)) for home in homes)
    return inside and real.suffix == ".jsonl" and real.is_file()


def _read_new_lines(path: str, offset: int) -> tuple[list[str], int]:
    """Return the whole lines after ``offset`` and where they end; of a shorter file, all from its start."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = 0 if size < offset else offset
            file.seek(start)
            data = file.read(_MOST_AT_ONCE)
    except OSError:
        return [], offset
    whole, newline, _ = data.rpartition(b"\n")
    if not newline:
        # The agent still writes this line, unless it is longer than any that holds a count.
        return [], start + len(data) if len(data) == _MOST_AT_ONCE else start
    lines = [line for line in whole.split(b"\n") if any(word in line for word in _COUNTS)]
    return [line.decode("utf-8", "replace") for line in lines], start + len(whole) + 1
