"""Commands of git: whether one only reads, in the repository as it is configured now.

Git runs what a repository's configuration names: monitors, filters, drivers of diffs, hooks. A repository
with any setting that is not known to be harmless is none in which a command of git is a read. See
``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from cockpit.access.reads.git_table import (
    GIT_VERBS,
    GLOBAL_OPTIONS,
    LOOKS_AT_WORKTREE,
    SAFE_SETTINGS,
)
from cockpit.access.reads.program_options import Arguments, match_arguments, parse_row
from cockpit.access.reads.program_table import AGENT_GIT_VARIABLES, HARMLESS_VARIABLES
from cockpit.access.reads.reading_place import ReadingPlace
from cockpit.access.secret_files import is_sensitive

NAMES_SECRETS = "it names a file that may hold secrets"
"""Why a command of git that only reads is none."""

_HEADER = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_SAFE = re.compile(SAFE_SETTINGS)
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of a submodule in git's index."""
_MOST_CONFIG = 200_000
_MOST_INDEX = 50_000_000
_MOST_NAMES = 8_000_000
_SHORTENED = b"\x00\x00\x00\x04"
"""The version of an index whose names are shortened."""
_INDEX_NAME = re.compile(rb"(?<![^\x00-\x1f])([^\x00-\x1f]++)\x00")
_LONGEST_NAME = 4096
_LISTING = ("-l", "--list")


def match_git(words: Sequence[str]) -> tuple[Arguments, str]:
    """Match the words after ``git``; returns the arguments, with their trouble, and the verb."""
    rest = list(words)
    if rest in (["--version"], ["-v"]):
        return Arguments(), ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option not in GLOBAL_OPTIONS:
            return Arguments(trouble=f"git {option} changes where or how git works"), ""
    verb = rest[0] if rest else ""
    if verb not in GIT_VERBS:
        return Arguments(trouble=f"git {verb} is not known to only read".replace("  ", " ")), verb
    row = parse_row(GIT_VERBS[verb])
    arguments = match_arguments(rest[1:], row)
    if not arguments.trouble:
        arguments.trouble = _why_not_operands(verb, row.operands, arguments)
    return arguments, verb


def _why_not_operands(verb: str, kind: str, arguments: Arguments) -> str:
    operands = arguments.operands
    for name, value in arguments.options:
        formats = name in ("--format", "--pretty", "--sort", "--group")
        if formats and re.search(r"%[-+ ]?G|signature", value):
            return "it would run the program that checks signatures"
    if kind == "listed" and operands and not arguments.has(*_LISTING):
        return f"git {verb} with a name makes it"
    if kind == "reflog" and operands[:1] and operands[0] in ("expire", "delete", "drop", "write"):
        return "it changes the reflog"
    if (kind == "stash" and operands != ["list"]) or (kind == "worktree" and operands != ["list"]):
        return f"git {verb} {' '.join(operands)} is not known to only read".rstrip()
    if any(is_sensitive(part) for word in operands for part in _path_parts(word)):
        return NAMES_SECRETS
    return ""


def _path_parts(word: str) -> list[str]:
    """The ways in which a revision or a path of git may name a file."""
    word = re.sub(r"^:(?:\([^)]*\)|[!^/]+)?", "", word)
    # A revision may have colons itself: `HEAD^{/a:b}:file`.
    pieces = word.split(":")
    return [":".join(pieces[place:]) for place in range(len(pieces))]


def why_not_repository(
    verb: str, arguments: Arguments, words: Sequence[str], place: ReadingPlace
) -> str:
    """Say why git would do more than read in this place; '' when it would not."""
    if not verb:
        return ""
    for name, value in place.env.items():
        if not name.startswith("GIT_"):
            continue
        if name in HARMLESS_VARIABLES and re.fullmatch(HARMLESS_VARIABLES[name], value):
            continue
        inside = Path(value).is_absolute() and place.holds(os.path.realpath(value))
        if name not in AGENT_GIT_VARIABLES or inside:
            return f"{name} is set and changes how git works"
    for word in arguments.operands:
        for part in _path_parts(word):
            if part and (trouble := place.why_not_file(part, names_only=True)):
                return trouble
    git_folder = _find_repository(place)
    if git_folder is None:
        return "there is no repository of the project"
    common = _common_folder(git_folder)
    if common is None:
        return "its repository cannot be read"
    for file in (common / "config", git_folder / "config.worktree"):
        if trouble := _why_not_settings(file):
            return trouble
    if verb in LOOKS_AT_WORKTREE:
        if "--no-optional-locks" not in words and (common / "hooks" / "post-index-change").exists():
            return "the repository has a hook that git would run"
        ignores = any(
            name == "--ignore-submodules" and value in ("", "all")
            for name, value in arguments.options
        )
        if verb in ("status", "diff") and not ignores and _has_submodules(git_folder):
            return "git would look into submodules (--ignore-submodules=all keeps it out)"
    if verb == "grep" and (arguments.has("--untracked") or _tracks_secrets(git_folder)):
        return place.why_not_folder(".") or "it may print secrets of tracked files"
    if verb == "remote" and arguments.options and (trouble := _why_not_remotes(common / "config")):
        return trouble
    return ""


def _find_repository(place: ReadingPlace) -> Path | None:
    folder = Path(place.cwd).resolve()
    while place.holds(str(folder)):
        git = folder / ".git"
        if git.is_symlink():
            return None
        if git.is_dir():
            return git
        if git.is_file():
            text = _read(git)
            named = text.removeprefix("gitdir:").strip()
            return folder / named if text.startswith("gitdir:") else None
        if all((folder / name).exists() for name in ("HEAD", "objects", "refs")):
            return None  # git takes such a folder for a repository of its own
        folder = folder.parent
    return None


def _common_folder(git_folder: Path) -> Path | None:
    try:
        redirect = _read(git_folder / "commondir").strip()
        common = (git_folder / redirect).resolve() if redirect else git_folder.resolve()
    except (OSError, ValueError):
        return None
    return common if (common / "HEAD").exists() else None


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_CONFIG + 1)
    except OSError:
        return ""


def _why_not_settings(file: Path) -> str:
    """Say which setting of a configuration file is not known to be harmless; '' when all are."""
    text = _read(file)
    if len(text) > _MOST_CONFIG:
        return "the repository's configuration is too long"
    section = ""
    for line in text.split("\n"):
        rest = line.strip(" \t\r\ufeff")
        if header := _HEADER.match(rest):
            section = header[1].lower().partition(".")[0]
            rest = rest[header.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        setting = _SETTING.fullmatch(rest)
        if setting is None or rest.endswith("\\"):
            return "the repository's configuration cannot be read"
        name, value = f"{section}.{setting[1].lower()}", (setting[2] or "true").strip().lower()
        if not (_SAFE.fullmatch(name) or _SAFE.fullmatch(f"{name}={value}")):
            return f"the repository sets {name}, which may change what git runs"
    return ""


def _has_submodules(git_folder: Path) -> bool:
    index = git_folder / "index"
    try:
        if index.stat().st_size > _MOST_INDEX:
            return True
        if any(git_folder.glob("sharedindex.*")):
            return True  # a part of the index is in another file
        return _GITLINK in index.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _tracks_secrets(git_folder: Path) -> bool:
    """Whether a file for secrets is in git's index, or that cannot be seen."""
    try:
        with (git_folder / "index").open("rb") as file:
            data = file.read(_MOST_NAMES + 1)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if len(data) > _MOST_NAMES or data[4:8] == _SHORTENED or any(git_folder.glob("sharedindex.*")):
        return True
    # Of the number before a name, one byte may look like its first letter.
    names = [name[-_LONGEST_NAME:].decode("utf-8", "replace") for name in _INDEX_NAME.findall(data)]
    return any(is_sensitive(name) or is_sensitive(name[1:]) for name in names)


def _why_not_remotes(config: Path) -> str:
    from cockpit.core.secrets import (
        mask,
    )  # an agent waits for a hook, which needs it for few commands

    text = _read(config)
    return "the address of a remote holds a password" if mask(text) != text else ""
