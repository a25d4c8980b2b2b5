"""The error entry of a failed command: its kind, its place, and the line that states it.

A search without a match and a comparison that finds a difference have not failed. Where a pipe hides
the exit code, the output decides. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.access.shell_commands import RanCommand
from cockpit.core.failure_lines import pick_failure_lines
from cockpit.learn.capture_edits import relative_to_root
from cockpit.learn.test_output import TestResults, masked, plain

_MESSAGE = 400
_COMMAND = 200
_LINES = 2_000

_ANSWERS = frozenset(
    ["grep", "egrep", "fgrep", "rg", "ag", "ack", "diff", "cmp", "test", "[", "[[", "which", "type"]
)
"""Programs whose exit code 1 is an answer."""
_FINDERS = frozenset(
    ["cat", "grep", "egrep", "rg", "head", "tail", "sed", "awk", "find", "ls", "nl", "sort", "cut"]
)
_TELLERS = _FINDERS | {
    "wc",
    "uniq",
    "tr",
    "less",
    "xargs",
    "cd",
    "echo",
    "printf",
    "true",
    "export",
}
_TELLERS |= {"set", "mkdir", "sleep", "tee", "cp", "mv", "rm", "touch"}
"""Programs whose output is of other things."""
_GIT_ANSWERS = frozenset(["grep", "--exit-code", "--quiet"])
_TRACE = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)
_RAISED = re.compile(r"([A-Za-z_][\w.]*)(?:: .*)?$")
_FRAME = re.compile(r'^[ \t]*File "(?P<file>[^"<>\n]+)", line (?P<line>\d+)', re.MULTILINE)
_PLACE = re.compile(
    r"^[ \t]*(?:-->[ \t]*)?(?P<file>[\w./@+-]+\.[A-Za-z]{1,5})[:(](?P<line>\d+)\b", re.MULTILINE
)
_SIGNS = (
    ("command_not_found", re.compile(r"^.{0,80}(?:command not found|: not found)\s*$")),
    ("module_not_found", re.compile(r"No module named \S+|Cannot find module .+")),
    ("no_such_file", re.compile(r"No such file or directory|cannot access |can't open file ")),
    ("permission_denied", re.compile(r"Permission denied|Operation not permitted")),
    ("syntax_error", re.compile(r"^.{0,200}(?:SyntaxError|syntax error)\b.*")),
    ("git_error", re.compile(r"^(?:fatal|error): .+")),
    ("npm_error", re.compile(r"^npm (?:ERR!|error) .+")),
    ("compile_error", re.compile(r"^error(?:\[\w+\])?: .+|^.+: error: .+|^.+: undefined: .+")),
    ("error", re.compile(r"^(?:ERROR|Error|error)\b[: ].+|^[\w./-]+: (?:error|cannot|invalid) .+")),
)
"""Lines that tell a failure, the surest first."""
_SURE = ("command_not_found", "module_not_found", "npm_error", "git_error")
"""Those which a command that succeeded does not print."""


def describe_failure(
    simple: Sequence[RanCommand],
    command: str,
    output: str,
    exit_code: int | None,
    tests: TestResults | None,
    *,
    root: str = "",
) -> dict[str, str] | None:
    """Return the entry for ``errors`` of a command that ended; None when it did not fail.

    ``output`` is both streams as they came. The entry has ``type``, ``message``, ``command`` and, where the
    output names it, ``file`` (``path:line``, relative to ``root``).
    """
    text = plain(output)
    if tests is not None and tests.outcome == "fail" and tests.ran and tests.counted:
        return _entry(
            "test_failure", tests.failing_test or _last(text), _place(text, root), command
        )
    if not _failed(simple, text, exit_code) and not (tests and tests.outcome == "fail"):
        return None
    trace = _traceback(text)
    if trace is not None:
        kind, message = trace
        return _entry(kind, message, _place(text, root), command)
    lines = _lines(text)
    for kind, sign in _SIGNS:
        line = next((line for line in lines if sign.search(line)), "")
        if line:
            return _entry(kind, line, _place(text, root), command)
    code = f"exit code {exit_code}" if exit_code else "failed"
    kind = "test_failure" if tests is not None else "exit_code"
    last = _last(text)
    return _entry(kind, f"{code}: {last}" if last else code, _place(text, root), command)


def _failed(simple: Sequence[RanCommand], text: str, exit_code: int | None) -> bool:
    if exit_code:
        return not _answer(simple, text, exit_code)
    # Whose failure would not show in the exit code of the whole.
    hidden = [each for each in simple if exit_code is None or masked(simple, each)]
    return _tells_failure(hidden, text)


def _answer(simple: Sequence[RanCommand], text: str, exit_code: int) -> bool:
    """Whether exit code 1 is the answer of a search or a comparison: no match, or different."""
    if exit_code != 1 or not simple:
        return False
    last = _pipeline(simple)
    asks = _asks(last[-1]) or (last[-1].program in _TELLERS and any(map(_asks, last)))
    # A search behind a pipe has read what the program before it said, of whatever code.
    return asks and not re.search(r"No such file or directory|Permission denied|: not found", text)


def _asks(command: RanCommand) -> bool:
    return command.program in _ANSWERS or (
        command.program == "git" and not _GIT_ANSWERS.isdisjoint(command.argv)
    )


def _pipeline(simple: Sequence[RanCommand]) -> Sequence[RanCommand]:
    """Return the last pipeline: with ``pipefail`` the exit code may be any of its programs'."""
    begins = max(
        place for place, command in enumerate(simple) if place == 0 or command.joined != "|"
    )
    return simple[begins:]


def _tells_failure(hidden: Sequence[RanCommand], text: str) -> bool:
    if all(command.program in _TELLERS for command in hidden):
        return False  # what they found may tell of any failure
    if _TRACE.search(text) and _traceback(text) is not None:
        return True
    signs = [sign for kind, sign in _SIGNS if kind in _SURE]
    return any(sign.search(line) for line in _lines(text) for sign in signs)


def _traceback(text: str) -> tuple[str, str] | None:
    """Return kind and message of Python's last uncaught exception; None without one."""
    begun = list(_TRACE.finditer(text))
    if not begun:
        return None
    for line in text[begun[-1].end() :].splitlines()[1:]:
        if line[:1] in (" ", "\t", ""):
            continue
        raised = _RAISED.match(line)
        name = raised[1].rpartition(".")[2] if raised else ""
        # What is printed after a traceback stands at the edge as well: an exception is a class.
        return (_snake(name), line) if name[:1].isupper() or name.endswith("error") else None
    return None


def _place(text: str, root: str) -> str:
    """Return the last place in the project that the output names, as ``path:line``; '' for none."""
    matches = [*_FRAME.finditer(text), *_PLACE.finditer(text)]
    best = ""
    for match in matches:
        inside = relative_to_root(match["file"], root, root)
        if inside and "site-packages" not in inside and "node_modules" not in inside:
            best = f"{inside}:{match['line']}"
            if match.re is _PLACE:
                break
    return best


def _entry(kind: str, message: str, file: str, command: str) -> dict[str, str]:
    entry = {"type": kind, "message": " ".join(message.split())[:_MESSAGE]}
    if file:
        entry["file"] = file
    entry["command"] = error_command(command)
    return entry


def error_command(command: str) -> str:
    """Return a command as an error names it: of a script only the beginning, to be recognised by."""
    return " ".join(command.split())[:_COMMAND]


def _lines(text: str) -> list[str]:
    """Return the lines that are not blank; of very long output those that say what failed, and the last."""
    lines = [line for line in text.splitlines() if line and not line.isspace()]
    if len(lines) <= _LINES:
        return lines
    return [*pick_failure_lines("\n".join(lines[:-_LINES])), *lines[-_LINES:]]


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
