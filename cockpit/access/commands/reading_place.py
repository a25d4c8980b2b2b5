"""Where an agent outside our sandbox would read: is a plain command there, now, a read and no more?

A program must lie outside the project; each file inside it, be no device and have no secrets; a folder must
have none in it. Git runs what a repository's settings name, so with a setting that is not known to be
harmless no command of git is a read. Git alone is started, to list them. See ``docs/reference/security.md``,
reads.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from msgspec import Struct, field

from cockpit.access.commands.plain_reads import NAMING, PlainRead, read_line
from cockpit.access.git_folders import locate_git_folders
from cockpit.access.secret_files import is_sensitive
from cockpit.core.state_folder import state_root

MAX_ENTRIES = 20_000
"""Entries of folders that are looked at for one command; a larger tree is not known to be free of secrets."""

_MOST_SETTINGS = 200_000
_MOST_INDEX = 50_000_000
_SHELLS = frozenset(("", "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh"))
_LOADS = (
    *(
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "ZDOTDIR",
        "SHELLOPTS",
        "BASHOPTS",
    ),
    *("POSIXLY_CORRECT", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS"),
)
_BRACKETS = re.compile(r"\[.*\]")
_SAFE = re.compile(
    r"core\.(repositoryformatversion|filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
    r"|eol|safecrlf|quotepath|abbrev|longpaths|untrackedcache|compression|preloadindex|bigfilethreshold)"
    r"|core\.bare=false"
    r"|remote\.(url|fetch|pushurl|tagopt|prune|gh-resolved)|branch\.\w+|user\.(name|email|signingkey)"
    r"|(color|pull|push|fetch|rerere|init|advice|gc|pack|index|maintenance|rebase)\.\w+"
    r"|(lfs|submodule)\.(repositoryformatversion|active|url|access)|extensions\.objectformat"
)
"""Settings of a repository, without subsection, under which git reads as it does without them."""
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of a submodule in git's index."""
_GIT_VARIABLES = re.compile(
    r"GIT_(?:EDITOR|SEQUENCE_EDITOR|MERGE_AUTOEDIT|TERMINAL_PROMPT|OPTIONAL_LOCKS|PAGER|ASKPASS"
    r"|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|CONFIG_(?:NOSYSTEM|GLOBAL|SYSTEM)|SSL_.*|HTTP_USER_AGENT"
    r"|CEILING_DIRECTORIES|PS1_.*|DISCOVERY_ACROSS_FILESYSTEM)"
)
"""``GIT_*`` variables of an agent's environment under which git reads as it does without them, so long as
they name nothing in the project."""


class ReadingPlace(Struct, frozen=True):
    """The project's ``root`` (its worktree, real path), the folder ``cwd`` that a command runs in, and the
    environment ``env`` that it gets."""

    root: str
    cwd: str
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def holds(self, path: str) -> bool:
        """Whether a real path is the project's root or lies below it."""
        return path == self.root or path.startswith(f"{self.root}{os.sep}")

    def why_unsafe(self) -> str:
        """Say why no command of this environment is known to be a read; '' when one can be."""
        if not self.holds(os.path.realpath(self.cwd)):
            return "it runs outside the project"
        shell = os.path.basename(self.env.get("SHELL", ""))
        if shell not in _SHELLS:
            return f"{shell} reads commands in its own way"
        for name in _LOADS:
            if self.env.get(name):
                return f"{name} is set and changes what runs"
        if any(name.startswith("BASH_FUNC_") for name in self.env):
            return "the environment defines shell functions"
        return ""

    def why_not_program(self, word: str) -> str:
        """Say why ``word`` is not a program from outside the project; '' when it is one."""
        name = os.path.basename(word)
        where = self._search(name)
        if where == "relative":
            return f"{name} could come from a relative folder of PATH"
        if not where:
            return f"there is no program {name} on PATH"
        real = os.path.realpath(where)
        # A folder of PATH may be in the project, or a link on PATH lead into it.
        if self.holds(real) or self.holds(os.path.realpath(os.path.dirname(where))):
            return f"{name} is a program of the project"
        if word != name and (not os.path.isabs(word) or os.path.realpath(word) != real):
            return f"{word} is not the program {name} of PATH"
        return ""

    def _search(self, name: str) -> str:
        for folder in self.env.get("PATH", os.defpath).split(os.pathsep):
            if not os.path.isabs(folder):
                return "relative"
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return ""

    def why_not_file(self, word: str, *, names_only: bool = False) -> str:
        """Say why reading the file ``word`` is more than reading the project; '' when it is not.

        With ``names_only`` its content is not read, only its name, size or time.
        """
        if not word or "\0" in word:
            return "it names no file"
        path = os.path.normpath(os.path.join(self.cwd, word))
        real = os.path.realpath(os.path.join(self.cwd, word))
        if not self.holds(real):
            return f"{word} lies outside the project"
        state = state_root()
        if (real + os.sep).startswith(state + os.sep) and not self.root.startswith(state + os.sep):
            return f"{word} is one of cockpit's own files"
        for form in (os.path.relpath(path, self.root), os.path.relpath(real, self.root)):
            parts = [part.casefold() for part in form.split(os.sep)]
            if ".git" in parts or (".cockpit" in parts and "state" in parts):
                return f"{word} is one of git's or cockpit's own files"
            if not names_only and is_sensitive(form):
                return f"{word} may hold secrets"
        try:
            mode = os.stat(real).st_mode
        except OSError:
            return ""  # no such file: the program says so
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return f"{word} is not an ordinary file"
        return ""

    def why_not_folder(self, word: str, *, names: Sequence[str] = ()) -> str:
        """Say why reading everything below ``word`` is more than reading the project; '' when it is not.

        With ``names`` (patterns) only files with such names are read.
        """
        names = [_BRACKETS.sub("*", name) for name in names]
        trouble = self.why_not_file(word)
        path = os.path.realpath(os.path.join(self.cwd, word))
        if trouble or not os.path.isdir(path):
            return trouble
        if state_root().startswith(path + os.sep) and os.path.isdir(state_root()):
            return f"{word} holds cockpit's own files"
        left = MAX_ENTRIES
        folders = [path]
        while folders:
            try:
                entries = list(islice(os.scandir(folders.pop()), left + 1))
            except OSError:
                continue
            left -= len(entries)
            if left < 0:
                return f"{word} has too many files to look for secrets in"
            for entry in entries:
                if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                    if _has_credentials(entry.path):
                        return f"{word} has a .git folder with credentials"
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif names and not any(fnmatchcase(entry.name, name) for name in names):
                    continue
                elif is_sensitive(os.path.relpath(entry.path, self.root)):
                    return f"{os.path.relpath(entry.path, self.root)} below {word} may hold secrets"
        return ""


def why_not_read(line: str, place: ReadingPlace) -> str:
    """Say why a command line is not known to only read ordinary files of the project; '' when it is."""
    read = read_line(line)
    if read is None:
        return "it is not one plain command that reads"
    trouble = place.why_unsafe() or place.why_not_program(read.program.partition(" ")[0])
    if trouble:
        return trouble
    if read.program.startswith("git "):
        return _why_not_git(read, place)
    names_only = read.program in NAMING
    for path in read.paths or (".",):
        if names_only or not read.recursive:
            trouble = place.why_not_file(path, names_only=names_only)
        else:
            trouble = place.why_not_folder(path)
        if trouble:
            return trouble
    return ""


def _why_not_git(read: PlainRead, place: ReadingPlace) -> str:
    for name, value in place.env.items():
        inside = os.path.isabs(value) and place.holds(os.path.realpath(value))
        if name.startswith("GIT_") and (inside or not _GIT_VARIABLES.fullmatch(name)):
            return f"{name} is set and changes how git works"
    for word in (*read.operands, *read.paths):
        if trouble := place.why_not_file(word):
            return trouble
    if not read.paths and (trouble := place.why_not_folder(place.root)):
        return trouble
    folder = os.path.realpath(place.cwd)
    while folder != place.root:
        if any(os.path.lexists(f"{folder}/{name}") for name in (".git", "HEAD")):
            return "another repository is in the way"
        folder = os.path.dirname(folder)
    folders = locate_git_folders(Path(place.root))
    if folders is None or os.path.islink(f"{place.root}/.git"):
        return "there is no repository of the project"
    if trouble := _why_not_settings(place.root):
        return trouble
    if os.path.exists(f"{folders.common}/hooks/post-index-change"):
        return "the repository has a hook that git would run"
    index = _read(f"{folders.own}/index", _MOST_INDEX)
    if len(index) > _MOST_INDEX or _GITLINK in index:
        return "git would look into submodules"
    return ""


def _read(path: str, most: int) -> bytes:
    """Return the beginning of an ordinary file; nothing for any other, which could keep us waiting."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        return file.read(most + 1) if stat.S_ISREG(os.fstat(opened).st_mode) else b""


def _why_not_settings(root: str) -> str:
    """Say which setting of a repository is not known to be harmless; '' when all are."""
    from cockpit.access.git_overrides import REPOSITORY_SCOPES, parse_settings
    from cockpit.core.project.safe_git import ask_git  # here: most calls of a hook ask no git

    listed = ask_git(Path(root), "config", "--null", "--list", "--show-scope", "--show-origin")
    if listed is None or len(listed) > _MOST_SETTINGS:
        return "the repository's configuration cannot be read"
    for setting in parse_settings(listed):
        if setting.scope in REPOSITORY_SCOPES:
            name = f"{setting.name.partition('.')[0]}.{setting.name.rpartition('.')[2]}"
            if not (_SAFE.fullmatch(name) or _SAFE.fullmatch(f"{name}={setting.value.lower()}")):
                return f"the repository sets {name}, which may change what git runs"
    return ""


def _has_credentials(git_folder: str) -> bool:
    text = _read(f"{git_folder}/config", _MOST_SETTINGS).decode("utf-8", "replace")
    from cockpit.core.secrets import (
        mask,  # an agent waits for a hook, which needs it for few commands
    )

    return mask(text) != text or "extraheader" in text.lower()
