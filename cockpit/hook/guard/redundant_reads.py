"""Refuse a read whose text an external agent's context has, and record what its reads returned.

Off unless the hook was installed with ``--guard``. Whatever fails, the agent reads. A read that was refused
and is asked for again passes: cockpit does not see the agent's context, which may have lost the text. See
``docs/reference/guards.md``, the guard as a hook.
"""

from __future__ import annotations

import re

from cockpit.hook.guard.read_ledger import ReadLedger
from cockpit.hook.guard.tool_reads import LONGEST_LINE, find_reads, names_any, only_prints
from cockpit.hook.permission_policy import PermissionDecision
from cockpit.loop.permissions.tool_names import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cockpit.hook.event_payload import Event
    from cockpit.hook.guard.tool_reads import FileNow, ToolReads

BY = "guard:redundant_read"
SUBAGENTS = ("Task", "Agent")
"""Tools that start a subagent, which has a context of its own."""
_RESETS = ("SessionStart", "SessionEnd", "PreCompact", "PostCompact")
_READ, _REFUSED, _SUBAGENT = "read", "refused", "subagent"
_NUMBER = re.compile(r"\s*\d+(?:\t|→|[:-]| {1,2})")
_MOST_STARTS = 50


def guard_event(event: Event, state: str, root: str) -> PermissionDecision | None:
    """Take in one event; returns the refusal of a read that is redundant. Raises the errors of files."""
    context = event.payload.get("agent_id")
    ledger = ReadLedger(
        state, event.agent, event.session, context if isinstance(context, str) else ""
    )
    if event.name in _RESETS:
        ledger.empty_session(event.agent, event.session)
        return None
    if event.tool in SUBAGENTS:
        _note_subagent(event, ledger)
        return None
    if event.tool != "Read" and event.tool not in SHELLS:
        return None
    if event.name == "PreToolUse":
        return _check(event, ledger, root)
    if event.name == "PostToolUse":
        _record(event, ledger, root)
    return None


def _note_subagent(event: Event, ledger: ReadLedger) -> None:
    """Note that a subagent runs or has ended: reads that name no context may be those of either."""
    if event.name == "PreToolUse":
        ledger.append([_SUBAGENT, 1])
    elif event.name in ("PostToolUse", "PostToolUseFailure"):
        ledger.append([_SUBAGENT, -1])


def _is_blurred(event: Event, entries: list[list[Any]]) -> bool:
    """Whether a subagent runs whose reads cannot be told from the agent's."""
    if event.payload.get("agent_id"):
        return False
    return sum(int(entry[1]) for entry in entries if entry[0] == _SUBAGENT) > 0


def _check(event: Event, ledger: ReadLedger, root: str) -> PermissionDecision | None:
    entries = ledger.load()
    if _is_blurred(event, entries) or not _is_worth_parsing(event, root, entries):
        return None
    reads = find_reads(event, root)
    if reads is None:
        return None
    where = _find_lines(reads, entries)
    if not where:
        return None
    insists = [_REFUSED, _describe_request(reads)]
    if insists in entries:
        return None
    ledger.append(insists)
    return PermissionDecision(
        "deny",
        f"cockpit refused a redundant read: {where}. Nothing of it has changed since, so it would say the"
        " same again. Work from the text above: make the change, run the tests, or read other lines. If"
        " that text is no longer in your context, make the same call once more and it will pass.",
        BY,
    )


def _is_worth_parsing(event: Event, root: str, entries: list[list[Any]]) -> bool:
    """Whether a command may be refused.

    The rules of reading commands take longer to load than all else of a hook call, so a look at the text
    decides first. Where it errs, the agent reads.
    """
    if event.tool not in SHELLS:
        return True
    paths = {str(entry[1]) for entry in entries if entry[0] == _READ}
    return only_prints(event.command) and names_any(event, root, paths)


def _describe_request(reads: ToolReads) -> str:
    """Return the request in the version of its files, as one text."""
    parts = [f"{file.path}:{file.version}:{first}-{last}" for file, first, last in reads.parts]
    return "|".join([reads.tool, *parts])


def _find_lines(reads: ToolReads, entries: list[list[Any]]) -> str:
    """Return where all lines are; '' where one is not in the context."""
    from cockpit.act.guards.line_coverage import covers_lines

    places = []
    for file, first, last in reads.parts:
        # Edit and Write of Claude Code want a file that Read has read: text from a shell is not enough.
        shown = [
            (entry[3], entry[4], entry[5])
            for entry in entries
            if entry[:3] == [_READ, file.path, file.version]
            and (reads.tool != "Read" or entry[5] == "Read")
        ]
        if not covers_lines([(start, end) for start, end, _ in shown], first, last):
            return ""
        tools = sorted({tool for start, end, tool in shown if start <= last and end >= first})
        name = _name_file(file)
        places.append(f"lines {first}-{last} of {name} are above, from {' and '.join(tools)}")
    return "; ".join(places)


def _record(event: Event, ledger: ReadLedger, root: str) -> None:
    entries = ledger.load()
    if _is_blurred(event, entries):
        return
    reads = find_reads(event, root)
    if reads is None:
        return
    response = event.payload.get("tool_response")
    if event.tool == "Read":
        parts = [_returned_by_read(reads, response)]
    else:
        output = _text_of(response).split("\n")
        parts = [_printed_of(part, output) for part in reads.parts]
    ledger.append(
        *(
            [_READ, file.path, file.version, first, last, reads.tool]
            for file, first, last in filter(None, parts)
        )
    )


def _returned_by_read(reads: ToolReads, response: Any) -> tuple[FileNow, int, int] | None:
    """Return the lines that Read says it returned; None where it does not say so."""
    file = response.get("file") if isinstance(response, dict) else None
    if not isinstance(file, dict) or response.get("type", "text") != "text":
        return None
    now = reads.parts[0][0]
    first, count = file.get("startLine"), file.get("numLines")
    content = file.get("content")
    if not isinstance(first, int) or not isinstance(count, int) or not isinstance(content, str):
        return None
    lines = now.lines[first - 1 : first - 1 + count]
    if not lines or any(len(line) > LONGEST_LINE for line in lines):
        return None
    returned = content.split("\n")
    same = [line.rstrip("\r") for line in lines] == [
        line.rstrip("\r") for line in returned[: len(lines)]
    ]
    return (now, first, first + len(lines) - 1) if same and first > 0 else None


def _printed_of(
    part: tuple[FileNow, int, int], output: list[str]
) -> tuple[FileNow, int, int] | None:
    """Return the lines of a part that an output has, from its first on: what was cut off does not count."""
    file, first, last = part
    wanted = [line.rstrip("\r") for line in file.lines[first - 1 : last]]
    most = 0
    starts = [at for at, line in enumerate(output) if wanted and _is_line(line, wanted[0])]
    for at in starts[:_MOST_STARTS]:
        count = 0
        for line, text in zip(output[at:], wanted, strict=False):
            if not _is_line(line, text):
                break
            count += 1
        most = max(most, count)
        if most == len(wanted):
            break
    # A few blank or common lines say nothing about where they are from.
    is_telling = any(len(line.strip()) > 3 for line in wanted[:most])
    return (file, first, first + most - 1) if most and (is_telling or most == len(wanted)) else None


def _is_line(printed: str, line: str) -> bool:
    """Whether an output's line is a file's, as it is or behind its number."""
    printed = printed.rstrip("\r")
    if printed == line:
        return True
    number = _NUMBER.match(printed)
    return number is not None and printed[number.end() :] == line


def _text_of(response: Any) -> str:
    """Return the text that a tool returned."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict) or response.get("interrupted") or response.get("isImage"):
        return ""
    for name in ("stdout", "output", "content", "aggregated_output"):
        value = response.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _name_file(file: FileNow) -> str:
    """Return the name of a file as one short line: a path is whatever its author wrote."""
    name = "".join(sign if sign.isprintable() else "?" for sign in file.path)
    return repr(name if len(name) <= 160 else f"…{name[-159:]}")
