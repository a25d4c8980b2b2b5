"""One judge over agents' own tools: what is never run, and how risky the rest is.

Hooks, ACP and agents over standard streams ask it. A read is what
:mod:`cockpit.access.commands.reading_place` knows to be one; what is not understood is high. A hook call
loads this module, so it imports the tables only where they are needed. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os
import re
import unicodedata

from cockpit.core.state_folder import config_root, state_root
from cockpit.loop.permissions.tool_names import OF_AGENTS, READERS, SEARCHERS, SHELLS, WRITERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from cockpit.access.commands.judge_command import Risk
    from cockpit.access.commands.reading_place import ReadingPlace

_OF_EVERYBODY = frozenset(("tasks", "journal", "sessions", "packet"))
_COLLECTIONS = frozenset(
    (
        *("proposals", "notes", "skills", "profile", "tokens", "feedback", "tools", "guards"),
        *("agents", "task-types", "projects", "settings", "chain"),
    )
)
_BELOW_DEBUG = frozenset(("events", "outbox", "state", "show"))
"""What is read without a verb."""
_DECIDING = frozenset(
    (
        *("approve", "discuss", "edit", "reject", "answer", "add", "keep", "forget"),
        *("check", "install", "load", "propose", "rollback", "issue", "revoke", "give"),
        *("run", "login", "new", "set", "unset", "watch", "stop", "resume", "worktrees", "take"),
        "drop",
    )
)
"""Every other verb of these collections: a word that is none of them is the name of a row."""
_DECIDING_OPTIONS = frozenset(("--clean", "--retry"))
"""Options that make reading below ``debug`` a decision, wherever they stand."""
_WRITING = "it writes to a file that it names"
_SIGNS = re.compile(r"[\s'\"=<>|;&(){}`$]+")
_WRITES = frozenset(
    ("cp", "dd", "ed", "ex", "install", "ln", "mv", "patch", "perl", "rm", "rsync", "sed", "tee", "touch")
)  # fmt: skip
"""Programs that may write the files that they name."""
_MOVES = frozenset(("cd", "pushd", "popd", "ln", "mv"))
"""After one of these a name may mean another file: in another folder, or through a new link."""
_WORDS_ONLY = frozenset(("--help", "-h", "--version"))


class ToolRisk:
    """How risky a tool call is: ``risk`` (low, medium or high), the ``reasons`` that raised it, and
    whether it only ``reads``, whether it ``waits`` for the user under every policy, whether it is
    ``sensitive``: no rule of the user may allow it from now on, and why it is ``denied``; '' where it is not.
    Not a dataclass: importing those takes longer than a hook may."""

    __slots__ = ("denied", "reads", "reasons", "risk", "sensitive", "waits")

    def __init__(
        self,
        risk: Risk,
        reasons: Iterable[str] = (),
        *,
        reads: bool = False,
        sensitive: bool | None = None,
        waits: bool | None = None,
        denied: str = "",
    ) -> None:
        self.risk: Risk = risk
        self.reasons = tuple(dict.fromkeys(reasons))
        self.reads = reads
        self.sensitive = risk == "high" if sensitive is None else sensitive
        self.waits = risk == "high" if waits is None else waits
        self.denied = denied


class Denial:
    """What the deny rules say of a tool call: ``words`` why it is never run; else ``unjudged``, why they
    cannot tell and so the user is asked. '' for neither. Not a dataclass, as above."""

    __slots__ = ("unjudged", "words")

    def __init__(self, words: str = "", unjudged: str = "") -> None:
        self.words = words
        self.unjudged = unjudged


def find_tool_denial(tool: str, arguments: Mapping[str, Any], command: str = "") -> Denial:
    """Return what the deny rules say of the commands in a tool's input, of whatever tool."""
    from cockpit.loop.permissions.tool_commands import list_tool_commands, spell_out

    listed, is_whole = list_tool_commands(dict(arguments))
    commands = [command] if command else []
    commands += [each for each in listed if each not in commands]
    if tool not in SHELLS:
        # It may be code that runs a program from a list of its words.
        commands += [spell_out(each) for each in commands]
    denials = [find_denial(each) for each in commands]
    words = next((each.words for each in denials if each.words), "")
    unjudged = next((each.unjudged for each in denials if each.unjudged), "")
    if not (is_whole or unjudged) and _names_denied(str(arguments)):
        unjudged = "its input is too large or too deep to be looked through"
    return Denial(words, "" if words else unjudged)


def find_denial(command: str) -> Denial:
    """Return what the deny rules say of a command line."""
    from cockpit.access.commands.command_table import DENIED

    names = "|".join(name for name in DENIED if name != "su")
    if not re.search(rf"{names}|(?<![a-z])(?:su|dd)(?![a-z])", _fold(command)):
        return Denial()
    # Somewhere in it is a word of the table: only now is it worth what reading it takes.
    from cockpit.access.commands.judge_command import CommandPlace, judge_command

    verdict = judge_command(command, CommandPlace(may_run=_an_agent_may))
    if verdict.denied or not verdict.unclear:
        return Denial(verdict.denied)
    word = _names_denied(command)
    return Denial(
        unjudged=f"whether it runs {word!r}, which it names, cannot be told" if word else ""
    )


def _names_denied(text: str) -> str:
    """Return a program that is never run and that a text names; '' without one.

    The gate of cockpit's own commands is the user's presence.
    """
    from cockpit.access.commands.command_table import DENIED

    named = "|".join(name for name in DENIED if name != "cockpit")
    match = re.search(rf"(?<![\w.-])(?:{named})(?![\w-])", _fold(text))
    return match[0] if match else ""


def _fold(text: str) -> str:
    """Return a text in small letters, without the signs that may stand within a word of a shell."""
    return re.sub(r"[\\\"']", "", text).casefold()


def _an_agent_may(words: Sequence[str]) -> bool:
    """Whether an agent may run a ``cockpit`` command: work on the backlog, and reading."""
    if _DECIDING_OPTIONS.intersection(words):
        return False
    if words[:1] == ["debug"]:
        words, readable = words[1:], _BELOW_DEBUG
    else:
        readable = _COLLECTIONS
    command, verb = (*words[:2], "", "")[:2]
    if command in _OF_EVERYBODY | _WORDS_ONLY or verb in _WORDS_ONLY:
        return True
    return command in readable and verb not in _DECIDING


def judge_tool(
    tool: str, arguments: Mapping[str, Any], command: str, *, root: str, cwd: str
) -> ToolRisk:
    """Judge a call of one of Claude Code's or Codex's tools, by its name.

    ``command`` is the shell text of a shell tool, ``root`` the top of the worktree, ``cwd`` the folder
    that the agent works in.
    """
    if tool in SHELLS:
        return judge_shell(arguments, command, root=root, cwd=cwd)
    if tool in READERS or tool in SEARCHERS:
        from cockpit.loop.permissions.tool_commands import why_not_plain_read

        if strange := why_not_plain_read(arguments):
            reason = f"its argument {strange[:60]!r} may change what it reads"
            return ToolRisk("high", (reason,))
    if tool in READERS:
        return judge_reading(arguments.get(READERS[tool]), root=root, cwd=cwd)
    if tool in SEARCHERS:
        return judge_searching(tool, arguments, root=root, cwd=cwd)
    if tool in WRITERS:
        return judge_writing(arguments.get(WRITERS[tool]), root=root, cwd=cwd)
    # What another tool does with a command is not known, however the command reads.
    return ToolRisk("high", ("what this tool does cannot be judged",))


def judge_shell(
    arguments: Mapping[str, Any], command: str, *, root: str, cwd: str, confined: bool = False
) -> ToolRisk:
    """Judge a command of an agent's own shell; ``arguments`` are those of its tool.

    ``confined`` says that the agent runs in our sandbox.
    """
    from cockpit.access.commands.judge_command import OUTSIDE, CommandPlace, judge_command
    from cockpit.access.commands.reading_place import why_not_read
    from cockpit.loop.permissions.tool_commands import list_shells, peel_shells, why_not_plain

    if not command:
        return ToolRisk("high", ("the command is not stated",))
    if strange := why_not_plain(dict(arguments)):
        return ToolRisk(
            "high", (f"its argument {strange[:60]!r} may change what the command does",)
        )
    reading = _reading_place(arguments, root, cwd)
    if reading is None:
        return ToolRisk("high", ("the folder that it runs in cannot be judged",))
    script, shells = peel_shells(command)
    for shell in dict.fromkeys([*list_shells(dict(arguments)), *shells]):
        if reading.why_not_program(shell):
            return ToolRisk("high", (f"its shell {shell[:60]!r} is not the system's",))
    if not why_not_read(script, reading):
        return ToolRisk("low", reads=True)
    verdict = judge_command(script, CommandPlace(confined, reading.root, _an_agent_may))
    folder = reading.cwd
    writes, troubles = _list_troubles(
        script, lambda path: _why_not_inside(path, root, folder), unclear=verdict.unclear
    )
    # A redirection empties its file first: the user sees each.
    shown = [*([_WRITING] if writes else []), *troubles, *verdict.reasons]
    is_outside = not confined and OUTSIDE.words in verdict.reasons
    return ToolRisk(
        "high" if troubles else verdict.risk,
        shown,
        sensitive=writes or bool(troubles) or verdict.unclear or is_outside,
        waits=verdict.waits or bool(troubles),
    )


def _list_troubles(
    script: str, why_not_target: Callable[[str], str], *, unclear: bool
) -> tuple[bool, list[str]]:
    """Return whether a script writes to files by redirection, and what is wrong with files that it names."""
    from cockpit.access.commands.command_table import file_risk
    from cockpit.access.parse_shell import parse_shell
    from cockpit.access.secret_files import is_sensitive
    from cockpit.access.shell_syntax import iter_items, iter_words

    try:
        items = list(iter_items(parse_shell(script)))
    except RecursionError:
        return True, ["it is nested too deep to be judged"]
    texts = [word.text for word in iter_words(items)]
    # What a script in quotes names is not a word of its own: its signs count as blanks.
    words = {*texts, *_SIGNS.split(script), *_SIGNS.split(" ".join(texts))}
    targets = [each.target for item in items for each in item.redirections if each.writes_file]
    targets = [each for each in targets if each.text != "/dev/null"]
    troubles = []
    for target in targets:
        is_known = not target.marks and not words & _MOVES
        troubles.append(why_not_target(target.text) if is_known else _WRITING)
    may_write = unclear or any(word.rpartition("/")[2] in _WRITES for word in words)
    names = {word for each in words for word in (each, each.rpartition("=")[2]) if word}
    if may_write and any(file_risk(os.path.normpath(name)) == "high" for name in names):
        troubles.append("it may change a file that steers what runs or what agents read")
    if any(OF_AGENTS & set(word.split("/")) for word in words):
        troubles.append("it names settings of agents")
    if any(map(is_sensitive, words)):
        troubles.append("it names a file that usually has secrets")
    return bool(targets), list(filter(None, troubles))


def judge_searching(tool: str, arguments: Mapping[str, Any], *, root: str, cwd: str) -> ToolRisk:
    """Judge an agent's own search, which takes hidden files in, and files of its ``glob``."""
    path = arguments.get("path") or cwd
    if tool == "Grep":
        glob = arguments.get("glob") or ""
        # Braces and commas stand for several names: any name then.
        plain = isinstance(glob, str) and not set(glob) & set("{,! ")
        names = (glob.rpartition("/")[2] or "*",) if plain else ("*",)
        return judge_reading(path, root=root, cwd=cwd, below=names)
    pattern = arguments.get("pattern")
    if not isinstance(pattern, str) or ".." in pattern or pattern.startswith(("/", "~", " ")):
        return ToolRisk("high", ("its pattern may leave the project",))
    return judge_reading(path, root=root, cwd=cwd)


def judge_reading(path: Any, *, root: str, cwd: str, below: tuple[str, ...] = ()) -> ToolRisk:
    """Judge the reading of a file of the project, or of a folder's files with names like ``below``."""
    if not _is_plain_path(path):
        return ToolRisk("high", ("its path cannot be judged",))
    reading = _reading_place({}, root, cwd)
    if reading is None:
        return ToolRisk("high", ("its folder cannot be judged",))
    trouble = reading.why_not_folder(path, names=below) if below else reading.why_not_file(path)
    if trouble:
        return ToolRisk("high", (trouble,))
    return ToolRisk("low", reads=True)


def judge_writing(path: Any, *, root: str, cwd: str) -> ToolRisk:
    """Judge a change of one file: medium for an ordinary file of the project."""
    if trouble := _why_not_inside(path, root, cwd):
        return ToolRisk("high", (trouble,))
    return ToolRisk("medium")


def _reading_place(arguments: Mapping[str, Any], root: str, cwd: str) -> ReadingPlace | None:
    """Return where the tool reads; None for a folder that the system does not take."""
    from cockpit.access.commands.reading_place import ReadingPlace

    folder = os.path.join(root, cwd or "")
    named = arguments.get("workdir") or arguments.get("cwd")
    if isinstance(named, str):
        folder = os.path.join(folder, named)
    try:
        return ReadingPlace(os.path.realpath(root), os.path.realpath(folder))
    except ValueError:
        return None


def _is_plain_path(path: Any) -> bool:
    """Whether a path means itself: agents put the home in for ``~`` and cut blanks off at its ends."""
    if not isinstance(path, str) or not path or path != path.strip() or path.startswith("~"):
        return False
    return path.isascii() or unicodedata.is_normalized("NFC", path)


def _why_not_inside(path: Any, root: str, cwd: str) -> str:
    """Say why a path to write is not an ordinary file of the project, without secrets or rules of agents."""
    from pathlib import Path

    from cockpit.access.commands.command_table import file_risk
    from cockpit.access.confined_paths import Confined, PathRefused
    from cockpit.access.secret_files import is_sensitive

    if not _is_plain_path(path):
        return "its path cannot be judged"
    try:
        relative = locate_path(path, root=root, cwd=cwd)
        if relative == os.curdir:
            return "its path is the project's own folder"
        Confined(Path(root)).inside(relative, write=True)
    except PathRefused as error:
        return f"its path leads elsewhere: {error.reason}"
    except ValueError:
        return "its path cannot be judged"
    if is_sensitive(relative):
        return "the file usually has secrets"
    if OF_AGENTS & set(relative.split(os.sep)):
        return "it changes settings of agents"
    if file_risk(relative) == "high":
        return "it changes a file that steers what runs or what agents read"
    return ""


def locate_path(path: str, *, root: str, cwd: str) -> str:
    """Return the place of ``path`` from ``root``, with ``..`` in front where it lies outside.

    An agent may name the project by another way than cockpit does: through a link above it. Raises
    ``ValueError`` for a path that the system does not take.
    """
    whole = os.path.normpath(os.path.join(cwd or root, path))
    relative = os.path.relpath(whole, root)
    if relative.split(os.sep)[0] != os.pardir:
        return relative
    folder, name = os.path.split(whole)
    real = os.path.relpath(os.path.join(os.path.realpath(folder), name), os.path.realpath(root))
    return relative if real.split(os.sep)[0] == os.pardir else real


def find_write_denial(path: str, *, root: str, cwd: str) -> str:
    """Return why no agent changes the file, whoever allows it; '' when no deny rule matches."""
    whole = os.path.join(cwd or root, path)
    try:
        real = os.path.realpath(whole)
    except (OSError, ValueError):
        return ""
    state, top = os.path.realpath(state_root()), os.path.realpath(root)
    named = os.environ.get("COCKPIT_CONFIG_DIR", "").strip()
    folders = (state, os.path.realpath(os.path.expanduser(named) if named else config_root()))
    inside = any(
        place == folder or place.startswith(f"{folder}{os.sep}")
        for place in (real, os.path.normpath(whole))
        for folder in folders
    )
    # A worktree of a task lies in the state: there its files are the agent's work.
    own = top.startswith(f"{state}{os.sep}") and (real == top or real.startswith(f"{top}{os.sep}"))
    return (
        "cockpit's own state and settings are never changed by agents" if inside and not own else ""
    )
