"""Whether a command only reads the project: the one judge, for hooks, the engine and capture.

A command is a read when every program, option and word of it is known to read, in the place where it would
run. Whatever is not known is not a read: the judge errs by asking. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.parse_shell import parse_shell
from cockpit.access.reads.git_reads import match_git, why_not_repository
from cockpit.access.reads.git_table import GIT_VERBS
from cockpit.access.reads.program_options import Arguments, match_arguments, parse_row
from cockpit.access.reads.program_table import (
    HARMLESS_VARIABLES,
    MUST_HAVE_OPTION,
    PROGRAMS,
    SEARCH_ALL_BELOW,
)
from cockpit.access.reads.reading_place import ReadingPlace
from cockpit.access.reads.small_languages import (
    FindExpression,
    check_awk,
    check_date,
    check_jq,
    check_printf,
    check_sed,
    check_test,
)
from cockpit.access.shell_syntax import Assignment, Group, Item, Redirection, SimpleCommand, Word

_GROUPS = frozenset({"{", "("})
_JOINED = frozenset({"", ";", "&&", "||", "|", "|&", "\n"})
_PIPES = frozenset({"|", "|&"})
_GLOB = re.compile(r"[*?\[]")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smh]?")
_NUMBERS = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?")
_CODE = re.compile(r"\*\.(?:py|rst|md)")
_ZSH_PROGRAM = re.compile(r"=[\w./+-]+")
_DEEPEST = 8
_STDIN = frozenset(("-", "/dev/stdin"))
_SCRIPTED = frozenset({"sed", "awk", "filtered"})
_FORMATTED = frozenset(
    ("printf", "seq", "date", "find", "stat", "awk", "gawk", "mawk", "git", "nl", "sed")
)
_WIDE = re.compile(r"%[^a-zA-Z%]*[0-9]{5}")
_UNBOUNDED = 1_000
"""The operands that a row allows when it sets no limit."""
_MOST_NUMBERS = 1_000_000
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_TAKE_INPUT = frozenset({"files", "searched", "filtered", "sed", "awk"})
_SEARCH_HIDDEN = (
    *("-.", "--hidden", "-u", "--unrestricted", "--no-ignore", "--no-ignore-vcs"),
    *("-g", "--glob", "--iglob"),
)
_RUN_BY_FIND = frozenset({"grep", "egrep", "fgrep", "wc", "cat", "head", "ls"})


class _Match(Struct, frozen=True):
    """A command matched against the table, before anything is looked at.

    ``trouble`` says why it is not a read; ``programs`` are those that run, wrappers first; ``paths`` are the
    files, names and folders that it looks at; ``takes_input`` says that it waits for input without them.
    """

    trouble: str = ""
    programs: tuple[str, ...] = ()
    arguments: Arguments = field(default_factory=Arguments)
    paths: tuple[tuple[str, str], ...] = ()
    takes_input: bool = False
    verb: str = ""

    @property
    def name(self) -> str:
        """The name of the program that reads."""
        return self.programs[-1].rpartition("/")[2] if self.programs else ""


class _Argument(Struct, frozen=True):
    """One word as the program gets it; a ``pattern`` stands for the files that it matches."""

    text: str
    pattern: bool = False


def why_not_read(command: str | Sequence[str], place: ReadingPlace) -> str:
    """Say why a command (shell text, or argv) is not known to only read the project; '' when it is a read.

    The place counts: its programs, its files, its repository's configuration. Nothing is started.
    """
    if trouble := place.why_unsafe():
        return trouble
    if not isinstance(command, str):
        return _judge_argv([_Argument(word) for word in command], place, fed=False)
    if odd := next((sign for sign in command if _is_odd(sign)), ""):
        return f"shells and terminals read the sign U+{ord(odd):04X} in different ways"
    script = parse_shell(command)
    if script.errors or not script.items:
        return "it cannot be read"
    if script.comments:
        return "a comment may be no comment to the shell that reads it"
    if odd := next((mark.text for mark in script.separators if mark.text not in _JOINED), ""):
        return f"{odd!r} does more than join commands"
    trouble, _ = _judge_items(script.items, place)
    return trouble


def _is_odd(sign: str) -> bool:
    """Whether a sign is a control character or a blank that is not a plain one."""
    if sign.isascii():
        return not sign.isprintable() and sign not in "\n\t"
    return unicodedata.category(sign)[0] in "CZ"


def why_not_read_options(argv: Sequence[str]) -> str:
    """Say why the program and options of ``argv`` are not known to only read, wherever it runs."""
    return _match_argv([_Argument(word) for word in argv], 0).trouble


def _judge_items(
    items: Sequence[Item], place: ReadingPlace, *, fed: bool = False, is_group: bool = False
) -> tuple[str, ReadingPlace]:
    """Judge a list of commands, ``fed`` with input or not; returns the trouble and the place after them."""
    begun = place
    moved_if = False
    """Whether the folder changed behind a command that may have failed."""
    only_moves = True
    for index, item in enumerate(items):
        if moved_if and item.operator not in ("&&", *_PIPES):
            return "whether cd is done is not known", place
        following = items[index + 1].operator if index + 1 < len(items) else ""
        if item.operator not in _JOINED:
            return f"{item.operator} does more than join commands", place
        if trouble := _why_not_redirections(item.redirections, place):
            return trouble, place
        if isinstance(item, Group):
            if item.kind not in _GROUPS or item.words:
                return f"{item.kind} decides when it runs what it does", place
            feeds = (
                fed
                or item.operator in _PIPES
                or any(each.operator.startswith("<") for each in item.redirections)
            )
            trouble, inner = _judge_items(item.items, place, fed=feeds, is_group=True)
            if item.kind == "{":
                if inner != place and (item.operator in _PIPES or following in _PIPES):
                    return "the folder changes in a pipe", place
                if inner != place and item.operator in ("&&", "||"):
                    return "whether cd is done is not known", place
                place = inner
            if trouble:
                return trouble, place
            only_moves = False
            continue
        words = [word.text for word in item.words]
        if words[:1] == ["!"]:
            item = SimpleCommand(item.words[1:], item.assignments, item.redirections, item.operator)
            words = words[1:]
        if words[:1] == ["cd"]:
            if len(words) != 2 or item.words[1].marks or item.assignments:
                return "where cd leads is not known", place
            if item.operator in (*_PIPES, "||") or following in (*_PIPES, "||"):
                return "whether cd is done is not known", place
            entered = place.enter(words[1])
            if entered is None:
                return f"cd {words[1]} leads out of the project or nowhere", place
            moved_if = moved_if or (item.operator == "&&" and not only_moves)
            place = entered
            continue
        only_moves = False
        if trouble := _judge_simple(item, place, fed=fed or item.operator in _PIPES):
            return trouble, place
    if moved_if and is_group:
        return "whether cd is done is not known", begun
    return "", place


def _judge_simple(item: SimpleCommand, place: ReadingPlace, *, fed: bool) -> str:
    for assignment in item.assignments:
        if trouble := _why_not_assignment(assignment):
            return trouble
    if not item.words:
        return "" if not item.assignments else "it sets a variable"
    arguments: list[_Argument] = []
    for index, word in enumerate(item.words):
        argument = _argument(word)
        if isinstance(argument, str):
            return argument
        if argument.pattern and index == 0:
            return "which program it runs is not known"
        arguments.append(argument)
    fed = fed or any(each.operator.startswith("<") for each in item.redirections)
    return _judge_argv(arguments, place, fed=fed)


def _argument(word: Word) -> _Argument | str:
    """Return the word as an argument, or why its value is not known."""
    if word.nested or any(mark.kind not in ("glob", "brackets") for mark in word.marks):
        mark = next((mark.text for mark in word.marks), "a substitution")
        return f"the value of {mark[:40]} is not known"
    if _ZSH_PROGRAM.fullmatch(word.text):
        return f"a shell may take {word.text[:40]} for the place of a program"
    if not word.marks:
        return _Argument(word.text)
    # What a pattern matches could be taken for an option, unless it begins with a folder or a name.
    if _GLOB.match(word.text) or word.text.startswith("-"):
        return f"{word.text[:40]} could match a file whose name is an option"
    return _Argument(word.text, pattern=True)


def _why_not_assignment(assignment: Assignment) -> str:
    pattern = HARMLESS_VARIABLES.get(assignment.name)
    value = assignment.value
    if pattern is None or value.marks or value.nested or not re.fullmatch(pattern, value.text):
        return f"{assignment.name} may change what runs"
    return ""


def _why_not_redirections(redirections: Sequence[Redirection], place: ReadingPlace) -> str:
    for each in redirections:
        target = each.target
        body = each.body
        if target.nested or target.marks or (body is not None and (body.nested or body.marks)):
            return "the target of a redirection is not known"
        if each.operator in ("<<", "<<-", "<<<"):
            continue
        if each.operator == "<":
            if trouble := place.why_not_file(target.text):
                return trouble
        elif each.operator == ">&" and not each.writes_file:
            continue
        elif each.operator not in (">", ">>", "&>", ">&") or target.text != "/dev/null":
            return f"{each.operator} {target.text[:60]} writes a file"
    return ""


def _judge_argv(arguments: Sequence[_Argument], place: ReadingPlace, *, fed: bool) -> str:
    match = _match_argv(arguments, 0)
    if match.trouble:
        return match.trouble
    for program in match.programs:
        if trouble := place.why_not_program(program):
            return trouble
    if not fed and _waits(match):
        return f"{match.name} would wait for input"
    if match.name in _FORMATTED and any(_WIDE.search(argument.text) for argument in arguments):
        return "it may print without end"
    if match.name == "rg" and place.env.get("RIPGREP_CONFIG_PATH"):
        return "RIPGREP_CONFIG_PATH is set and may make rg run programs"
    patterns = [argument.text for argument in arguments if argument.pattern]
    if trouble := _why_not_patterns(match, patterns):
        return trouble
    # Of the files that a pattern matches, any could come to stand where a file is read.
    for kind, word in (*match.paths, *(("file", pattern) for pattern in patterns)):
        files = place.expand(word) if word in patterns else (word,)
        if files is None:
            return f"{word} matches too many files"
        for file in files:
            if trouble := _why_not_path(kind, file, match, place):
                return trouble
    if match.name == "git":
        words = [argument.text for argument in arguments]
        return why_not_repository(match.verb, match.arguments, words, place)
    return ""


def _waits(match: _Match) -> bool:
    """Whether the command reads what is typed, when nothing is handed to it."""
    if any(kind != "name" and word in _STDIN for kind, word in match.paths):
        return True
    if match.verb == "shortlog":
        return not match.arguments.operands and not match.arguments.has("--all", "--branches")
    return match.takes_input and not match.paths


def _why_not_patterns(match: _Match, patterns: Sequence[str]) -> str:
    """Say why the words that a pattern stands for could be more than files to read.

    A pattern becomes as many words as it matches: the second could be a file to write, or a script.
    """
    if not patterns:
        return ""
    rows = {match.name: PROGRAMS.get(match.name, ""), "git": GIT_VERBS.get(match.verb, "")}
    row = parse_row(rows[match.name]) if rows[match.name] else None
    operands = match.arguments.operands
    if any(value in patterns for _, value in match.arguments.options):
        return "a pattern is the value of an option"
    if row is None or not any(word in patterns for word in operands):
        return ""
    if row.most < _UNBOUNDED:
        return "how many files a pattern matches is not known"
    has_script = match.arguments.has("-e", "--expression")
    if row.operands in _SCRIPTED and operands[0] in patterns and not has_script:
        return "a pattern stands in the place of a script"
    return ""


def _why_not_path(kind: str, file: str, match: _Match, place: ReadingPlace) -> str:
    if kind == "program":
        return place.why_not_program(file)
    if kind == "folder":
        hidden = match.name != "rg" or match.arguments.has(*_SEARCH_HIDDEN)
        names = [value for name, value in match.arguments.options if name == "--include"]
        follows = match.name == "diff"
        return place.why_not_folder(file, hidden=hidden, follows=follows, names=names)
    return place.why_not_file(file, names_only=kind == "name")


def _match_argv(arguments: Sequence[_Argument], depth: int) -> _Match:
    """Match a command, behind wrappers too, against the table."""
    words = [argument.text for argument in arguments]
    programs: list[str] = []
    while words:
        name = words[0].rpartition("/")[2]
        programs.append(words[0])
        rest = _unwrap(name, words[1:])
        if isinstance(rest, str):
            return _Match(rest)
        if rest is None:
            return replace(_match_program(name, words[1:], depth), programs=tuple(programs))
        words = rest
    return _Match("it has no program")


def _unwrap(name: str, words: list[str]) -> list[str] | str | None:
    """Return the command that a wrapper runs, why it is not a read, or None for no wrapper."""
    match name:
        case "timeout":
            if not words or not _DURATION.fullmatch(words[0]):
                return "timeout has options that are not known"
            return words[1:]
        case "nice":
            return words[2:] if words[:1] == ["-n"] and words[1:2] else words
        case "env":
            while words and "=" in words[0]:
                variable, _, value = words[0].partition("=")
                pattern = HARMLESS_VARIABLES.get(variable)
                if pattern is None or not re.fullmatch(pattern, value):
                    return f"{variable} may change what runs"
                words = words[1:]
            return words or "env prints the variables of the environment"
        case "command":
            if words[:1] in (["-v"], ["-V"]):
                return None
            return words
    return None


def _match_program(name: str, words: list[str], depth: int) -> _Match:
    if depth > _DEEPEST:
        return _Match("it is nested too deeply")
    match name:
        case "git":
            git, verb = match_git(words)
            return _Match(git.trouble, arguments=git, verb=verb)
        case "find":
            return _match_find(words, depth)
        case "echo":
            return _Match()
        case "command" | "type":
            looks = ("-v", "-V") if name == "command" else ("-a", "-t", "-p")
            odd = next((word for word in words if word.startswith("-") and word not in looks), "")
            return _Match(f"{name} {odd} is not known to only read" if odd else "")
        case "printf":
            return _Match(check_printf(words))
        case "test" | "[":
            trouble, looked_at = check_test(name, words)
            return _Match(trouble, paths=tuple(("name", word) for word in looked_at))
    if name not in PROGRAMS:
        return _Match(f"{name} is not known to only read")
    row = parse_row(PROGRAMS[name])
    matched = match_arguments(words, row)
    if matched.trouble:
        return _Match(f"{name}: {matched.trouble}")
    if name in MUST_HAVE_OPTION and not (len(words) == 1 and matched.options):
        return _Match(f"{name} runs a program")
    trouble, paths = _paths_of(name, matched)
    return _Match(
        f"{name}: {trouble}" if trouble else "",
        arguments=matched,
        paths=tuple(paths),
        takes_input=name == "tr" or row.operands in _TAKE_INPUT,
    )


def _paths_of(name: str, matched: Arguments) -> tuple[str, list[tuple[str, str]]]:
    """Return why the operands are more than read ('' when not), and the paths that they name."""
    operands = matched.operands
    paths = [("file", file) for file in matched.files]
    match parse_row(PROGRAMS[name]).operands:
        case "files":
            if name == "tail" and any(word.startswith("+") for word in operands):
                return "an operand with + may be an option", []
            given = [value for _, value in matched.options]
            if name == "strings" and any(word.startswith("@") for word in (*operands, *given)):
                return "a word with @ names a file with more words", []
            return "", [*paths, *(("file", word) for word in operands)]
        case "names":
            return "", [("name", word) for word in operands]
        case "folders":
            return "", [("folder", word) for word in operands]
        case "searched":
            return "", paths + _searched(name, matched)
        case "patterned":
            return "", [("name", word) for word in operands[1:]]
        case "filtered":
            trouble = check_jq(operands[0]) if operands else ""
            return trouble, [*paths, *(("file", word) for word in operands[1:])]
        case "sed":
            scripts = [
                value for option, value in matched.options if option in ("-e", "--expression")
            ]
            files = operands if scripts else operands[1:]
            trouble = next(filter(None, map(check_sed, scripts or operands[:1])), "")
            return trouble, [("file", word) for word in files]
        case "awk":
            trouble = check_awk(operands[0]) if operands else "it has no program"
            if all(map(_ASSIGNS.match, operands[1:])):
                return trouble, []  # it reads its input
            values = [("file", word.partition("=")[2] or word) for word in operands[1:]]
            return trouble, [*values, *(("file", word) for word in operands[1:])]
        case "date":
            if any("TZ=" in value for _, value in matched.options):
                return "a time zone names a file", []
            return check_date(operands), []
        case "numbers":
            return _check_numbers(operands), []
    return "", []


def _check_numbers(operands: Sequence[str]) -> str:
    """Check the operands of ``seq``: numbers, and not too many between them."""
    if not all(_NUMBERS.fullmatch(word) for word in operands):
        return "its operands are not numbers"
    values = [float(word) for word in operands] or [1.0]
    first, step = (1.0, 1.0) if len(values) < 2 else (values[0], 1.0)
    if len(values) > 2:
        step = values[1]
    too_many = not step or abs(values[-1] - first) / abs(step) > _MOST_NUMBERS
    return "it may print without end" if too_many else ""


def _searched(name: str, matched: Arguments) -> list[tuple[str, str]]:
    """The places that a ``grep`` or ``rg`` searches."""
    operands = matched.operands
    listing = matched.has("--files", "--type-list")
    if not listing and not matched.has("-e", "--regexp", "-f", "--file"):
        operands = operands[1:]
    recursive = name in SEARCH_ALL_BELOW or matched.has("-r", "--recursive")
    if listing:
        return [("name", word) for word in operands]
    if not recursive:
        return [("file", word) for word in operands]
    includes = [value for option, value in matched.options if option == "--include"]
    # No file with such an ending holds secrets by its name: nothing needs to be looked through.
    if includes and all(_CODE.fullmatch(each) for each in includes):
        return [("file", word) for word in operands or ["."]]
    return [("folder", word) for word in operands or ["."]]


def _match_find(words: list[str], depth: int) -> _Match:
    expression = FindExpression(words)
    if expression.trouble:
        return _Match(f"find: {expression.trouble}")
    starts = expression.starts or ["."]
    paths = [("name", word) for word in (*starts, *expression.compared)]
    for command in expression.commands:
        if expression.on_links:
            return _Match("find: it runs a program on links that it finds")
        # The file that it finds begins with its start, so that no option can come of it.
        inner = _match_argv(
            [_Argument(starts[0] if word == "{}" else word) for word in command], depth + 1
        )
        if inner.trouble or command[0] not in _RUN_BY_FIND:
            return _Match(inner.trouble or f"find: {command[0]} is not known to only read there")
        paths += inner.paths
        paths += [("program", command[0]), *(("folder", start) for start in starts)]
    return _Match(paths=tuple(paths))
