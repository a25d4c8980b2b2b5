"""Programs whose arguments are a language of their own: sed, awk, jq, find, test, printf, date.

Each check returns why its argument could do more than read; '' when it cannot. See
``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SED_ADDRESS = re.compile(
    r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*)"
    r"(?:\s*,\s*(?:[+~]?[0-9]+|\$|/(?:[^/\\\n]|\\.)*/[IM]*))?\s*!?\s*"
)
_SED_SUBSTITUTE = re.compile(
    r"s([^\sA-Za-z0-9\\\n])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*"
)
_SED_TRANSLATE = re.compile(
    r"y([^\sA-Za-z0-9\\\n])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1"
)
_SED_PATTERN = re.compile(r"/((?:[^/\\\n]|\\.)*)/")
_SED_BRACKETS = re.compile(r"\\.|\[\^?\]?(?:\[[:.=]\w+[:.=]\]|[^\]\[])*\]")
_SED_COMMAND = re.compile(r"[pPdnNgGhHx=lz]|[qQ]\s*[0-9]*")
_SED_END = re.compile(r"\s*(?:[;\n}]\s*|$)|(?=\s*\})")

_ENDLESS_WIDTH = r"%[^a-zA-Z%]*(?:[0-9]{5}|\*)"
_AWK_ACTS = re.compile(
    rf"\b(?:while|do|for|function|func)\b|{_ENDLESS_WIDTH}|system|getline|close|fflush|ENVIRON|PROCINFO"
    r"|SYMTAB|FUNCTAB|ARGV|ARGC|ARGIND|@|\\\n|(?<!\|)\|(?!\|)"
)
_JQ_ACTS = re.compile(
    r"\b(?:repeat|recurse|until|while|def|range|limit|inputs?|debug|stderr|env|import|include|modulemeta"
    r"|input_filename|get_search_list)\b|ENV"
)

_FIND_PLAIN = frozenset(
    """
    -empty -depth -prune -print -print0 -ls -readable -writable -executable -true -false -not ! ( ) -a -o
    -and -or , -quit -daystart -mount -xdev -noleaf -nouser -nogroup -ignore_readdir_race
    """.split()  # noqa: SIM905 - thirty quoted words a line each are no easier to read
)
_FIND_VALUED = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime
    -mmin -atime -amin -ctime -cmin -maxdepth -mindepth -printf -perm -user -group -uid -gid -links -inum
    -lname -ilname -used -fstype
    """.split()  # noqa: SIM905 - as above
)
_FIND_RUNS = frozenset({"-exec", "-execdir"})
_TEST_UNARY = frozenset("-e -f -d -r -w -x -s -L -h -z -n -p -S -b -c".split())  # noqa: SIM905
_TEST_BINARY = frozenset("= == != -nt -ot -ef".split())  # noqa: SIM905
_TEST_NUMERIC = frozenset("-eq -ne -lt -le -gt -ge".split())  # noqa: SIM905
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_EVALUATED = re.compile(r"[$`]")


def check_sed(script: str) -> str:
    """Check a sed script: only addresses and commands that print, keep or replace text in memory."""
    at = 0
    depth = 0
    while at < len(script):
        if script[at] in " \t\n;":
            at += 1
            continue
        if script[at] == "}":
            depth -= 1
            at += 1
            if depth < 0:
                return "its sed script cannot be read"
            continue
        if address := _SED_ADDRESS.match(script, at):
            if any(map(_leaves_bracket_open, _SED_PATTERN.findall(address[0]))):
                return "its sed script cannot be read"
            at = address.end()
        if script[at : at + 1] == "{":
            depth += 1
            at += 1
            continue
        command = (
            _SED_SUBSTITUTE.match(script, at)
            or _SED_TRANSLATE.match(script, at)
            or _SED_COMMAND.match(script, at)
        )
        end = _SED_END.match(script, command.end()) if command else None
        if command is None or end is None:
            return "a command of its sed script is not known to only print"
        if command[0][0] == "s" and _leaves_bracket_open(command[0].split(command[1])[1]):
            return "its sed script cannot be read"
        depth -= "}" in end[0]
        if depth < 0:
            return "its sed script cannot be read"
        at = end.end()
    return "" if depth == 0 else "its sed script cannot be read"


def _leaves_bracket_open(pattern: str) -> bool:
    """Whether the pattern, up to its sign, ends inside ``[…]``: there some versions of sed read the sign."""
    return "[" in _SED_BRACKETS.sub("", pattern)


def check_awk(program: str) -> str:
    """Check an awk program: nothing in it may run, write or choose files.

    It is searched as text, not read: a word in a string counts too, and so does a ``>`` in an action.
    """
    if match := _AWK_ACTS.search(program):
        return f"its awk program has {match[0]!r}"
    action = program.partition("{")[2]
    return "its awk program may write to a file" if ">" in action else ""


def check_jq(program: str) -> str:
    """Check a jq filter: no environment and no modules."""
    match = _JQ_ACTS.search(program)
    return f"its jq filter has {match[0]!r}" if match else ""


def check_printf(words: Sequence[str]) -> str:
    """Check ``printf``: no variable is set, and nothing that a shell would evaluate as a number."""
    rest = list(words)
    if rest and rest[0].startswith("-") and rest[0] != "--":
        return f"its option {rest[0]} is not known to only print"
    template = rest[1] if rest[:1] == ["--"] and len(rest) > 1 else (rest[0] if rest else "")
    if re.search(r"%[^A-Za-z%]*n", template):
        return "%n sets a variable"
    if re.search(rf"{_ENDLESS_WIDTH}|\.[0-9]{{5}}", template):
        return "it may print without end"
    if any(_EVALUATED.search(word) for word in rest):
        return "a shell may evaluate its arguments"
    return ""


def check_test(program: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Check ``test`` and ``[``: known operators only. Returns the trouble and the files that it looks at."""
    rest = list(words)
    if program == "[":
        if rest[-1:] != ["]"]:
            return "its last word is not ]", []
        rest.pop()
    files: list[str] = []
    while rest:
        word = rest.pop(0)
        if word in ("!", "(", ")", "-a", "-o"):
            continue
        if word in _TEST_UNARY and rest:
            value = rest.pop(0)
            if word not in ("-z", "-n"):
                files.append(value)
        elif rest and rest[0] in _TEST_BINARY and len(rest) > 1:
            operator, value = rest.pop(0), rest.pop(0)
            if operator.startswith("-"):
                files += [word, value]
        elif rest and rest[0] in _TEST_NUMERIC and len(rest) > 1:
            rest.pop(0)
            if not (_INTEGER.fullmatch(word) and _INTEGER.fullmatch(rest.pop(0))):
                return "a shell may evaluate what it compares", []
        elif word.startswith("-"):
            return f"its operator {word} is not known to only look", []
    return "", files


def check_date(words: Sequence[str]) -> str:
    """Check ``date``: an operand without ``+`` sets the clock."""
    return "" if all(word.startswith("+") for word in words) else "it would set the clock"


class FindExpression:
    """What a ``find`` looks at and does.

    ``starts`` are the folders, ``commands`` those of ``-exec`` with ``{}`` for the file. ``trouble`` says why
    it is not a read; ``on_links`` that one of the commands may get a link that it finds.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.starts: list[str] = []
        self.commands: list[tuple[str, ...]] = []
        self.compared: list[str] = []
        self.trouble = ""
        self.on_links = False
        self._read(list(words))

    def _read(self, rest: list[str]) -> None:
        while rest and rest[0] in ("-H", "-P", "-O0", "-O1", "-O2", "-O3"):
            if rest.pop(0) == "-H":
                self.trouble = "it follows links that it is given"
        while rest and not rest[0].startswith("-") and rest[0] not in ("!", "(", ")", ","):
            self.starts.append(rest.pop(0))
        depth, only_files, negated = 0, False, False
        while rest and not self.trouble:
            word = rest.pop(0)
            if word in ("!", "-not"):
                negated = True
                continue
            depth += (word == "(") - (word == ")")
            if word in ("-o", "-or", ",") and depth == 0:
                only_files = False  # what comes now is done with what the tests before left out
            if (word, rest[:1]) == ("-type", ["f"]) and depth == 0 and not negated:
                only_files = True
            if word in _FIND_RUNS and not only_files:
                self.on_links = True
            negated = False
            if word in _FIND_PLAIN:
                continue
            if word in _FIND_VALUED and rest:
                rest.pop(0)
            elif (word in ("-newer", "-anewer", "-cnewer", "-samefile")) and rest:
                self.compared.append(rest.pop(0))
            elif word in _FIND_RUNS:
                self._read_command(rest)
            else:
                self.trouble = f"its expression {word} is not known to only look"

    def _read_command(self, rest: list[str]) -> None:
        command: list[str] = []
        while rest and rest[0] != ";" and not (rest[0] == "+" and command[-1:] == ["{}"]):
            command.append(rest.pop(0))
        if not rest:
            self.trouble = "its -exec has no end"
            return
        rest.pop(0)
        # `{}` inside a longer word is replaced as well, which no check of the word foresees.
        if "{}" in command[:1] or any("{}" in word and word != "{}" for word in command):
            self.trouble = "it makes a command of the names that it finds"
        self.commands.append(tuple(command))
