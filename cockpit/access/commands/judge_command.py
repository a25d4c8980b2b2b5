"""The risk of a command: high for what a person should see first, medium for everything else.

The verdict informs the user and the approval policy; it decides over no read, and the sandbox confines.
Here-documents and quoted text are data. A command that cannot be judged is ``unknown``: outside a sandbox no
policy lets it pass. See ``docs/reference/actions.md``, risk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from cockpit.access.commands.command_table import (
    CARRIERS,
    DENIED,
    EFFECTS,
    HIDES,
    INTERPRETERS,
    ONLINE,
    REWRITES,
    SHELLS,
    VERBS,
)
from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_syntax import SimpleCommand, Word, iter_items
from cockpit.core.state_folder import names_state

Risk = Literal["low", "medium", "high"]

LONGEST = 20_000
"""Characters of a command that is judged; a longer one is unknown."""
OUTSIDE = "it names a place outside the project"
UNKNOWN = "what it runs is only known when it runs"
_DEEPEST = 4
_BEHIND = 12
"""Words behind a wrapper that may be the program it runs."""
_MOST_COMMANDS = 500
_OF_OURS = frozenset({"gh", "hub"})
_COMMIT = "Use git_commit, which shows what is committed."
_FORCED = frozenset({"-D", "-d", "-f", "--force", "--hard", "-M", "--delete"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_LOADED = re.compile(
    r"(?:PATH|LD_.*|DYLD_.*|PYTHON(?:PATH|STARTUP|HOME)|GIT_.*|NODE_OPTIONS|BASH_ENV|ENV|IFS|PERL5OPT|RUBYOPT"
    r"|JAVA_TOOL_OPTIONS|PROMPT_COMMAND)"
)
_CODE = re.compile(r"-[A-Za-z]*[ceEr]|--(?:eval|print|command)(?:=.*)?")
_MODULE = re.compile(r"-[A-Za-z]*m(.*)")
_DEVICE = re.compile(r"of=/dev/(?!null$|stdout$|stderr$)")


class Verdict(Struct, frozen=True):
    """The risk of a command.

    ``denied`` is the message when the command is never run; ``reasons`` say what raised the risk; ``network``
    says that such a command needs the network, ``unknown`` that a part of it cannot be judged.
    """

    risk: Risk
    reasons: tuple[str, ...] = ()
    denied: str | None = None
    network: bool = False
    unknown: bool = False


def judge(argv: Sequence[str]) -> Verdict:
    """Return the verdict over one command."""
    if sum(map(len, argv)) > LONGEST:
        return _too_long()
    judging = _Judging()
    judging.command([Word(word, 0) for word in argv], 0)
    return judging.verdict()


def judge_line(line: str, *, outside: Callable[[Sequence[str]], bool] | None = None) -> Verdict:
    """Return the verdict over shell text: that of the riskiest command in it.

    ``outside`` is for an agent that has no tools of ours for git and GitHub, and so may run those; it says
    which commands of cockpit that agent may run.
    """
    if len(line) > LONGEST:
        return _too_long()
    judging = _Judging(outside)
    try:
        judging.script(line, 0)
    except RecursionError:
        return _too_long()
    return judging.verdict()


def _too_long() -> Verdict:
    return Verdict("high", ("it is too long or too deep to be judged",), unknown=True)


class _Judging:
    """One command line: what is known of it so far."""

    def __init__(self, outside: Callable[[Sequence[str]], bool] | None = None) -> None:
        self._outside = outside
        self._reasons: dict[str, None] = {}
        self._denied: str | None = None
        self._high = False
        self._unknown = False
        self._left = _MOST_COMMANDS

    def verdict(self) -> Verdict:
        return Verdict(
            "high" if self._high or self._denied else "medium",
            tuple(self._reasons),
            self._denied,
            network=not ONLINE.isdisjoint(self._reasons),
            unknown=self._unknown,
        )

    def script(self, text: str, depth: int) -> None:
        """Judge every command of a script, those in substitutions too."""
        script = parse_shell(text)
        if script.errors or depth > _DEEPEST:
            self._add_unknown()
            if depth > _DEEPEST:
                return
        for item in iter_items(script):
            for redirection in item.redirections:
                if redirection.writes_file:
                    self._place(redirection.target.text)
                    if depth and redirection.target.text != "/dev/null":
                        self._add_unknown("a script in it writes to a file", high=False)
            if isinstance(item, SimpleCommand):
                for assignment in item.assignments:
                    self._assign(assignment.name)
                self.command(list(item.words), depth)

    def command(self, words: list[Word], depth: int) -> None:
        """Judge one command by its words, quotes resolved."""
        self._left -= 1
        if self._left < 0:
            self._add_unknown()
            return
        if not words:
            return
        texts = [word.text for word in words]
        for text in texts[1:]:
            self._place(text)
        if words[0].marks:
            self._add_unknown()
        program = name_of(texts[0])
        if program in CARRIERS and not (program == "find" and not _runs(texts)):
            self._carried(words[1:], depth)
            if program in ("xargs", "parallel"):
                self._unknown = self._unknown or len(texts) == 1
        self._program(program, texts[1:], depth)

    def _carried(self, words: list[Word], depth: int) -> None:
        """Judge the command behind a wrapper: which word it begins with is not looked for."""
        for place, word in enumerate(words[:_BEHIND]):
            if match := _ASSIGNMENT.match(word.text):
                self._assign(match[1])
            if re.search(r"\s", word.text):
                self.script(word.text, depth + 1)
            elif not word.text.startswith("-") and not _is_relative(word.text):
                if word.marks:
                    self._add_unknown()
                self._program(name_of(word.text), [each.text for each in words[place + 1 :]], depth)

    def _program(self, program: str, rest: Sequence[str], depth: int) -> None:
        self._denied = self._denied or self._why_denied(program, rest)
        if effect := EFFECTS.get(program):
            self._raise(effect)
        if program in VERBS:
            verb = _git_verb(rest) if program == "git" else _first_plain(rest)
            if effect := VERBS[program].get(verb):
                self._raise(effect)
            if program == "git" and verb and (rest[0][:1] == "-" or _FORCED & set(rest)):
                self._raise(REWRITES)
        if program == "find" and any(word == "-delete" or word.startswith("-f") for word in rest):
            self._raise(EFFECTS["rm"])
        if program in SHELLS:
            self._shell(rest, depth)
        elif program in HIDES:
            self._add_unknown(high=program in ("eval", "source", "."))
        elif INTERPRETERS.fullmatch(program):
            self._interpreter(rest, depth)

    def _why_denied(self, program: str, rest: Sequence[str]) -> str | None:
        if program == "dd" and any(map(_DEVICE.match, rest)):
            return "It writes to a device."
        if self._outside is not None:
            if program in _OF_OURS or (program == "cockpit" and self._outside(rest)):
                return None
        elif program == "git" and _git_verb(rest) == "commit":
            return _COMMIT
        return DENIED.get("mkfs" if program.startswith("mkfs") else program)

    def _shell(self, rest: Sequence[str], depth: int) -> None:
        for place, word in enumerate(rest):
            if not word.startswith(("-", "+")):
                return  # a file of the project, which the proposal shows
            if re.fullmatch(r"-[a-zA-Z]*c", word):
                script = next((each for each in rest[place + 1 :] if each[:1] not in "-+"), "")
                self.script(script, depth + 1)
                return
        self._add_unknown("it takes its script from its input")

    def _interpreter(self, rest: Sequence[str], depth: int) -> None:
        for place, word in enumerate(rest):
            if not word.startswith("-"):
                return
            if module := _MODULE.fullmatch(word):
                name = module[1] or next(iter(rest[place + 1 :]), "")
                after = rest[place + 1 :] if module[1] else rest[place + 2 :]
                if depth <= _DEEPEST:
                    self._program(name.split(".")[0], after, depth + 1)
                return
            if _CODE.fullmatch(word):
                self._add_unknown("it runs code given on the command line", high=False)
                return
            if word in ("--version", "-V", "--help", "-h"):
                return
        self._add_unknown("it reads code from its input", high=False)

    def _assign(self, name: str) -> None:
        if _LOADED.fullmatch(name):
            self._raise(f"{name} changes what is run")

    def _place(self, word: str) -> None:
        """Say what a word points at."""
        value = word.rpartition("=")[2]
        parts = PurePosixPath(value).parts
        if any(part.casefold() == ".git" for part in parts) or names_state(value):
            self._raise("it names git's or cockpit's own files")
        elif value != "/dev/null" and (value.startswith(("~", "/")) or ".." in parts):
            self._reasons[OUTSIDE] = None

    def _raise(self, reason: str) -> None:
        self._high = True
        self._reasons[reason] = None

    def _add_unknown(self, reason: str = UNKNOWN, *, high: bool = True) -> None:
        self._unknown = True
        self._high = self._high or high
        self._reasons[reason] = None


def name_of(word: str) -> str:
    """Return a program's name as the table has it."""
    return PurePosixPath(word).name.casefold().removesuffix(".exe")


def _is_relative(word: str) -> bool:
    """Whether a word is a path of the project rather than the name of a program."""
    return "/" in word and not word.startswith("/")


def _runs(words: Sequence[str]) -> bool:
    return any(word in ("-exec", "-execdir", "-ok", "-okdir") for word in words)


def _first_plain(words: Sequence[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def _git_verb(words: Sequence[str]) -> str:
    rest: Iterator[str] = iter(words)
    for word in rest:
        if word in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"):
            next(rest, "")
        elif not word.startswith("-"):
            return word
    return ""
