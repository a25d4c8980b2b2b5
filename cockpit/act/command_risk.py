"""The risk of a command, from a table.

A command is as risky as its riskiest part, however it is wrapped: through ``env``, ``xargs``,
``timeout``, ``find -exec``, a shell's ``-c``, or all of them inside each other. A program that is not
in the table is never low. The verdict informs the user and the approval policy; the sandbox confines.
See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Literal

from msgspec import Struct

from cockpit.access.parse_shell import parse_shell
from cockpit.access.reads.judge_reads import why_not_read_options
from cockpit.access.shell_syntax import iter_words
from cockpit.act.command_line import is_short_enough, script_commands
from cockpit.act.command_risk_table import (
    DENIED,
    GIT_LOW,
    GIT_MEDIUM,
    HIGH,
    INTERPRETERS,
    LOW,
    MEDIUM,
    NETWORKED,
    PASS_THROUGH,
    READERS,
    RUNNERS,
    SHELLS,
    SUBCOMMANDS,
)
from cockpit.core.state_folder import names_state

Risk = Literal["low", "medium", "high"]

_ORDER: dict[Risk, int] = {"low": 0, "medium": 1, "high": 2}
_DEPTH = 12
_WORK = 1_500
_TOO_MUCH = (
    "Its script is too long or too deeply nested to be judged; write it to a file and run that."
)
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=")
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_LOADED = re.compile(
    r"^(?:PATH|LD_.*|DYLD_.*|PYTHON(?:PATH|STARTUP|HOME)|GIT_.*|NODE_OPTIONS|BASH_ENV|ENV|"
    r"PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS)$"
)


class Verdict(Struct, frozen=True):
    """The risk of a command.

    ``denied`` is the message when the command is never run; ``reasons`` say what raised the risk;
    ``network`` says that such a command needs the network.
    """

    risk: Risk
    reasons: tuple[str, ...] = ()
    denied: str | None = None
    network: bool = False


class _Level(Struct, frozen=True):
    """How deep the wrapping is, and how many commands may still be judged in all (shared, counted down).

    In a ``guess`` a glob as program is no reason for high risk: it is probably no command.
    """

    depth: int
    left: list[int]
    guess: bool = False

    def deeper(self, *, guess: bool = False) -> _Level:
        return _Level(self.depth + 1, self.left, self.guess or guess)

    def exhausted(self) -> bool:
        self.left[0] -= 1
        return self.depth > _DEPTH or self.left[0] < 0


def combine_verdicts(verdicts: Sequence[Verdict], floor: Risk = "low") -> Verdict:
    """Combine verdicts: the highest risk, the first denial, every reason once."""
    risk = max((v.risk for v in verdicts), key=_ORDER.__getitem__, default=floor)
    reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
    return Verdict(
        risk=max(risk, floor, key=_ORDER.__getitem__),
        reasons=tuple(reasons),
        denied=next((v.denied for v in verdicts if v.denied), None),
        network=any(v.network for v in verdicts),
    )


def judge(argv: Sequence[str]) -> Verdict:
    """Return the verdict over one command, wrappers and nested scripts included."""
    return combine_verdicts([_judge(tuple(argv), _Level(0, [_WORK])), _places(argv)])


def _judge(argv: tuple[str, ...], level: _Level) -> Verdict:
    if level.exhausted():
        return Verdict("high", denied=_TOO_MUCH)
    if not argv:
        return Verdict("medium", ("the program comes from its input",))
    program = _name(argv[0])
    rest = argv[1:]
    if "$" in argv[0] or "`" in argv[0] or (not level.guess and _is_pattern(argv[0])):
        return Verdict("high", ("its program is only known when it runs",))
    if program in DENIED or program.startswith("mkfs"):
        return Verdict("high", denied=DENIED.get(program, "It formats a disk."))
    if program in PASS_THROUGH:
        return _wrapped(program, rest, level)
    if program in SHELLS:
        return _shell(program, rest, level)
    if program == "trap":
        return _script(rest[0] if rest else "", level)
    if program in {"eval", "source", "."}:
        return combine_verdicts([_script(" ".join(rest), level)], "high")
    if program == "git":
        return _git(rest)
    if program == "find":
        return _find(rest, level)
    if program in INTERPRETERS or re.fullmatch(r"(?:python|pypy)[0-9.]*", program):
        return _interpreter(program, rest, level)
    if program in RUNNERS:
        return _runner(program, rest, level)
    return _listed(program, rest)


def _listed(program: str, rest: tuple[str, ...]) -> Verdict:
    network = program in NETWORKED
    if program == "dd" and any(map(_device, rest)):
        return Verdict("high", denied="It writes to a device.")
    if program in HIGH:
        return Verdict("high", (HIGH[program],), network=network)
    if program in SUBCOMMANDS:
        verb = next((word for word in rest if not word.startswith("-")), "")
        low, high = SUBCOMMANDS[program]
        if verb in high:
            return Verdict("high", (f"{program} {verb} reaches beyond the project",), network=True)
        if verb in low:
            return Verdict("low")
        return Verdict("medium", (f"{program} {verb}".rstrip() + " is not in the table",))
    if program == "rm":
        wide = any(w.startswith("-") and (set("rRf") & set(w.lstrip("-"))) for w in rest)
        return Verdict("high" if wide else "medium", ("it removes files",))
    if program in {"chmod", "chown"}:
        deep = any(w == "--recursive" or re.match(r"^-[a-zA-Z]*R", w) for w in rest)
        return Verdict("high" if deep else "medium", ("it changes permissions",))
    if program == "ruff":
        writes = (rest[:1] != ("check",) and "--check" not in rest) or "--fix" in rest
        return Verdict("medium", ("it rewrites files",)) if writes else Verdict("low")
    if program in LOW:
        return Verdict("low")
    if program in READERS:
        return _reading((program, *rest))
    if program in MEDIUM:
        return Verdict("medium", (MEDIUM[program],))
    return Verdict("medium", (f"{program!r} is not in the table of known programs",))


def _reading(argv: tuple[str, ...]) -> Verdict:
    """The verdict over a program that reads, if its options are known to do nothing else."""
    trouble = why_not_read_options(argv)
    return Verdict("medium", (trouble,)) if trouble else Verdict("low")


def _device(word: str) -> bool:
    """Whether ``dd`` writes to a device other than ``/dev/null`` and the standard streams."""
    name, _, path = word.partition("=")
    place = normpath("/" + path.lstrip("/"))
    return (
        name == "of"
        and path.startswith("/")
        and place.startswith("/dev/")
        and place not in ("/dev/null", "/dev/stdout", "/dev/stderr")
    )


def _wrapped(program: str, rest: tuple[str, ...], level: _Level) -> Verdict:
    takes_value = PASS_THROUGH[program]
    words = list(rest)
    verdicts: list[Verdict] = []
    while words:
        word = words[0]
        assigned = _ASSIGNMENT.match(word)
        if program == "env" and assigned:
            verdicts.append(_assigned(assigned.group(1)))
            words.pop(0)
        elif program == "env" and re.match(r"^(?:-[a-zA-Z0-9]*S|--split-string)", word):
            text = re.sub(r"^(?:-[a-zA-Z0-9]*S|--split-string=?)", "", words.pop(0))
            words = [*_words(text or (words.pop(0) if words else "")), *words]
        elif word == "--":
            words.pop(0)
            if program != "env":
                break
        elif word.startswith("-") and len(word) > 1:
            words.pop(0)
            if word in takes_value and words:
                words.pop(0)
        else:
            break
    if program == "timeout" and words:
        words.pop(0)
    floor: Risk = "medium" if program in {"xargs", "parallel", "watch"} else "low"
    if not words:
        return combine_verdicts(verdicts, "medium" if program in {"xargs", "parallel"} else floor)
    return combine_verdicts([*verdicts, _judge(tuple(words), level.deeper())], floor)


def _shell(program: str, rest: tuple[str, ...], level: _Level) -> Verdict:
    words = list(rest)
    while words and re.match(r"^[-+]", words[0]):
        word = words.pop(0)
        if re.match(r"^-[a-zA-Z]*c", word):
            while words and re.match(r"^[-+]", words[0]):
                words.pop(0)
            return _script(words[0] if words else "", level)
        if word in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"} and words:
            words.pop(0)
    if words:
        return Verdict("medium", (f"it runs the shell script {words[0]!r}",))
    return Verdict("medium", (f"{program} reads its commands from its input",))


def _script(text: str, level: _Level) -> Verdict:
    verdicts = [Verdict("medium", ("it runs a script inside a shell",))]
    if not is_short_enough(text):
        return Verdict("high", denied=_TOO_MUCH)
    for command in script_commands(text):
        if command is None:
            verdicts.append(Verdict("high", ("a part of its script cannot be read",)))
            if level.exhausted():
                return combine_verdicts([*verdicts, Verdict("high", denied=_TOO_MUCH)])
            continue
        if command.argv:
            verdict = _judge(command.argv, level.deeper(guess=command.guess))
            verdicts += [verdict, _places(command.argv)]
        verdicts += [_assigned(name) for name in command.assigned]
        verdicts.append(_places(("", *command.writes)))
    return combine_verdicts(verdicts)


def _assigned(name: str) -> Verdict:
    """The verdict over setting a variable."""
    if _LOADED.match(name):
        return Verdict("high", (f"{name} changes what is run",))
    return Verdict("low")


def _find(rest: tuple[str, ...], level: _Level) -> Verdict:
    runs = any(word in _FIND_RUNS for word in rest)
    verdicts = [Verdict("low") if runs else _reading(("find", *rest))]
    if {"-delete", "-fls"} & set(rest) or any(word.startswith("-fprint") for word in rest):
        verdicts.append(Verdict("high", ("it removes or overwrites files that it finds",)))
    for place, word in enumerate(rest):
        if word in _FIND_RUNS:
            ends = [i for i, w in enumerate(rest) if i > place and w in {";", "+", "\\;"}]
            verdicts.append(_judge(rest[place + 1 : ends[0] if ends else None], level.deeper()))
            verdicts.append(Verdict("medium", ("it runs a program on what it finds",)))
    return combine_verdicts(verdicts)


def _interpreter(program: str, rest: tuple[str, ...], level: _Level) -> Verdict:
    python = program.startswith(("python", "pypy"))
    words = list(rest)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        module = re.match(r"^-[a-zA-Z]*m(.*)$", word) if python else None
        if module:
            name = module.group(1) or (words.pop(0) if words else "")
            return _judge((name.split(".")[0], *words), level.deeper())
        if (re.match(r"^-[a-zA-Z]*[cer]", word) and not word.startswith("--")) or word == "--eval":
            return Verdict("medium", ("it runs code given on the command line",))
        if python and word in {"-W", "-X"} and words:
            words.pop(0)
    if words:
        return Verdict("medium", (f"it runs {words[0]!r}",))
    return Verdict("low") if rest else Verdict("medium", ("it reads code from its input",))


def _runner(program: str, rest: tuple[str, ...], level: _Level) -> Verdict:
    """``uv run X``, ``poetry run X``: as risky as X; every other verb by the runner's own row."""
    verbs, high = RUNNERS[program]
    words = list(rest)
    while words and words[0].startswith("-"):
        words.pop(0)
    if words and words[0] in verbs:
        words.pop(0)
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option in {"--with", "--python", "-p", "--extra", "--group", "--package"} and words:
                words.pop(0)
        return _judge(tuple(words), level.deeper())
    if not words or words[0] in high:
        reason = f"{' '.join((program, *words[:1]))} fetches or changes what is installed"
        return Verdict("high", (reason,), network=True)
    return Verdict("medium", (f"{program} {words[0]} is not in the table",))


def _git(rest: tuple[str, ...]) -> Verdict:
    words = list(rest)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option not in {
            "--no-pager",
            "-P",
            "--version",
            "--literal-pathspecs",
            "--no-optional-locks",
        }:
            return Verdict("high", (f"git {option} changes where or how git works",))
    verb = words[0] if words else ""
    options = words[1:]
    if verb == "commit":
        return Verdict("high", denied="Use git_commit, which shows what is committed.")
    if any(
        re.match(r"^--(?:ext-diff|exec|upload-pack|receive-pack|output|open-files)", w)
        for w in options
    ):
        return Verdict("high", (f"git {verb} would run a program or write a file",))
    if not verb or not why_not_read_options(("git", *rest)):
        return Verdict("low")
    if verb in GIT_MEDIUM and not {"--hard", "-f", "--force", "-D", "-d", "-m", "-M"} & set(
        options
    ):
        return Verdict("medium", (f"git {verb} changes the worktree or the index",))
    if verb in GIT_LOW:
        return _reading(("git", *rest))
    return Verdict("high", (f"git {verb} can lose or publish work",), network=verb in NETWORKED)


def _places(argv: Sequence[str]) -> Verdict:
    """What the arguments point at."""
    verdicts: list[Verdict] = []
    for word in argv[1:]:
        value = word.split("=", 1)[-1]
        parts = PurePosixPath(value).parts
        if any(part.casefold() == ".git" for part in parts) or names_state(value):
            verdicts.append(Verdict("high", ("it names git's or cockpit's own files",)))
        elif value != "/dev/null" and (value.startswith(("~", "/")) or ".." in parts):
            verdicts.append(Verdict("medium", ("it names a place outside the project",)))
    return combine_verdicts(verdicts)


def _is_pattern(word: str) -> bool:
    """Whether a shell may put names of files, or several words, in the place of a word."""
    if "*" in word or "?" in word:
        return True
    for line in word.split("\n"):
        if -1 < line.find("[") < line.rfind("]") - 1:
            return True
        inside = line[line.find("{") + 1 : line.rfind("}") + 1] if "{" in line else ""
        if inside and ("," in inside or ".." in inside):
            return True
    return False


def _name(word: str) -> str:
    return PurePosixPath(word).name.casefold().removesuffix(".exe").lstrip("\\")


def _words(text: str) -> list[str]:
    """The words that ``env -S`` makes of its argument."""
    script = parse_shell(text)
    if len(script.items) == 1 and not script.errors and not script.separators:
        return [word.text for word in iter_words(script.items)]
    return re.sub(r"[\"']", " ", text).split()
