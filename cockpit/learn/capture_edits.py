"""The files of the project that a command changed: by its redirections, by what its programs do.

See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from cockpit.access.commands.plain_reads import read_words
from cockpit.access.shell_commands import RanCommand
from cockpit.learn.capture_scripts import list_node_writes, list_python_writes

Read = Callable[[str], str | None]
"""The text of a file by its whole path; None where there is none. Scripts that a command runs, and
patches that it applies, are read through it."""

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*$")
_PATCHED = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)|^--- (?:a/)?([^\t\n]+)", re.MULTILINE)
_ENVELOPE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.M)
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+), in <module>', re.MULTILINE)
_NEVER_BEGAN = re.compile(r"command not found|can't open file|SyntaxError:|IndentationError:")
_GLOB = re.compile(r"[*?$`]")

_REWRITERS: dict[str, tuple[str, ...]] = {
    "black": (),
    "isort": (),
    "rustfmt": (),
    "autopep8": ("-i", "--in-place"),
    "yapf": ("-i", "--in-place"),
    "ruff": ("format", "--fix"),
    "sqlfluff": ("fix", "format"),
    "prettier": ("--write", "-w"),
    "eslint": ("--fix",),
    "gofmt": ("-w",),
    "goimports": ("-w",),
    "clang-format": ("-i",),
    "dos2unix": (),
}
"""Programs that rewrite the files they are given, and the word (one of) that makes them do it."""
_LOOK_ONLY = frozenset(["--check", "--diff", "--check-only", "-c"])


def list_edited_files(
    simple: Sequence[RanCommand], *, root: str, failure: str | None = None, read: Read | None = None
) -> list[str]:
    """List the files beneath ``root`` that these commands changed, relative to it, without repeats.

    ``failure`` is the output when the last command failed: of a Python program the changes before the
    failure count, of any other failed command none. ``read`` returns the text of scripts and patches.
    """
    paths: dict[str, None] = {}
    written: dict[str, str] = {}

    def text(path: str) -> str | None:
        """Return a script that this command wrote, or one on disk."""
        return written[path] if path in written else read(path) if read is not None else None

    for place, command in enumerate(simple):
        broke = failure if place == len(simple) - 1 else None
        # A plain read changes nothing, whatever its words look like.
        reads = read_words(command.argv) is not None
        for path in (*command.writes, *([] if reads else _by_program(command, text, broke))):
            inside = relative_to_root(path, command.cwd, root)
            if inside:
                paths[inside] = None
        if command.stdin and command.program == "cat":
            written |= {_whole(path, command): command.stdin for path in command.writes}
    return list(paths)


def relative_to_root(path: str, cwd: str, root: str) -> str:
    """Return ``path`` relative to ``root``; empty when it lies outside, or is not a plain path."""
    if not path or _GLOB.search(path) or "\n" in path or path.startswith(("/dev/", "~", "&")):
        return ""
    path_from_root = posixpath.normpath(posixpath.join(cwd or root, path))
    top = posixpath.normpath(root) if root else ""
    if top and path_from_root.startswith(f"{top.rstrip('/')}/"):
        path_from_root = path_from_root[len(top.rstrip("/")) + 1 :]
    elif posixpath.isabs(path_from_root) and not (top and path_from_root == top):
        return ""
    inner = path_from_root.split("/", 1)[0]
    return "" if inner in ("..", ".git") or path_from_root in (".", top) else path_from_root


def list_patched_files(text: str) -> list[str]:
    """List the files that a patch (a diff, or an agent's ``*** Begin Patch``) changes."""
    paths = [(first or second).strip() for first, second in _ENVELOPE.findall(text)]
    if "*** Begin Patch" not in text:
        paths += [new or old for new, old in _PATCHED.findall(text)]
    return [path for path in dict.fromkeys(paths) if path != "/dev/null"]


def _by_program(command: RanCommand, read: Read, broke: str | None = None) -> list[str]:
    name, words = command.program, command.argv[1:]
    plain = [word for word in words if not word.startswith("-")]
    if _PYTHON.match(name):
        if broke is not None and _NEVER_BEGAN.search(broke):
            return []
        return list_python_writes(
            _program_text(command, "-c", read), _broke_at(command, broke or "")
        )
    if broke is not None:
        return []
    if name in ("node", "deno", "bun"):
        return list_node_writes(_program_text(command, "-e", read))
    if name in ("sed", "gsed", "perl"):
        return _in_place(name, words)
    if name in ("tee", "touch", "rm", "unlink", "truncate", "shred"):
        return plain[1:] if name == "truncate" and "-s" in words else plain
    if name in ("cp", "mv", "install", "ln"):
        return _copied(name, plain)
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    if name == "git":
        return _git(words, command, read)
    if name == "patch":
        source = next((word for word in plain if word.endswith((".patch", ".diff"))), "")
        named = [word for word in plain if word != source and not word.isdigit()]
        return named or list_patched_files(command.stdin or _text(source, command, read))
    if name == "apply_patch":
        return list_patched_files(" ".join(words) or command.stdin)
    if name in ("npx", "bunx") and plain:
        return _by_program(
            RanCommand(tuple(words), (), command.stdin, command.cwd, command.joined), read
        )
    if name in _REWRITERS and not _LOOK_ONLY.intersection(words):
        flags = _REWRITERS[name]
        if not flags or set(flags).intersection(words):
            return [word for word in plain if word not in flags and "." in word]
    return []


def _broke_at(command: RanCommand, output: str) -> int | None:
    """Return the line of a Python program at which its own uncaught exception was raised."""
    names = ["<string>", "<stdin>", *(posixpath.basename(word) for word in command.argv[1:])]
    for frame in _FRAME.finditer(output):
        if posixpath.basename(frame[1]) in names:
            return int(frame[2])
    return None


def _program_text(command: RanCommand, flag: str, read: Read) -> str:
    """Return the program that an interpreter runs: from its arguments, its input, or a file."""
    words = list(command.argv[1:])
    while words:
        if words[0] == flag and len(words) > 1:
            return words[1]
        if words[0] == "-m":
            return ""
        if words[0] == "-" or not words[0].startswith("-"):
            break
        words.pop(0)
    if not words or words[0] == "-":
        return command.stdin
    return _text(words[0], command, read)


def _text(path: str, command: RanCommand, read: Read) -> str:
    return (read(_whole(path, command)) or "") if path else ""


def _whole(path: str, command: RanCommand) -> str:
    return posixpath.normpath(posixpath.join(command.cwd, path))


def _in_place(name: str, words: Sequence[str]) -> list[str]:
    inplace = script = False
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("-e", "-f", "--expression", "--file"):
            script = next(rest, None) is not None
        elif word.startswith("--"):
            inplace |= word.startswith("--in-place")
            script |= word.startswith(("--expression=", "--file="))
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            inplace |= letters.startswith("i") or ("i" in letters and name == "perl")
            inplace |= name != "perl" and letters[:1] in "nErsz" and "i" in letters
            if letters.endswith("e"):
                script = next(rest, None) is not None
        else:
            plain.append(word)
    if not inplace:
        return []
    return plain if script else plain[1:]


def _copied(name: str, plain: Sequence[str]) -> list[str]:
    if len(plain) < 2:
        return []
    *sources, target = plain
    if target.endswith("/") or target in (".", "..") or len(sources) > 1:
        targets = [posixpath.join(target, posixpath.basename(source)) for source in sources]
    else:
        targets = [target]
    return [*targets, *sources] if name == "mv" else targets


def _git(words: Sequence[str], command: RanCommand, read: Read) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
    if not rest:
        return []
    verb, arguments = rest[0], rest[1:]
    plain = [word for word in arguments if not word.startswith("-")]
    if verb == "checkout" and "--" in arguments:
        return arguments[arguments.index("--") + 1 :]
    if verb == "checkout":
        return [word for word in plain if "." in posixpath.basename(word) and "/" in word]
    if verb == "restore" and "--staged" not in arguments:
        return plain
    if verb == "rm" and "--cached" not in arguments:
        return plain
    if verb == "mv":
        return _copied("mv", plain)
    if verb == "apply" and "--check" not in arguments and "--stat" not in arguments:
        texts = [_text(path, command, read) for path in plain] or [command.stdin]
        return [path for text in texts for path in list_patched_files(text)]
    return []
