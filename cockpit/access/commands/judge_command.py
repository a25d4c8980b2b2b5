"""The one judge of commands: from a command line to what a person should know before it runs.

cockpit's own actions, the permissions of external agents, hooks and the shapes of trust ask it. In the
sandbox it informs: what a command cannot reach needs no answer. Outside, what leaves the machine and what
cannot be told from its words waits for the user, whatever the policy. Here-documents and quoted text are
data. See ``docs/reference/actions.md``, risk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from cockpit.access.commands.command_table import (
    ACTIVATES,
    COMMIT,
    DENIED,
    EFFECTS,
    GITHUB,
    HIDES,
    INSTALLS,
    INTERPRETERS,
    KNOWN,
    KNOWN_VERBS,
    LANGUAGES,
    LOADED,
    NETWORK,
    PLAIN_SED,
    POSTS,
    RUNNERS,
    RUNS,
    SHELLS,
    STEERS,
    VERBS,
    WORDS,
    WRAPPERS,
    Effect,
)
from cockpit.access.commands.plain_reads import read_line
from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_commands import unwrap
from cockpit.access.shell_syntax import Group, SimpleCommand, Word, iter_items, iter_words
from cockpit.core.state_folder import names_state, state_root

Risk = Literal["low", "medium", "high"]

LONGEST = 20_000
"""Characters of a command that is judged; of a longer one nothing is known."""
OUTSIDE = Effect("it names a place outside the project")
UNKNOWN = "what it runs is only known when it runs"
_OWN_FILES = Effect("it names git's or cockpit's own files", final=True)
_COMMITS = Effect("it commits")
_OF_COMMITS = frozenset(("commit", "add", "status", "diff", "log"))
_DEEPEST = 4
_BEHIND = 12
"""Words behind a wrapper that may be the program it runs."""
_MOST_COMMANDS = 500
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
_CODE = re.compile(r"-[A-Za-z]*[ceEr]|--(?:eval|print|command)(?:=.*)?")
_SCRIPT = re.compile(r"-[a-zA-Z]*c")
_MODULE = re.compile(r"-[A-Za-z]*m(.*)")
_FLAGS = re.compile(r"-[BuOqsE]+")
"""Options of Python's that change nothing of what is run."""
_ABOUT = frozenset(("--version", "-V", "-v", "--help", "-h"))
_DEVICE = re.compile(r"of=/dev/(?!null$|stdout$|stderr$)")
_SYSTEMS = re.compile(r"/(?:usr/(?:local/)?)?s?bin/[^/]+")
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""What ``test -v`` and ``read`` run, also out of quotes."""
_XARGS = re.compile(
    r"-[0rtx]+|-[nPL]\d+|-I\S+|--(?:null|no-run-if-empty|max-args=\d+|max-procs=\d+)"
)
_SED_OPTION = re.compile(
    r"-[nErsuz]*e?|-i[^-]*|--(?:in-place(?:=\S*)?|quiet|regexp-extended)|[^-].*|", re.DOTALL
)


class CommandPlace(Struct, frozen=True):
    """Where a command runs, and for whom: ``confined`` in our sandbox, in the checkout ``root`` (its
    real path; '' where that is not known).

    ``may_run`` is for an agent that has no tools of ours for git and GitHub, and so may run those: it says
    which commands of cockpit that agent may run.
    """

    confined: bool = True
    root: str = ""
    may_run: Callable[[Sequence[str]], bool] | None = None


class CommandVerdict(Struct, frozen=True):
    """What is known of a command.

    ``effect``: it reads only, changes the checkout, or leaves the machine. ``reasons`` are what a person
    should see. ``denied`` is the message when it is never run; '' for any other. ``unclear``: what it runs
    cannot be told from its words. ``waits``: no policy may answer for the user.
    """

    risk: Risk
    effect: Literal["reads", "changes", "leaves"]
    reasons: tuple[str, ...] = ()
    denied: str = ""
    unclear: bool = False
    waits: bool = False


IN_SANDBOX = CommandPlace()


def judge_command(command: str | Sequence[str], place: CommandPlace = IN_SANDBOX) -> CommandVerdict:
    """Return the verdict over shell text, or over the words of one command: that of the riskiest in it."""
    judging = _Judging(place)
    if sum(map(len, command)) > LONGEST:
        return judging.give_up()
    try:
        if isinstance(command, str):
            judging.script(command, 0)
        else:
            judging.command([Word(word, 0) for word in command], 0)
    except RecursionError:
        return judging.give_up()
    reads = isinstance(command, str) and read_line(command) is not None
    return judging.verdict(reads=reads)


class _Judging:
    """One command line: what is known of it so far."""

    def __init__(self, place: CommandPlace) -> None:
        self._place = place
        self._effects: dict[Effect, None] = {}
        self._unclear: dict[str, None] = {}
        self._unfamiliar: dict[str, None] = {}
        self._hides = False
        self._denied = ""
        self._others = False
        self._left = _MOST_COMMANDS

    def give_up(self) -> CommandVerdict:
        """Return the verdict over what cannot be judged at all."""
        self._hide("it is too long or too deep to be judged")
        return self.verdict(reads=False)

    def verdict(self, *, reads: bool) -> CommandVerdict:
        """Return what was found."""
        place, effects = self._place, self._effects
        leaves = any(each.leaves for each in effects)
        is_own = is_own_worktree(place.root)
        is_high = bool(self._denied) or any(
            each.final and (each.leaves or not (place.confined and is_own)) for each in effects
        )
        if not place.confined:
            is_high = is_high or self._hides or OUTSIDE in effects
        commits_for_user = _COMMITS in effects and not is_own
        waits = is_high or (
            not place.confined
            and (leaves or commits_for_user or bool(self._unclear or self._unfamiliar))
        )
        is_low = is_own and [*effects] == [_COMMITS] and not (self._others or self._unclear)
        return CommandVerdict(
            "high" if is_high else "low" if is_low else "medium",
            "leaves" if leaves else "reads" if reads else "changes",
            (*(each.words for each in effects), *self._unclear, *self._unfamiliar),
            self._denied,
            unclear=bool(self._unclear),
            waits=waits,
        )

    def script(self, text: str, depth: int) -> None:
        """Judge every command of a script, those in substitutions too."""
        script = parse_shell(text)
        if script.errors or depth > _DEEPEST:
            self._hide()
            if depth > _DEEPEST:
                return
        for item in iter_items(script):
            for redirection in item.redirections:
                if redirection.writes_file:
                    self._others = True
                    self._point(redirection.target.text)
                    if depth and redirection.target.text != "/dev/null":
                        self._hide("a script in it writes to a file")
            if any(_SUBSCRIPT.search(word.text) for word in iter_words((item,))):
                self._doubt("a shell may run what is in brackets")
            if isinstance(item, SimpleCommand):
                for assignment in item.assignments:
                    self._assign(assignment.name, assignment.value.text)
                self.command(list(item.words), depth)
            elif isinstance(item, Group) and item.kind == "function":
                self._doubt("it gives a command another meaning")

    def command(self, words: list[Word], depth: int) -> None:
        """Judge one command by its words, quotes resolved."""
        self._left -= 1
        if self._left < 0:
            self._hide()
            return
        if not words:
            return
        texts = [word.text for word in words]
        for text in texts[1:]:
            self._point(text)
        if words[0].marks:
            self._hide()
        program = name_of(texts[0])
        if program in WRAPPERS | RUNNERS and not (program == "find" and not _runs(texts)):
            self._carried(words[1:], depth)
            if program in ("xargs", "parallel") and len(texts) == 1:
                self._doubt(UNKNOWN)
        self._program(program, texts[1:], depth)
        self._require_known(unwrap(tuple(texts)))

    def _carried(self, words: list[Word], depth: int) -> None:
        """Judge the command behind a wrapper: which word it begins with is not looked for."""
        for place, word in enumerate(words[:_BEHIND]):
            if match := _ASSIGNMENT.match(word.text):
                self._assign(match[1], match[2])
            if re.search(r"\s", word.text):
                self.script(word.text, depth + 1)
            elif not word.text.startswith("-") and not _is_relative(word.text):
                if word.marks:
                    self._hide()
                self._program(name_of(word.text), [each.text for each in words[place + 1 :]], depth)

    def _program(self, program: str, rest: Sequence[str], depth: int) -> None:
        """Note what a program does, and look into what it is given to run."""
        self._denied = self._denied or self._why_denied(program, rest)
        verb = _git_verb(rest) if program == "git" else _first_plain(rest)
        self._others = self._others or program != "git" or verb not in _OF_COMMITS
        for effect in (EFFECTS.get(program), VERBS.get(program, {}).get(verb)):
            if effect is not None:
                self._effects[effect] = None
        name = f"{program} {verb}" if program == "git" else program
        after = list(rest)[list(rest).index(verb) + 1 :] if program == "git" and verb else rest
        pattern, effect = WORDS.get(name, (None, None))
        if effect and pattern and pattern.fullmatch("".join(f" {word}" for word in after)):
            self._effects[effect] = None
        if program == "git":
            if verb == "commit":
                self._effects[_COMMITS] = None
            if verb and rest[0][:1] == "-" and rest[0] not in ("--no-pager", "-C"):
                self._hide()
        elif program == "gh":
            self._github(rest)
        elif program in SHELLS:
            self._shell(rest, depth)
        elif program in HIDES:
            if not (program in ("source", ".") and rest and ACTIVATES.fullmatch(rest[0])):
                self._hide()
        elif program in LANGUAGES:
            self._doubt(f"it runs {program} code given on the command line")
        elif program in ("npx", "bunx") and name_of(_first_plain(rest)) not in KNOWN:
            self._effects[INSTALLS] = None
        elif INTERPRETERS.fullmatch(program):
            self._interpreter(program, rest, depth)

    def _why_denied(self, program: str, rest: Sequence[str]) -> str:
        if program == "dd" and any(map(_DEVICE.match, rest)):
            return "It writes to a device."
        may_run = self._place.may_run
        if may_run is not None:
            if program == "cockpit" and may_run(rest):
                return ""
        elif program == "gh" or program == "hub":
            return GITHUB
        elif program == "git" and _git_verb(rest) == "commit":
            return COMMIT
        return DENIED.get("mkfs" if program.startswith("mkfs") else program, "")

    def _github(self, rest: Sequence[str]) -> None:
        from cockpit.access.gh_command import parse_gh  # a hook meets gh in few commands
        from cockpit.access.gh_flags import GhRefused

        try:
            if parse_gh(list(rest)).access == "write":
                self._effects[POSTS] = None
        except GhRefused:
            self._effects[NETWORK] = None
            self._doubt("it is no command of gh that is known to only read")

    def _shell(self, rest: Sequence[str], depth: int) -> None:
        if rest and not rest[0].startswith(("-", "+")):
            return  # a file of the project, which the proposal shows
        place = next((at for at, word in enumerate(rest) if _SCRIPT.fullmatch(word)), None)
        if place is None:
            self._hide("it takes its script from its input")
            return
        script = next((word for word in rest[place + 1 :] if word[:1] not in "-+"), "")
        if "{}" in script or not re.fullmatch(
            r"(?: -[elux]+)*", "".join(f" {w}" for w in rest[:place])
        ):
            self._doubt(UNKNOWN)
        self.script(script, depth + 1)

    def _interpreter(self, program: str, rest: Sequence[str], depth: int) -> None:
        language = "Python" if program.startswith(("python", "pypy")) else f"{program} code"
        words = list(dropwhile(_FLAGS.fullmatch, rest))
        first = words[0] if words else "-"
        if first in _ABOUT and len(words) == 1:
            return
        if module := _MODULE.fullmatch(first):
            name = module[1] or next(iter(words[1:]), "")
            after = words[1:] if module[1] else words[2:]
            if depth <= _DEEPEST:
                self._program(name.split(".")[0], after, depth + 1)
                if not self._place.confined:
                    self._require_known((name, *after))
        elif first == "-":
            self._doubt(f"it runs {language} from its input")
        elif first.startswith("-"):
            if any(map(_CODE.fullmatch, words)):
                self._doubt(f"it runs {language} given on the command line")
            else:
                self._doubt("the code that it runs is not in a file")
        elif first in ("eval", "repl", "x", "exec"):
            self._doubt("the code that it runs is not in a file")

    def _require_known(self, argv: Sequence[str]) -> None:
        """Outside the sandbox, doubt a program that may run anything that its words say."""
        if self._place.confined or not argv:
            return
        first, rest = argv[0], argv[1:]
        if "/" in first and not first.startswith(("/", "~")) and ".." not in first.split("/"):
            return  # a script of the project, or a program that it has installed
        program = name_of(first)
        if "/" in first and not _SYSTEMS.fullmatch(first):
            self._unfamiliar[f"{first[:60]!r} is not a program of the system"] = None
        elif program in SHELLS or program in HIDES or INTERPRETERS.fullmatch(program):
            return  # they were looked into
        elif program in ("xargs", "npx", "bunx"):
            place = next((at for at, w in enumerate(rest) if not _XARGS.fullmatch(w)), len(rest))
            self._require_known(rest[place:] or ("echo",))
        elif program == "sed" and not _is_plain_sed(rest):
            self._unfamiliar["its script for sed may run a program"] = None
        elif program == "git" and _first_plain(rest) not in KNOWN_VERBS:
            self._unfamiliar["what this git does is not known"] = None
        elif (sign := RUNS.get(program)) and any(map(sign.fullmatch, rest)):
            self._unfamiliar[f"{program} may run what its words say"] = None
        elif program not in KNOWN and program not in LANGUAGES:
            self._unfamiliar[f"cockpit does not know what {program[:60]!r} runs"] = None

    def _assign(self, name: str, value: str) -> None:
        parts = value.split(":")
        if name == "PYTHONPATH" and not any(
            each.startswith(("/", "~", "$")) or ".." in each for each in parts
        ):
            return  # code of the project, which it runs anyway
        if LOADED.fullmatch(name):
            self._effects[Effect(f"{name} changes what is run", final=True)] = None
        elif not self._place.confined and STEERS.fullmatch(name):
            self._unfamiliar[f"{name} may name a program"] = None

    def _point(self, word: str) -> None:
        """Say what a word points at."""
        value = word.rpartition("=")[2]
        if self._place.root and f"{value}/".startswith(f"{self._place.root}/"):
            value = value[len(self._place.root) + 1 :]
        parts = PurePosixPath(value).parts
        if any(part.casefold() == ".git" for part in parts) or names_state(value):
            self._effects[_OWN_FILES] = None
        elif value != "/dev/null" and (value.startswith(("~", "/")) or ".." in parts):
            self._effects[OUTSIDE] = None

    def _doubt(self, reason: str) -> None:
        self._unclear[reason] = None

    def _hide(self, reason: str = UNKNOWN) -> None:
        self._hides = True
        self._unclear[reason] = None


def is_own_worktree(root: str) -> bool:
    """Whether ``root`` is a checkout that cockpit made for a task or a session, on a branch of its own."""
    return root.startswith(state_root() + os.sep)


def name_of(word: str) -> str:
    """Return a program's name as the table has it."""
    return word.rpartition("/")[2].casefold().removesuffix(".exe")


def _is_plain_sed(rest: Sequence[str]) -> bool:
    """Whether a script for sed, which only stands on the command line, neither runs nor writes."""
    if not all(map(_SED_OPTION.fullmatch, rest)):
        return False
    named = [after for word, after in pairwise(rest) if re.fullmatch(r"-[nErsuz]*e", word)]
    scripts = named or [word for word in rest if not word.startswith("-")][:1]
    pieces = [piece for script in scripts for piece in re.split(r"[;\n]", script)]
    return bool(scripts) and all(map(PLAIN_SED.fullmatch, pieces))


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
