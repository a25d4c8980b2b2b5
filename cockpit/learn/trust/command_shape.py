"""The shape of a command: its words, with folders in place of the files that a checker reads.

The words come from the one shell parser, so quotes, variables and chains are gone before. Whatever runs
something else (a shell, ``env``, ``xargs``) has no shape. Specified in ``docs/reference/trust.md``, shapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.access.commands.command_table import DENIED, HIDES, SHELLS, WRAPPERS
from cockpit.learn.trust.path_shape import folder_pattern, is_plain_path, is_plain_text

_RUNS_OTHERS = (
    (WRAPPERS | SHELLS | HIDES | DENIED.keys())
    | {"ssh", "docker", "podman", "kubectl", "npx", "bunx", "pipx", "uvx"}
)  # fmt: skip
"""Programs whose words are another command's, or that run what they download."""

_SWITCHES: dict[str, frozenset[str]] = {
    "pytest": frozenset(
        (
            *(
                "-q",
                "-qq",
                "-v",
                "-vv",
                "-x",
                "-s",
                "-l",
                "--lf",
                "--ff",
                "--sw",
                "--co",
                "--quiet",
            ),
            *("--verbose", "--exitfirst", "--last-failed", "--failed-first", "--no-header"),
            "--collect-only",
        )
    ),
    "mypy": frozenset(("--strict", "--pretty")),
    "ruff": frozenset(("--quiet", "-q", "--no-cache")),
    "pyright": frozenset(),
    "eslint": frozenset(("--quiet",)),
    "tsc": frozenset(("--noEmit",)),
}
"""Programs that check the files that they are given, with their options that take no value."""
_VERBS = {"ruff": frozenset(("check",))}
_OPTION = re.compile(r"-{1,2}[A-Za-z0-9][A-Za-z0-9_-]*(?:=.*)?", re.DOTALL)
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_SIGNS = set("*?[]{}\\\"'`$|;&<>~!\n\t")
_LONGEST = 1_000
_MOST_WORDS = 40


def command_shape(argv: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words of a command's shape, and the paths that it named; None where it has no shape."""
    if not argv or len(argv) > _MOST_WORDS or sum(map(len, argv)) > _LONGEST:
        return None
    program = argv[0]
    if not _PROGRAM.fullmatch(program) or program.casefold() in _RUNS_OTHERS:
        return None
    for word in argv:
        if not word or not is_plain_text(word) or _SIGNS & set(word) or "[masked:" in word:
            return None
        if ".." in word.replace("=", "/").replace(":", "/").split("/"):
            return None
    if argv[0] in _SWITCHES and any(word.startswith("@") for word in argv):
        return None  # pytest, mypy and others read further arguments from such a file
    place = 1
    verbs = _VERBS.get(program)
    if verbs is not None and (len(argv) < 2 or argv[1] not in verbs):
        return tuple(argv), ()
    switches = _SWITCHES.get(program)
    if switches is None:
        return tuple(argv), ()
    if verbs is not None:
        place = 2
    words, paths = list(argv[:place]), []
    takes_value = False
    for word in argv[place:]:
        if _OPTION.fullmatch(word):
            takes_value = word not in switches and "=" not in word
            words.append(word)
            continue
        path, node, _ = word.partition("::")
        pattern = "" if takes_value or word.startswith("-") else folder_pattern(path)
        takes_value = False
        if not pattern or pattern == path:
            if is_plain_path(path):
                paths.append(path)
            words.append(word)
            continue
        paths.append(path)
        shown = f"{pattern}::*" if node else pattern
        if words[-1] != shown:
            words.append(shown)
    return tuple(words), tuple(paths)


def checks_files(argv: Sequence[str]) -> bool:
    """Whether a command is that of a program that checks the files that it is given."""
    return bool(argv) and argv[0] in _SWITCHES
