"""The risk of a command in an agent's own shell that is not a read: medium or high.

The shell takes a line apart, so it is as risky as its parts. A file that it writes by redirection is judged
as an edit of that file, where the line says which one that is. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import os
import re

from cockpit.loop.permissions.tool_names import OF_AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cockpit.access.shell_syntax import Item
    from cockpit.act.command_risk import Risk

_OUTSIDE = "outside the project"
"""In the risk table's reasons, for a command that names such a place."""
_SCRIPT = "it runs a script inside a shell"
_CODE = "it runs code given on the command line"
"""In its reasons, for a command with a program in one of its words."""
_WRITING = "it writes to a file that it names"
_QUIETED = re.compile(r"[0-9&]?>&[0-9]|[0-9&]?>{1,2} ?/dev/null")
_SIGNS = re.compile(r"[\s'\"=<>|;&(){}`$]+")
_WRITES = frozenset(
    """
    awk cp dd ed ex gawk install ln mawk mv nawk patch perl rm rsync sed tee touch truncate vi vim
    """.split()  # noqa: SIM905 - as in the table: no list of quoted words
)
"""Programs that may write the files that they name."""
_MOVES = frozenset("cd pushd popd chdir chroot ln mv cp rsync install tar unzip git patch".split())  # noqa: SIM905
"""After one of these a name may mean another file: in another folder, or through a new link."""


def judge_command(
    command: str, why_not_target: Callable[[str], str]
) -> tuple[Risk, Sequence[str], bool]:
    """Return a command's risk, its reasons, and whether no rule of the user may allow it.

    ``why_not_target`` says why a path is not an ordinary file of the project to write; '' for one.
    """
    from cockpit.access.parse_shell import parse_shell
    from cockpit.access.secret_files import is_sensitive
    from cockpit.access.shell_syntax import iter_items, iter_words
    from cockpit.act.command_line import CommandRefused, split_command
    from cockpit.act.command_risk import combine_verdicts, judge

    # What a script in quotes names is not a word of its own: its signs count as blanks.
    words = _SIGNS.split(command)
    try:
        argv = split_command(command)
        verdict = judge(argv)
        words += argv
        # A shell or awk in the line has a script, whose redirections are not those of the line.
        writes = _has_script(verdict.reasons) and ">" in _QUIETED.sub(" ", command)
        trouble = _WRITING if writes else ""
    except CommandRefused:
        items = list(iter_items(parse_shell(command)))
        texts = [word.text for item in items for word in iter_words((item,))]
        words += [*texts, *_SIGNS.split(" ".join(texts))]
        verdict = judge(("sh", "-c", command))
        writes, trouble = _judge_targets(command, items, why_not_target)
    reasons = [trouble] if trouble else []
    if verdict.risk != "low" and _names_steering(words, verdict.reasons):
        reasons.append("it may change a file that steers what runs or what agents read")
    if verdict.denied:
        reasons.append("cockpit's own agent never runs it")
    if any(OF_AGENTS & set(word.split("/")) for word in words):
        reasons.append("it names settings of agents")
    if any(map(is_sensitive, words)):
        reasons.append("it names a file that usually has secrets")
    is_outside = any(_OUTSIDE in reason for reason in verdict.reasons)
    raised = bool(reasons) or verdict.network or is_outside
    risk: Risk = "high" if raised else combine_verdicts([verdict], "medium").risk
    if writes:
        reasons = list(dict.fromkeys([_WRITING, *reasons]))
    # A redirection empties its file first: the user sees each.
    return risk, [*reasons, *verdict.reasons], bool(reasons) or is_outside


def _judge_targets(
    command: str, items: Sequence[Item], why_not_target: Callable[[str], str]
) -> tuple[bool, str]:
    """Return whether a line writes files by redirection, and what about them is not ordinary."""
    from cockpit.access.shell_syntax import iter_words

    targets = [each.target for item in items for each in item.redirections if each.writes_file]
    targets = [each for each in targets if each.text != "/dev/null"]
    bodies = [each.body for item in items for each in item.redirections if each.body is not None]
    words = [word.text for item in items for word in iter_words((item,)) if word not in bodies]
    # A program in quotes may write as well (awk '{print > "x"}'), so any other ">" counts too.
    plain = [each.text for each in targets if not each.marks]
    hidden = ">" in _QUIETED.sub(" ", " ".join(words))
    if not (targets or hidden or ">" in _QUIETED.sub(" ", command)):
        return False, ""
    names = {word.rpartition("/")[2] for word in words}
    is_plain = bool(targets) and len(plain) == len(targets) and not hidden
    if not is_plain or names & _MOVES or _reads_script(names):
        return True, _WRITING
    return True, next(filter(None, map(why_not_target, plain)), "")


def _reads_script(names: Iterable[str]) -> bool:
    """Whether one of these programs may take its script from its input or from a word."""
    from cockpit.act.command_risk_table import INTERPRETERS, SHELLS

    scripted = {
        *SHELLS,
        *INTERPRETERS,
        "awk",
        "gawk",
        "mawk",
        "nawk",
        "eval",
        "source",
        ".",
        "xargs",
    }
    return any(name in scripted or name.startswith(("python", "pypy")) for name in names)


def _has_script(reasons: Iterable[str]) -> bool:
    """Whether a verdict's reasons say that a word of the command is a program in itself."""
    return any(reason == _SCRIPT or "awk program" in reason for reason in reasons)


def _names_steering(words: Iterable[str], reasons: Iterable[str]) -> bool:
    """Whether a command that may write what its words name names a file that steers what runs."""
    from cockpit.act.command_risk_table import file_risk

    names = set(words)
    if not (_CODE in reasons or any(name.rpartition("/")[2] in _WRITES for name in names)):
        return False
    values = names | {name.rpartition("=")[2] for name in names}
    return any(name and file_risk(os.path.normpath(name)) == "high" for name in values)
