"""Programs that search files: ``grep``, ``rg`` and their like, as searches of the gateway.

See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cockpit.act.reading.scope import Folder, Reading, is_unknown, read_files, search_item

SEARCHING = frozenset(["grep", "egrep", "fgrep", "rg"])

_VALUED = frozenset(
    """
    -A -B -C -m -e -f -g -t -T -M -d -D -j -r --after-context --before-context --context --max-count --regexp
    --file --glob --iglob --type --type-not --include --exclude --exclude-dir --color --colour --threads
    --replace --max-depth --binary-files --directories --devices --label --sort --sortr --encoding
    """.split()  # noqa: SIM905 - as above
)
"""Options of the searching programs that take a value; of grep ``-r`` takes none."""

_COUNTING = frozenset({"q", "c", "L"})
_QUIET_WORDS = frozenset(
    {"--quiet", "--silent", "--count", "--files-without-match", "--files", "--count-matches"}
)
_CLASSES = {
    "space": r"\s", "blank": r" \t", "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9",
    "upper": "A-Z", "lower": "a-z", "word": r"\w", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def translate_search(program: str, rest: list[str], folder: Folder) -> Reading | None:
    """``grep``, ``rg`` and their like."""
    is_grep = program != "rg"
    valued = _VALUED - {"-r", "-T", "-t", "-g", "-M", "-j"} if is_grep else _VALUED
    options: list[tuple[str, str]] = []
    words: list[str] = []
    queue = iter(rest)
    for word in queue:
        if word == "--":
            words += list(queue)
        elif not word.startswith("-") or word == "-":
            words.append(word)
        elif word in valued:
            options.append((word, next(queue, "")))
        elif word.startswith("--"):
            name, _, value = word.partition("=")
            options.append((name, value))
        else:
            options += _short_options(word, valued, queue)
    names = {name for name, _ in options}
    letters = {name[1:] for name in names if not name.startswith("--")}
    if names & _QUIET_WORDS or letters & (_COUNTING if is_grep else {"q", "c"}):
        return None
    if {"-f", "--file"} & names:
        return Reading(refusal="Its expressions are in a file.")
    patterns = [value for name, value in options if name in ("-e", "--regexp")]
    if not patterns:
        if not words:
            return None
        patterns, words = words[:1], words[1:]
    recursive = not is_grep or letters & {"r", "R"} or "--recursive" in names
    places = [word for word in words if word not in ("-", "/dev/null", "/dev/stdin")]
    if not places and not recursive:
        return None  # it filters its input
    if "v" in letters or "--invert-match" in names:
        files = [word for word in places if folder.is_file(word)]
        return read_files([(word, None) for word in files], folder) or Reading(
            refusal="Lines that do not match cannot be searched for."
        )
    if any(map(is_unknown, places)):
        return Reading(refusal="Where it searches is only known when it runs.")
    expression = _expression(program, patterns, letters, names)
    level = " @outline" if "l" in letters or "--files-with-matches" in names else ""
    globs = [
        value.removeprefix("!") if value.startswith("!") else value
        for name, value in options
        if name in ("--include", "-g", "--glob", "--iglob") and not value.startswith("!")
    ]
    return Reading(
        tuple(
            search_item(expression, glob, level)
            for place in places or ["."]
            for glob in _globs(folder, place, globs)
        )
    )


def _short_options(
    word: str, valued: frozenset[str], queue: Iterator[str]
) -> Iterator[tuple[str, str]]:
    """Yield the options of a cluster such as ``-rn`` or ``-A3``, with the value of the last one."""
    for place, letter in enumerate(word[1:], start=1):
        name = f"-{letter}"
        if name in valued:
            yield name, word[place + 1 :] or next(queue, "")
            return
        yield name, ""


def _globs(folder: Folder, place: str, globs: Sequence[str]) -> list[str]:
    """Return the globs of the files in ``place``, which is a folder, a file or a glob itself."""
    path = folder.path(place)
    if not folder.is_folder(place):
        return [path]
    if not globs:
        return ["**" if path == "." else f"{path}/**"]
    return [glob if path == "." else f"{path}/**/{glob}" for glob in globs]


def _expression(program: str, patterns: Sequence[str], letters: set[str], names: set[str]) -> str:
    """Return the regular expression that finds the same lines."""
    if "F" in letters or "--fixed-strings" in names or program == "fgrep":
        texts = [re.escape(pattern) for pattern in patterns]
    elif (program in ("rg", "egrep") or letters & {"E", "P"}) or {
        "--extended-regexp",
        "--perl-regexp",
    } & names:
        texts = [_classes(pattern) for pattern in patterns]
    else:
        texts = [_basic(pattern) for pattern in patterns]
    expression = texts[0] if len(texts) == 1 else "|".join(f"(?:{text})" for text in texts)
    if "w" in letters or "--word-regexp" in names:
        expression = rf"\b(?:{expression})\b"
    if "x" in letters or "--line-regexp" in names:
        expression = f"^(?:{expression})$"
    smart = "S" in letters or "--smart-case" in names
    ignores = "i" in letters or "--ignore-case" in names
    if ignores or (smart and expression == expression.lower()):
        expression = f"(?i){expression}"
    return expression


def _basic(pattern: str) -> str:
    """Return grep's basic expression in the usual syntax: there ``\\|`` and ``\\(`` are the operators."""
    out: list[str] = []
    for piece in re.findall(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.", pattern, re.DOTALL):
        if piece.startswith("\\") and piece[1:] in "|(){}+?":
            out.append(piece[1:])
        elif piece in (r"\<", r"\>"):
            out.append(r"\b")
        elif piece in "|(){}+?":
            out.append(f"\\{piece}")
        else:
            out.append(piece)
    return _classes("".join(out))


def _classes(pattern: str) -> str:
    """Replace POSIX classes such as ``[:space:]``."""
    text = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), pattern)
    return text.replace(r"\<", r"\b").replace(r"\>", r"\b")
