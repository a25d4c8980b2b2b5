"""Plain commands that read, as the context requests that they are.

``run cat a.py`` would bring a file into the context past the gateway: without its place in the packet and
without the guard against repeated reads. So it becomes a request, and so does every command of
:mod:`cockpit.access.commands.plain_reads` that scope items replace. All others are commands: those that
change nothing run in the reading sandbox. See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence

from cockpit.access.commands.plain_reads import PlainRead, read_words, sed_lines
from cockpit.access.confined_paths import Confined, PathRefused

MAX_COUNTED_BYTES = 50_000_000
"""The largest file whose lines are counted for ``tail``."""

_CLASSES = {
    "space": r"\s", "blank": r" \t", "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9",
    "upper": "A-Z", "lower": "a-z", "word": r"\w", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_SUMMARY = ("--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--summary")
_COUNTING = ("-q", "-v", "--invert-match")


def find_reading(
    argv: Sequence[str], confined: Confined, *, pinned_rev: bool = False
) -> tuple[str, ...]:
    """Return the scope items that read what a plain reading command would; none for every other command.

    ``pinned_rev`` says that the session reads files from a revision.
    """
    read = None if refuse_revision(argv) else read_words(argv)
    return translate(read, confined, pinned_rev=pinned_rev) if read else ()


def translate(
    read: PlainRead, confined: Confined, *, cwd: str = "", pinned_rev: bool = False
) -> tuple[str, ...]:
    """Return the scope items that read the same; none where there are none."""
    items = _Translation(read, confined, cwd, pinned_rev=pinned_rev).items()
    return tuple(dict.fromkeys(items))


def refuse_revision(argv: Sequence[str]) -> str:
    """Say what to ask for instead of a file of another revision; '' for any other command."""
    if tuple(argv[:2]) != ("git", "show") or len(argv) != 3 or ":" not in argv[2]:
        return ""
    commit, _, path = argv[2].partition(":")
    where = f"file:{path}" if path else "tree:."
    return (
        "The gateway reads the project as it is now, not files of another revision. Ask for"
        f" {where}, or for diff:{commit or 'HEAD'} in {path or '**'}, which shows what changed since."
    )


class _Translation:
    """One command in its folder."""

    def __init__(self, read: PlainRead, confined: Confined, cwd: str, *, pinned_rev: bool) -> None:
        self._read = read
        self._confined = confined
        self._cwd = cwd
        self._pinned_rev = pinned_rev

    def items(self) -> list[str]:
        """Return the scope items that read the same; none where there are none."""
        read = self._read
        match read.program:
            case "cat" | "nl":
                return [file_item(self._path(path)) for path in read.paths]
            case "head" | "tail":
                return [self._end(path) for path in read.paths]
            case "sed":
                return [file_item(self._path(path), sed_lines(read)) for path in read.paths]
            case "grep" | "rg":
                return self._search()
            case "ls":
                is_plain = not read.options or read.recursive
                return (
                    [f"tree:{self._path(path)}" for path in read.paths or (".",)]
                    if is_plain
                    else []
                )
            case "git diff":
                return self._diff()
            case "git show":
                return self._show()
            case "git log":
                return self._log()
            case "git blame":
                span = read.value("-L")
                first, _, last = span.partition(",")
                end = int(first) + int(last) - 1 if last.startswith("+") else int(last or 0)
                lines = (int(first), end) if span else None
                return [file_item(self._path(read.paths[0]), lines), "log:HEAD"]
            case _:
                return []

    def _path(self, word: str) -> str:
        """Return the file that ``word`` names, from the project's root where it is below it."""
        root = str(self._confined.root)
        joined = posixpath.normpath(posixpath.join(root, self._cwd, word))
        return posixpath.relpath(joined, root) if f"{joined}/".startswith(f"{root}/") else joined

    def _end(self, path: str) -> str:
        count = int(self._read.value("-n", "--lines") or 10)
        if self._read.program == "head":
            return file_item(self._path(path), (1, max(1, count)))
        total = 0 if self._pinned_rev else self._count_lines(path)
        return file_item(self._path(path), (max(1, total - count + 1), total) if total else None)

    def _count_lines(self, path: str) -> int:
        try:
            with self._confined.open_read(self._path(path)) as file:
                data = file.read(MAX_COUNTED_BYTES + 1)
        except (PathRefused, OSError):
            return 0
        if len(data) > MAX_COUNTED_BYTES:
            return 0
        return data.count(b"\n") + (not data.endswith(b"\n"))

    def _is_folder(self, word: str) -> bool:
        return self._confined.root.joinpath(self._path(word)).is_dir()

    def _search(self) -> list[str]:
        read = self._read
        if read.has(*_COUNTING):
            return []
        level = " @outline" if read.has("-l", "--files-with-matches") else ""
        globs = [value for name, value in read.options if name in ("--include", "-g", "--glob")]
        if any(glob.startswith("!") for glob in globs):
            return []
        return [
            f"search:{_expression(read)} in {_spell(each)}{level}"
            for place in read.paths or (".",)
            for each in self._globs(place, globs)
        ]

    def _globs(self, place: str, globs: Sequence[str]) -> list[str]:
        """Return the globs of the files in ``place``, which is a folder or a file."""
        path = self._path(place)
        if not self._is_folder(place):
            return [path]
        if not globs:
            return ["**" if path == "." else f"{path}/**"]
        return [glob if path == "." else f"{path}/**/{glob}" for glob in globs]

    def _split(self) -> tuple[list[str], list[str]]:
        """Return the revisions and the paths among the words of a git command."""
        revisions: list[str] = []
        paths = list(self._read.paths)
        for word in self._read.operands:
            is_path = (
                self._is_folder(word) or self._confined.root.joinpath(self._path(word)).is_file()
            )
            (paths if is_path else revisions).append(word)
        return revisions, paths

    def _diff(self) -> list[str]:
        revisions, paths = self._split()
        if len(revisions) > 2:
            return []
        return self._in_paths(f"diff:{'..'.join(revisions) or 'HEAD'}", paths)

    def _show(self) -> list[str]:
        revisions, paths = self._split()
        items: list[str] = []
        for commit in revisions or ["HEAD"]:
            items.append(f"log:{commit}~1..{commit}")
            items += self._in_paths(f"diff:{commit}~1..{commit}", paths)
        return items

    def _log(self) -> list[str]:
        revisions, paths = self._split()
        if len(revisions) > 1:
            return []
        span = revisions[0] if revisions else "HEAD"
        if not self._read.has("-p", "-u", "--patch"):
            return [f"log:{span}{' @outline' if self._read.has('--oneline') else ''}"]
        return [f"log:{span}", *self._in_paths(f"diff:{span}", paths)] if ".." in span else []

    def _in_paths(self, item: str, paths: Sequence[str]) -> list[str]:
        """Return ``item`` limited to each of ``paths``."""
        level = " @outline" if self._read.has(*_SUMMARY) else ""
        if not paths or "." in paths:
            return [f"{item}{level}"]
        globs = [
            f"{self._path(path)}/**" if self._is_folder(path) else self._path(path)
            for path in paths
        ]
        return [f"{item} in {_spell(glob)}{level}" for glob in globs]


def file_item(path: str, lines: tuple[int, int] | None = None) -> str:
    """Return the scope item of a file, or of some of its lines."""
    is_plain = (
        path.isprintable() and path == path.strip() and not re.search(r'^"|:\d|:-|@\w+$', path)
    )
    end = f":{lines[0]}-{lines[1]}" if lines else ""
    return f"file:{path if is_plain else json.dumps(path)}{end}"


def _spell(glob: str) -> str:
    is_plain = glob.isprintable() and " " not in glob and re.search(r"[*?\[/.]", glob)
    return glob if is_plain and not glob.startswith('"') else json.dumps(glob)


def _expression(read: PlainRead) -> str:
    """Return the regular expression that finds the same lines."""
    if read.has("-F", "--fixed-strings"):
        texts = [re.escape(pattern) for pattern in read.patterns]
    elif read.program == "rg" or read.has("-E", "-P", "--extended-regexp"):
        texts = [_classes(pattern) for pattern in read.patterns]
    else:
        texts = [_basic(pattern) for pattern in read.patterns]
    expression = texts[0] if len(texts) == 1 else "|".join(f"(?:{text})" for text in texts)
    if read.has("-w", "--word-regexp"):
        expression = rf"\b(?:{expression})\b"
    if read.has("-x"):
        expression = f"^(?:{expression})$"
    is_smart = read.has("-S", "--smart-case") and expression == expression.lower()
    return f"(?i){expression}" if is_smart or read.has("-i", "--ignore-case") else expression


def _basic(pattern: str) -> str:
    """Return grep's basic expression in the usual syntax: there ``\\|`` and ``\\(`` are the operators."""
    out: list[str] = []
    for piece in re.findall(r"\\.|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|.", pattern, re.DOTALL):
        if piece.startswith("\\") and piece[1:] in "|(){}+?":
            out.append(piece[1:])
        elif piece in "|(){}+?":
            out.append(f"\\{piece}")
        else:
            out.append(piece)
    return _classes("".join(out))


def _classes(pattern: str) -> str:
    """Replace POSIX classes such as ``[:space:]``."""
    text = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), pattern)
    return text.replace(r"\<", r"\b").replace(r"\>", r"\b")
