"""A block of the conversation in full: all that the journal has of it, in order.

Messages, thoughts and tool calls whole; proposals as they were shown, with their diffs and the decision;
commands with directory, time, exit code and output; what was read, and into which packet it went.
Specified in ``docs/reference/screen.md``, blocks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from cockpit.app.state.conversation import RunningAction
from cockpit.core.clock import parse_time
from cockpit.core.text import format_size, pluralize
from cockpit.loop.views.event_text import event_line, name_speaker
from cockpit.store.journal.details import agent_turns, agents, proposals, sessions, waves
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.journal import Row
from widgets.text.detail import DetailRow, entries, fields, quoted, sentence
from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, STRONG, WARN, Part
from widgets.views import FileDiffView

_OUTPUTS = (("stdout", "output"), ("stderr", "errors"))
_SHOWN_ELSEWHERE = ("argv", "exit_code", "duration_ms", "stdout", "stderr", "failure", "tests")


class LiveRun(Struct, frozen=True):
    """An action that runs now, and the end of its output so far."""

    action: RunningAction
    output: str


class BlockDetail(Struct, frozen=True):
    """The parts of a block, and what can be copied from it."""

    parts: tuple[FileDiffView | tuple[DetailRow, ...], ...]
    text: str
    command: str = ""
    """The command that it ran."""
    paths: tuple[str, ...] = ()
    """The files that it names, the first one to open."""
    status: tuple[Part, ...] = ()
    """How its newest command is: the time it runs for, or its exit code and duration."""


def describe_block(
    rows: Sequence[Row], *, running: Mapping[str, LiveRun], now: datetime
) -> BlockDetail:
    """Return what the rows of a block say; ``running`` are the actions among them that run now, by id."""
    parts: list[FileDiffView | tuple[DetailRow, ...]] = []
    texts: list[str] = []
    paths: list[str] = []
    command = ""
    began = (row.detail for row in rows if isinstance(row.detail, sessions.SessionCreated))
    assigned = next((detail.role for detail in began), "")
    status: tuple[Part, ...] = ()
    for row in rows:
        detail = row.detail
        command = command or _command(detail)
        paths += _paths(detail)
        lines = list(_describe(detail, row, assigned))
        if isinstance(detail, proposals.ActionDispatched):
            live = running.get(detail.action_id)
            if live is not None and live.action.at == row.at:
                lines += quoted("output so far", live.output or "Nothing so far.")
                status = _running(live, now)
        status = _ended(detail, row) or status
        if not lines:
            continue
        parts.append(tuple(lines))
        texts += [f"{line.lead.plain}{line.text.plain}" for line in lines]
        if isinstance(detail, proposals.ProposalCreated):
            diffs = [
                FileDiffView(each.path, each.before, each.after) for each in detail.shown().diffs
            ]
            parts += diffs
            texts += [f"{diff.path}\n{diff.after or ''}" for diff in diffs]
    return BlockDetail(tuple(parts), "\n".join(texts), command, tuple(dict.fromkeys(paths)), status)


def _describe(detail: Detail, row: Row, assigned: str) -> Iterator[DetailRow]:
    match detail:
        case sessions.SessionCreated():
            yield from quoted(f"{name_speaker('person', assigned)} · {_time(row)}", detail.words)
        case sessions.MessageCompleted():
            speaker = name_speaker(detail.role, assigned)
            yield from quoted(f"{speaker} · {_time(row)}", detail.text)
        case waves.ModelThought() | agent_turns.RunnerThought():
            yield from quoted(f"thought · {_time(row)}", detail.text or "It cannot be read.")
        case proposals.ProposalCreated():
            yield from _proposal(detail, row)
        case proposals.ActionConfirmed() | proposals.ActionFailed():
            yield from _receipt(detail, row)
        case waves.ContextRequested():
            yield sentence((f"context asked for · {_time(row)}", STRONG))
            yield from fields((("purpose", detail.purpose), ("question", detail.question)))
            yield from entries(
                "items", [(each.item, _tokens(each.tokens)) for each in detail.items]
            )
        case waves.ContextFetched():
            yield sentence(
                (f"read · {pluralize(detail.facts, 'fact')}, {detail.tokens:,} tokens", STRONG)
            )
            for each in detail.items:
                error = each.error if isinstance(each.error, str) else ""
                count = each.facts if isinstance(each.facts, int) else 0
                yield sentence(
                    "  ", (each.item, ""), (f"  {pluralize(count, 'fact')}{_tokens(each.tokens)}", DIM),
                    (f"  {error}" if error else "", WARN),
                )  # fmt: skip
        case waves.PacketCompiled():
            yield sentence((f"packet {detail.digest[:12]} · wave {detail.ordinal}", STRONG))
            used = f"{detail.sent:,} of {detail.token_budget:,} tokens sent"
            yield from fields(
                (("size", used), ("facts", f"{detail.facts:,}, {detail.dropped:,} dropped"))
            )
            drops = [(reason, f"{count:,}") for reason, count in detail.drops.items()]
            yield from entries("left out, by reason", drops)
        case agents.RunnerToolStarted() | agents.RunnerToolEnded():
            yield from _tool(detail, row)
        case _:
            line = event_line(detail)
            if line is not None:
                yield sentence((line.plain(""), _tone(line.tone)), (f"  {_time(row)}", DIM))


def _proposal(detail: proposals.ProposalCreated, row: Row) -> Iterator[DetailRow]:
    shown = detail.shown()
    yield sentence((detail.title, STRONG))
    yield sentence(
        (f"{detail.kind} · {detail.risk} risk · {detail.proposal_id} · {_time(row)}", DIM)
    )
    yield from fields(
        (
            ("purpose", shown.purpose),
            ("question", shown.question),
            ("why", shown.why or shown.reason),
            *shown.fields,
        )
    )
    for item in shown.items:
        refused = item.refused if isinstance(item.refused, str) else ""
        yield sentence(
            "  ", item.item, (_tokens(item.tokens), DIM), (f"  {refused}" if refused else "", BAD)
        )
    yield from quoted("text", shown.body)
    for note in shown.notes:
        yield sentence(("! ", WARN), note)


def _receipt(
    detail: proposals.ActionConfirmed | proposals.ActionFailed, row: Row
) -> Iterator[DetailRow]:
    good = isinstance(detail, proposals.ActionConfirmed)
    summary = detail.summary if isinstance(detail, proposals.ActionConfirmed) else detail.message
    yield sentence((f"{'✔' if good else '✗'} {detail.title or detail.type}", GOOD if good else BAD))
    receipt = detail.receipt
    code, took = receipt.get("exit_code"), receipt.get("duration_ms")
    rest = [
        (str(name), str(value))
        for name, value in receipt.items()
        if name not in _SHOWN_ELSEWHERE and isinstance(value, str | int | float)
    ]
    yield from fields(
        (
            ("result", summary),
            ("command", _command(detail)),
            ("exit code", "" if code is None else str(code)),
            ("took", f"{took / 1000:.1f} s" if isinstance(took, int | float) else ""),
            ("ended", _time(row)),
            *rest,
        )
    )
    for name, heading in _OUTPUTS:
        yield from quoted(heading, str(receipt.get(name) or ""))


def _running(live: LiveRun, now: datetime) -> tuple[Part, ...]:
    seconds = max(0.0, (now - parse_time(live.action.at)).total_seconds())
    return (f"▶ runs for {seconds:.0f} s", ACCENT), (f" · {live.action.title}", DIM)


def _ended(detail: Detail, row: Row) -> tuple[Part, ...]:
    """Return the result of a command that ended, () for any other row."""
    match detail:
        case proposals.ActionConfirmed() | proposals.ActionFailed():
            good, name = isinstance(detail, proposals.ActionConfirmed), detail.title or detail.type
            code, took = detail.receipt.get("exit_code"), detail.receipt.get("duration_ms")
        case agents.RunnerToolEnded():
            good, name, code, took = not detail.failed, detail.title, detail.exit_code, None
        case _:
            return ()
    if code is None:
        return ()
    time = f" · took {took / 1000:.1f} s" if isinstance(took, int | float) else ""
    return (
        (f"{'✔' if good else '✗'} exit code {code}", GOOD if good else BAD),
        f"{time} · ended {_time(row)}",
        (f" · {name}", DIM),
    )


def _tool(
    detail: agents.RunnerToolStarted | agents.RunnerToolEnded, row: Row
) -> Iterator[DetailRow]:
    if isinstance(detail, agents.RunnerToolStarted):
        yield sentence((f"▶ {detail.title}", STRONG), (f"  {_time(row)}", DIM))
        yield from fields((("tool", detail.tool), ("files", ", ".join(_paths(detail)))))
        return
    yield sentence(
        (f"{'✗' if detail.failed else '✔'} {detail.title}", BAD if detail.failed else GOOD)
    )
    code = "" if detail.exit_code is None else str(detail.exit_code)
    gated = "seen, not gated" if detail.gated is False else ""
    yield from fields((("exit code", code), ("asked", gated), ("ended", _time(row))))
    yield from quoted("change", detail.diff if isinstance(detail.diff, str) else "")
    yield from quoted("output", detail.summary)


def _command(detail: Detail) -> str:
    match detail:
        case proposals.ActionConfirmed() | proposals.ActionFailed():
            argv: Any = detail.receipt.get("argv")
            return shlex.join(map(str, argv)) if isinstance(argv, list | tuple) else ""
        case proposals.ProposalCreated():
            shown = detail.shown()
            return shown.command or dict(shown.fields).get("command", "")
        case _:
            return ""


def _paths(detail: Detail) -> list[str]:
    match detail:
        case proposals.ProposalCreated():
            shown = detail.shown()
            named = [
                each.item.partition(":")[2] for each in shown.items if each.item.startswith("file:")
            ]
            return [*(diff.path for diff in shown.diffs), *named]
        case agents.RunnerToolStarted(places=list() as places):
            return places
        case agents.RunnerToolEnded(places=list() as places):
            return places
        case waves.ContextFetched():
            return [e.item.partition(":")[2] for e in detail.items if e.item.startswith("file:")]
        case _:
            return []


def _tokens(count: object) -> str:
    return f"  {format_size(count)}" if count is None or isinstance(count, int) else ""


def _time(row: Row) -> str:
    return row.at[11:19]


def _tone(name: str) -> str:
    return {"good": GOOD, "bad": BAD, "warn": WARN, "accent": ACCENT}.get(name, "")
