"""The risk of a command in an agent's own shell that is not a read: medium or high.

A file that it writes by redirection is judged as an edit of that file, where the line says which one that
is. What cannot be judged is high, so no policy lets it pass. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import os
import re

from cockpit.loop.permissions.tool_names import OF_AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.access.commands.judge_command import Risk

_WRITING = "it writes to a file that it names"
_SIGNS = re.compile(r"[\s'\"=<>|;&(){}`$]+")
_WRITES = frozenset(
    (
        "cp",
        "dd",
        "ed",
        "ex",
        "install",
        "ln",
        "mv",
        "patch",
        "perl",
        "rm",
        "rsync",
        "sed",
        "tee",
        "touch",
    )
)
"""Programs that may write the files that they name."""
_MOVES = frozenset(("cd", "pushd", "popd", "ln", "mv"))
"""After one of these a name may mean another file: in another folder, or through a new link."""


def judge_command(
    command: str, why_not_target: Callable[[str], str]
) -> tuple[Risk, Sequence[str], bool]:
    """Return a command's risk, its reasons, and whether no rule of the user may allow it.

    ``why_not_target`` says why a path is not an ordinary file of the project to write; '' for one.
    """
    from cockpit.access.commands.command_table import file_risk
    from cockpit.access.commands.judge_command import OUTSIDE, judge_line
    from cockpit.access.parse_shell import parse_shell
    from cockpit.access.secret_files import is_sensitive
    from cockpit.access.shell_syntax import iter_items, iter_words
    from cockpit.loop.permissions.ordinary_commands import why_not_ordinary

    verdict = judge_line(command)
    try:
        items = list(iter_items(parse_shell(command)))
    except RecursionError:
        return "high", verdict.reasons, True
    texts = [word.text for word in iter_words(items)]
    # What a script in quotes names is not a word of its own: its signs count as blanks.
    words = {*texts, *_SIGNS.split(command), *_SIGNS.split(" ".join(texts))}
    targets = [each.target for item in items for each in item.redirections if each.writes_file]
    targets = [each for each in targets if each.text != "/dev/null"]
    reasons: list[str] = []
    for target in targets:
        is_known = not target.marks and not words & _MOVES
        trouble = why_not_target(target.text) if is_known else _WRITING
        reasons += [trouble] if trouble else []
    may_write = verdict.unknown or any(word.rpartition("/")[2] in _WRITES for word in words)
    names = {word for each in words for word in (each, each.rpartition("=")[2]) if word}
    if may_write and any(file_risk(os.path.normpath(name)) == "high" for name in names):
        reasons.append("it may change a file that steers what runs or what agents read")
    if verdict.denied:
        reasons.append("cockpit's own agent never runs it")
    if any(OF_AGENTS & set(word.split("/")) for word in words):
        reasons.append("it names settings of agents")
    if any(map(is_sensitive, words)):
        reasons.append("it names a file that usually has secrets")
    is_outside = OUTSIDE in verdict.reasons
    is_high = bool(reasons) or verdict.unknown or is_outside
    strange = "" if is_high else why_not_ordinary(command)
    risk: Risk = "high" if is_high or strange else verdict.risk
    # A redirection empties its file first: the user sees each.
    shown = [*([_WRITING] if targets else []), *reasons, strange, *verdict.reasons]
    return risk, list(dict.fromkeys(filter(None, shown))), bool(targets) or is_high
