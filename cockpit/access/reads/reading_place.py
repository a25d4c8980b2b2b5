"""Where a command would run: its programs, files and folders as they are now.

Nothing is started here. A program must lie outside the project; a file must lie inside it, be no device
and hold no secrets. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from glob import iglob
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.reads.program_table import BUILTINS
from cockpit.access.secret_files import is_sensitive
from cockpit.core.state_folder import state_root

MAX_ENTRIES = 20_000
"""Entries of folders that are looked at for one command; a larger tree is not known to be free of secrets."""

MAX_MATCHES = 500
"""Files that a pattern may match."""

_CONFIG_BYTES = 100_000
_INPUTS = frozenset(("-", "/dev/null", "/dev/stdin"))
_SHELLS = frozenset(("", "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh"))
_LOADS = (
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "ZDOTDIR", "CDPATH"),
    *("SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "POSIXLY_CORRECT", "_POSIX2_VERSION"),
)
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_BRACKETS = re.compile(r"\[.*\]")
_HIDING = re.compile(r"\.\.?[*?\[]")


class ReadingPlace(Struct, frozen=True):
    """The project's ``root`` (its worktree, real path), the folder ``cwd`` that a command runs in, and the
    environment ``env`` that it gets."""

    root: str
    cwd: str
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def enter(self, folder: str) -> ReadingPlace | None:
        """Return the place after ``cd folder``; None unless that certainly leads into the project."""
        # A shell leaves a link by its own name, the system by where it leads: no way up.
        if not folder or folder.startswith(("-", "+")) or ".." in folder.split("/"):
            return None
        path = os.path.realpath(os.path.join(self.cwd, folder))
        return replace(self, cwd=path) if os.path.isdir(path) and self.holds(path) else None

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
            if word in BUILTINS:
                return ""
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
        if word in _INPUTS:
            return ""
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

    def why_not_folder(
        self,
        word: str,
        *,
        hidden: bool = True,
        follows: bool = False,
        names: Sequence[str] = (),
    ) -> str:
        """Say why reading everything below ``word`` is more than reading the project; '' when it is not.

        Without ``hidden`` the files that ripgrep leaves out do not count; with ``follows`` links are read;
        with ``names`` (patterns) only files with such names are.
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
        shown = [] if hidden else self._list_shown(path)
        while folders:
            folder = folders.pop()
            shown += [] if hidden else _read_shown(folder)
            try:
                entries = list(islice(os.scandir(folder), left + 1))
            except OSError:
                continue
            left -= len(entries)
            if left < 0:
                return f"{word} has too many files to look for secrets in"
            for entry in entries:
                is_shown = hidden or any(fnmatchcase(entry.name, glob) for glob in shown)
                if entry.name.startswith(".") and not is_shown:
                    continue
                if follows and entry.is_symlink():
                    trouble = self.why_not_file(entry.path)
                    if trouble or entry.is_dir():
                        return trouble or f"{entry.name} below {word} leads to another folder"
                if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                    if self._has_credentials(entry.path):
                        return f"{word} has a .git folder with credentials"
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif names and not any(fnmatchcase(entry.name, name) for name in names):
                    continue
                elif is_sensitive(os.path.relpath(entry.path, self.root)):
                    return f"{os.path.relpath(entry.path, self.root)} below {word} may hold secrets"
        return ""

    def expand(self, pattern: str) -> Sequence[str] | None:
        """List the files that a pattern could match in some shell, itself included; None for too many."""
        parts = pattern.split("/")
        if any(part[:1] == "." and part.strip(".") and _HIDING.match(part) for part in parts):
            return None  # `.*` is the folder above as well, to some shells
        # Brackets differ between shells, and `**` goes deep only in some: more is matched here.
        wider = [_BRACKETS.sub("*", part) for part in parts]
        if any("***" in part for part in parts):
            return None
        whole = os.path.join(self.cwd, *wider)
        matches = list(islice(iglob(whole, recursive=True), MAX_MATCHES + 1))
        return None if len(matches) > MAX_MATCHES else [pattern, *matches]

    def _list_shown(self, path: str) -> list[str]:
        """List the names that the folders above ``path`` take back from what is ignored."""
        shown = _read_shown(os.path.join(self.root, ".git", "info"))
        while path != self.root and self.holds(path):
            path = os.path.dirname(path)
            shown += _read_shown(path)
        return shown

    @staticmethod
    def _has_credentials(git_folder: str) -> bool:
        try:
            with open(
                os.path.join(git_folder, "config"), encoding="utf-8", errors="replace"
            ) as file:
                text = file.read(_CONFIG_BYTES)
        except OSError:
            return False
        from cockpit.core.secrets import mask  # as in cockpit.access.reads.git_reads

        return mask(text) != text or "extraheader" in text.lower()


def _read_shown(folder: str) -> list[str]:
    """List the names that a folder's ignore files take back (``!.env``): ripgrep reads those hidden ones."""
    names = []
    for name in (*_IGNORE_FILES, "exclude"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines = file.read(_CONFIG_BYTES).splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith("!"):
                last = line[1:].strip().rstrip("/").rpartition("/")[2].replace("\\", "")
                names.append(_BRACKETS.sub("*", last))
    return names
