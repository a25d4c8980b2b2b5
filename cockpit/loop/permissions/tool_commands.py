"""The commands in a tool's input, whatever the tool and its arguments are called.

A shell may be reached through any tool of an MCP server. What looks like a command, at any depth of the
input, is judged by the deny rules like a command of the agent's own shell. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import json
import os
import re

from cockpit.loop.permissions.tool_names import SHELL_PROGRAMS, join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_COMMANDS = frozenset(
    """
    command commands commandline cmd cmds cmdline script scripts argv code source program programs shell
    shellcommand bash sh zsh powershell exec execute executable run runcommand invocation expression eval
    stdin chars keys keystrokes sendkeys terminalinput prehook posthook
    """.split()  # noqa: SIM905 - forty quoted words a line each are no easier to read
)
"""Names of arguments that hold commands, in lower case and without signs."""
_PROGRAMS = ("command", "cmd", "program", "executable", "shell", "file")
_ARGUMENTS = ("args", "arguments", "argv", "parameters", "params")
_SHELL_ARGUMENTS = frozenset(
    """
    command cmd description timeout timeout_ms run_in_background workdir cwd justification yield_time_ms
    max_output_tokens login tty with_escalated_permissions sandbox_permissions prefix_rule parsed_cmd
    call_id turn_id reason
    """.split()  # noqa: SIM905 - as above
)
"""Arguments of agents' own shells under which a command is the one that is shown."""
_READ_PATHS = (
    *(
        "file_path",
        "filePath",
        "notebook_path",
        "path",
        "abs_path",
        "absolute_path",
        "filepath",
        "file",
    ),
    *("target", "dir_path", "directory"),
)
_READ_ARGUMENTS = frozenset(
    """
    offset limit line lines start end start_line end_line startLine endLine pages pattern glob query
    regex type output_mode head_limit multiline include case_sensitive description reason tool_name
    -n -i -A -B -C
    """.split()  # noqa: SIM905 - as above
) | {*_READ_PATHS}
"""Arguments of tools that read or search, under which a call reads what its path says."""
_SIGNS = re.compile(r"[\[\],\"'`+]+")
_NO_LETTER = re.compile(r"[^a-z0-9]")
_DEEPEST = 12
_MOST = 4_000
_LONGEST_JSON = 200_000
_LONGEST_LINE = 200_000
"""Characters of a line that is looked into for a script."""


def list_tool_commands(arguments: dict[str, Any]) -> tuple[list[str], bool]:
    """List the texts in a tool's input that may be commands, each as shell text, without repeats.

    The second value says whether the whole input was looked through.
    """
    commands: dict[str, None] = {}
    waiting: list[tuple[Any, bool, int]] = [(arguments, False, 0)]
    count, is_whole = 0, True
    while waiting and count < _MOST:
        value, is_command, depth = waiting.pop()
        count += 1
        if depth > _DEEPEST:
            is_whole = False
            continue
        if isinstance(value, str):
            nested = _parse_object(value)
            if nested is not None:
                waiting.append((nested, is_command, depth + 1))
            elif len(value) > _LONGEST_JSON and not is_command and value.lstrip()[:1] in ("{", "["):
                is_whole = False
            if is_command and value.strip():
                commands[value] = None
        elif isinstance(value, dict):
            if joined := _join_program(value):
                commands[joined] = None
            for name, each in value.items():
                waiting.append((each, is_command or _names_command(name), depth + 1))
        elif isinstance(value, list):
            words = [word for word in value if isinstance(word, str)]
            if is_command and len(words) > 1:
                commands[join_words(words)] = None
            waiting += [(each, is_command, depth + 1) for each in value]
    return list(commands), is_whole and not waiting


def spell_out(command: str) -> str:
    """Return code with the signs of lists and strings as blanks: ``run(["rm", "x"])`` holds ``rm x``."""
    return _SIGNS.sub(" ", command)


def why_not_plain(arguments: dict[str, Any]) -> str:
    """Say which argument of an agent's own shell may change what its command does; '' when none does."""
    for name in arguments:
        if name not in _SHELL_ARGUMENTS:
            return name
    for pair in (("command", "cmd"), ("workdir", "cwd")):
        if all(name in arguments for name in pair):
            return " and ".join(pair)
    for name in ("workdir", "cwd"):
        if not isinstance(arguments.get(name, ""), str):
            return name
    command = arguments.get("command", arguments.get("cmd"))
    is_words = isinstance(command, list) and all(isinstance(word, str) for word in command)
    return "" if isinstance(command, str) or is_words else "command"


def why_not_plain_read(arguments: Mapping[str, Any]) -> str:
    """Say which argument of a tool that reads is unknown, or names files a second time; '' when none does."""
    for name, value in arguments.items():
        if name not in _READ_ARGUMENTS or not isinstance(value, str | int | float | bool | None):
            return name
    named = [name for name in _READ_PATHS if arguments.get(name)]
    return " and ".join(named) if len({arguments[name] for name in named}) > 1 else ""


def list_shells(arguments: dict[str, Any]) -> list[str]:
    """List the shells that the command of an agent's own shell names; none where the agent chooses it."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list) and command and isinstance(command[0], str):
        first = [command[0]] if os.path.basename(command[0]) in SHELL_PROGRAMS else []
        script = join_words([word for word in command if isinstance(word, str)])
        return first + peel_shells(script)[1]
    return peel_shells(command)[1] if isinstance(command, str) else []


def peel_shells(command: str) -> tuple[str, list[str]]:
    """Return what a line that only starts a shell has it run, and the shells that it names, outermost first.

    ``bash -lc 'make test'`` is ``make test``, whether an agent sends it as text or as a list of words. A line
    that does anything else, such as redirecting the shell's output, is returned as it is.
    """
    shells: list[str] = []
    while len(shells) < _DEEPEST:
        words = _read_shell_call(command)
        if not words:
            break
        shells.append(words[0])
        command = words[2]
    return command, shells


def _read_shell_call(command: str) -> list[str]:
    """Return the three words of ``sh -c SCRIPT``; none for any other line and a composed script."""
    start = command.split(None, 2)
    if len(start) < 3 or start[1] not in ("-c", "-lc"):
        return []
    if os.path.basename(start[0]) not in SHELL_PROGRAMS or len(command) > _LONGEST_LINE:
        return []
    from cockpit.access.parse_shell import parse_shell
    from cockpit.access.shell_syntax import SimpleCommand

    script = parse_shell(command)
    if len(script.items) != 1 or script.separators or script.comments or script.errors:
        return []
    (item,) = script.items
    if not isinstance(item, SimpleCommand) or item.assignments or item.redirections:
        return []
    if len(item.words) != 3 or any(word.marks for word in item.words):
        return []
    return [word.text for word in item.words]


def _names_command(name: Any) -> bool:
    return isinstance(name, str) and _NO_LETTER.sub("", name.lower()) in _COMMANDS


def _join_program(value: dict[str, Any]) -> str:
    """Return the command that a program and its arguments, in two members, make together."""
    plain = {_NO_LETTER.sub("", str(name).lower()): each for name, each in value.items()}
    program = next((plain[name] for name in _PROGRAMS if isinstance(plain.get(name), str)), "")
    rest = next((plain[name] for name in _ARGUMENTS if plain.get(name)), None)
    if not program or not isinstance(rest, str | list):
        return ""
    words = [rest] if isinstance(rest, str) else [str(word) for word in rest]
    if isinstance(rest, str):
        return f"{program} {rest}"
    return join_words([*program.split(), *words])


def _parse_object(text: str) -> Any:
    """Return the object or list that a text is written as; None for any other text."""
    stripped = text.strip()
    if len(stripped) > _LONGEST_JSON or stripped[:1] + stripped[-1:] not in ("{}", "[]"):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None
