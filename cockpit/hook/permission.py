"""Permission answers for external agents: deny rules, then the approval policy, else the agent asks.

``reads`` allows what :mod:`cockpit.access.reads.judge_reads` knows to be a read. A command that cockpit's
risk table calls high is never allowed from here, whatever the policy. Without an answer the agent behaves
as if there were no hook. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os
import re
import unicodedata

from cockpit.hook.event_payload import SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cockpit.access.reads.reading_place import ReadingPlace
    from cockpit.core.find_checkout import Checkout
    from cockpit.hook.event_payload import Event

_READERS = {"Read": "file_path", "NotebookRead": "notebook_path", "LS": "path"}
_SEARCHERS = frozenset(("Glob", "Grep"))
_WRITERS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path"}
_OF_AGENTS = frozenset((".claude", ".codex", ".mcp.json", ".cockpit"))
"""What tells agents what they may do: a policy over them does not reach there."""
_OWN = frozenset(("gh", "hub", "cockpit"))
"""Refused to the embedded engine, which has tools of its own for them; an agent outside has not."""
_OUTSIDE = "outside the project"
"""In the risk table's reasons, for a command that names such a place."""
_QUIETED = re.compile(r"[0-9&]?>&[0-9]|[0-9&]?>{1,2} ?/dev/null")
_SIGNS = re.compile(r"[\s'\"=<>|;&(){}`$]+")
_OF_EVERYBODY = frozenset(
    ("tasks", "epics", "stories", "wip", "handoff", "journal", "sessions", "packet", "metrics")
)
_LOOKS = frozenset(("list", "show", "history", "diff", "changes", "status", "--help", "-h"))
_WORDS_ONLY = frozenset(("--help", "-h", "--version"))


class PermissionDecision:
    """The answer to a tool call: ``allow`` or deny, its message, and ``by`` which rule."""

    __slots__ = ("allow", "by", "words")

    def __init__(self, allow: bool, words: str, by: str) -> None:
        self.allow = allow
        self.words = words
        self.by = by

    def answer(self, event: str) -> dict[str, Any]:
        """Return the answer in the form that both agents read."""
        if event == "PreToolUse":
            decision = "allow" if self.allow else "deny"
            return _answer(event, permissionDecision=decision, permissionDecisionReason=self.words)
        if self.allow:
            return _answer(event, decision={"behavior": "allow"})
        return _answer(event, decision={"behavior": "deny", "message": self.words})

    def body(self, event: Event) -> dict[str, Any]:
        """Return the answer as it is stored in the journal."""
        answer = "allow" if self.allow else "deny"
        subject = event.command or event.tool
        return {"tool": event.tool, "answer": answer, "by": self.by, "about": subject[:500]}


def _answer(event: str, **detail: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **detail}}


def decide_permission(event: Event, place: Checkout) -> PermissionDecision | None:
    """Answer a tool call before it runs, or a permission request; None for no answer."""
    if words := _find_tool_denial(event):
        return PermissionDecision(False, f"cockpit denies this: {words}", "deny rules")
    if event.name != "PermissionRequest":
        return None
    from cockpit.hook.read_policy import read_policy

    approval = read_policy(place.home)
    if approval not in ("reads", "all"):
        return None
    allowed = _risk(event, place)
    if allowed == "low" or (allowed == "medium" and approval == "all"):
        return PermissionDecision(
            True, f"cockpit's policy {approval!r} allows it.", f"policy:{approval}"
        )
    return None


def _find_tool_denial(event: Event) -> str:
    """Return why a command in a tool's input, of whatever tool, is never run; '' when no rule matches."""
    from cockpit.hook.tool_commands import list_tool_commands, spell_out

    commands = [event.command] if event.command else []
    commands += [each for each in list_tool_commands(event.arguments) if each not in commands]
    if event.tool not in SHELLS:
        # It may be code that runs a program from a list of its words.
        commands += [spell_out(each) for each in commands]
    return next(filter(None, map(find_denial, commands)), "")


def find_denial(command: str) -> str:
    """Return why a command line is never run; '' when no deny rule matches."""
    from cockpit.act.command_risk_table import DENIED

    names = {name for name in DENIED if name not in _OWN} | {"cockpit"}
    pieces = command
    for sign in "/\\\"'`$(){};&|<>=\n\t":
        pieces = pieces.replace(sign, " ")
    words = {word.casefold().removesuffix(".exe") for word in pieces.split()}
    if not (words & names or "dd" in words or any(word.startswith("mkfs") for word in words)):
        return ""
    # Somewhere in it is a word of the table: only now is it worth what reading it takes.
    return _denied(command)


def _denied(command: str) -> str:
    from cockpit.act.command_line import is_short_enough, script_commands
    from cockpit.act.command_risk import judge
    from cockpit.act.command_risk_table import DENIED

    if not is_short_enough(command):
        return ""
    ours = {DENIED[name] for name in _OWN}
    for part in script_commands(command):
        if part is None or not part.argv:
            continue
        argv = part.argv
        words = judge(argv).denied
        if words is None:
            continue
        if words == DENIED["cockpit"]:
            place = next((at for at, word in enumerate(argv) if _is_cockpit(word)), len(argv))
            if not _an_agent_may(argv[place + 1 :]):
                return words
        elif words not in ours and "git_commit" not in words and "script" not in words:
            return words
    return ""


def _an_agent_may(words: Sequence[str]) -> bool:
    """Whether an agent may run a ``cockpit`` command: work on the backlog, and reading."""
    command, verb = (*words[:2], "", "")[:2]
    return command in _OF_EVERYBODY | _WORDS_ONLY or verb in _LOOKS


def _is_cockpit(word: str) -> bool:
    return os.path.basename(word).casefold() == "cockpit"


def _risk(event: Event, place: Checkout) -> str:
    """Return ``low``, ``medium`` or ``high``; ``high`` for anything that is not understood."""
    if event.tool in SHELLS:
        return _risk_of_shell(event, place)
    if event.tool in _READERS:
        return _risk_of_reading(event.arguments.get(_READERS[event.tool]), event, place)
    if event.tool in _SEARCHERS:
        return _risk_of_searching(event, place)
    if event.tool in _WRITERS:
        path = event.arguments.get(_WRITERS[event.tool])
        return "medium" if _inside(path, event, place) else "high"
    # What another tool does with a command is not known, however the command reads.
    return "high"


def _risk_of_shell(event: Event, place: Checkout) -> str:
    from cockpit.access.reads.judge_reads import why_not_read
    from cockpit.hook.tool_commands import named_shell, why_not_plain

    if why_not_plain(event.arguments) or not event.command:
        return "high"
    reading = _reading_place(event, place)
    shell = named_shell(event.arguments)
    if shell and reading.why_not_program(shell):
        return "high"
    return "low" if not why_not_read(event.command, reading) else _command_risk(event.command)


def _risk_of_searching(event: Event, place: Checkout) -> str:
    """Return the risk of an agent's own search, which takes hidden files in, and files of its ``glob``."""
    path = event.arguments.get("path") or event.cwd
    if event.tool == "Grep":
        glob = event.arguments.get("glob") or ""
        # Braces and commas stand for several names: any name then.
        plain = isinstance(glob, str) and not set(glob) & set("{,! ")
        names = (glob.rpartition("/")[2] or "*",) if plain else ("*",)
        return _risk_of_reading(path, event, place, below=names)
    pattern = event.arguments.get("pattern")
    if not isinstance(pattern, str) or ".." in pattern or pattern.startswith(("/", "~", " ")):
        return "high"
    return _risk_of_reading(path, event, place)


def _reading_place(event: Event, place: Checkout) -> ReadingPlace:
    from cockpit.access.reads.reading_place import ReadingPlace

    folder = os.path.join(place.root, event.cwd or "")
    named = event.arguments.get("workdir") or event.arguments.get("cwd")
    if isinstance(named, str):
        folder = os.path.join(folder, named)
    return ReadingPlace(os.path.realpath(place.root), os.path.realpath(folder))


def _risk_of_reading(
    path: Any, event: Event, place: Checkout, *, below: tuple[str, ...] = ()
) -> str:
    """Return ``low`` for an ordinary file of the project, or a folder of which files with names like
    ``below`` are read."""
    if not _is_plain_path(path):
        return "high"
    reading = _reading_place(event, place)
    trouble = reading.why_not_folder(path, names=below) if below else reading.why_not_file(path)
    return "high" if trouble else "low"


def _is_plain_path(path: Any) -> bool:
    """Whether a path means itself: agents put the home in for ``~`` and cut blanks off at its ends."""
    if not isinstance(path, str) or not path or path != path.strip() or path.startswith("~"):
        return False
    return path.isascii() or unicodedata.is_normalized("NFC", path)


def _command_risk(command: str) -> str:
    """Return ``medium`` or ``high`` for a command that is no read."""
    from cockpit.access.parse_shell import parse_shell
    from cockpit.access.secret_files import is_sensitive
    from cockpit.access.shell_syntax import iter_items, iter_words
    from cockpit.act.command_line import CommandRefused, split_command
    from cockpit.act.command_risk import combine_verdicts, judge

    words: Sequence[str]
    try:
        words = split_command(command)
        verdict = judge(words)
    except CommandRefused:
        # The agent's shell would take it apart, so it is as risky as its parts.
        items = list(iter_items(parse_shell(command)))
        targets = [
            each.target.text for item in items for each in item.redirections if each.writes_file
        ]
        # A program in quotes may write as well (awk '{print > "x"}'), so any other ">" counts too.
        if any(target != "/dev/null" for target in targets) or ">" in _QUIETED.sub(" ", command):
            return "high"
        words = [word.text for item in items for word in iter_words((item,))]
        words += _SIGNS.split(" ".join([command, *words]))
        verdict = judge(("sh", "-c", command))
    beyond = verdict.network or any(_OUTSIDE in reason for reason in verdict.reasons)
    machinery = any(_OF_AGENTS & set(word.split("/")) for word in words)
    if verdict.denied or beyond or machinery or any(map(is_sensitive, words)):
        return "high"
    return combine_verdicts([verdict], "medium").risk


def _inside(path: Any, event: Event, place: Checkout) -> bool:
    """Whether a path to write is an ordinary file of the project: no settings of agents, no secrets."""
    from pathlib import Path

    from cockpit.access.confined_paths import Confined, PathRefused
    from cockpit.access.secret_files import is_sensitive

    if not _is_plain_path(path):
        return False
    whole = os.path.normpath(os.path.join(event.cwd or place.root, path))
    try:
        relative = os.path.relpath(whole, place.root)
        if relative == os.curdir:
            return False
        Confined(Path(place.root)).inside(relative, write=True)
    except (PathRefused, ValueError):
        return False
    return not (is_sensitive(relative) or _OF_AGENTS & set(relative.split(os.sep)))
