"""Settings that switch off the programs which a repository's own configuration makes git run.

Git's configuration names programs: filters, drivers of diffs and merges, monitors, helpers. Those of the
user and of the system are the user's choice. Those of a repository came with the repository, and looking at
a repository must not run them. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY_SCOPES = frozenset({"local", "worktree"})
"""Scopes of git's settings that belong to a repository."""

_Signature = tuple[tuple[str, int, int, int] | None, ...]
_TEXT_MERGE = "git merge-file --quiet %A %O %B"
"""Merges a file as git does where no driver is named."""
_SAFE_VALUES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"diff\.(.*\.command|external)", ""),
        (r"diff\..*\.textconv", "cat"),
        (r"merge\..*\.driver", _TEXT_MERGE),
        (r"core\.sshcommand", "ssh"),
        (r"core\.(gitproxy|askpass|alternaterefscommand)", ""),
        (r"gpg\.(.*\.)?program", "false"),
        (r"remote\..*\.uploadpack", "git-upload-pack"),
        (r"remote\..*\.receivepack", "git-receive-pack"),
        (r"remote\..*\.vcs", "refused"),
        (r"trailer\..*\.(command|cmd)", "true"),
        (r"submodule\..*\.ignore", "dirty"),
    )
)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.DOTALL)
"""A list: an empty value drops the entries before it."""
_BRINGS_FILES = re.compile(
    r"include\.path|includeif\..*\.path|extensions\.worktreeconfig", re.DOTALL
)
"""Settings that bring in files which may not be there yet."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One entry of ``git config --list --show-scope --show-origin``."""

    scope: str
    origin: str
    """Where it stands, as ``file:.git/config``."""
    name: str
    """As ``filter.NAME.clean``, section and key in small letters."""
    value: str


def parse_settings(listing: bytes) -> list[Setting]:
    """Parse the output of ``git config --null --list --show-scope --show-origin``."""
    fields = listing.decode("utf-8", "surrogateescape").split("\0")
    settings = []
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        name, _, value = entry.partition("\n")
        settings.append(Setting(scope, origin, name, value))
    return settings


def safe_settings(settings: Sequence[Setting]) -> list[tuple[str, str]]:
    """Return the settings, as (name, value), that undo the repository's programs among ``settings``.

    Where the user or the system has the same setting, its value is restored.
    """
    undone: dict[str, list[str]] = {}
    for setting in settings:
        if setting.scope not in REPOSITORY_SCOPES or setting.name in undone:
            continue
        own = [
            other.value
            for other in settings
            if other.name == setting.name and other.scope not in REPOSITORY_SCOPES
        ]
        if _HELPER.fullmatch(setting.name):
            undone[setting.name] = ["", *own]
            continue
        for pattern, value in _SAFE_VALUES:
            if pattern.fullmatch(setting.name):
                undone[setting.name] = own[-1:] or [value]
    return [(name, value) for name, values in undone.items() for value in values]


class RepositoryOverrides:
    """The overrides for each folder, listed again only when a file of settings changed."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, tuple[tuple[Path, ...], _Signature, list[tuple[str, str]]]] = {}

    async def load(
        self, cwd: Path, list_settings: Callable[[], Awaitable[bytes]]
    ) -> list[tuple[str, str]]:
        """Return the overrides for git in ``cwd``; ``list_settings`` asks git for its settings."""
        remembered = self._by_folder.get(cwd)
        if remembered is not None:
            files, signature, overrides = remembered
            if _signature(files) == signature:
                return overrides
        settings = parse_settings(await list_settings())
        overrides = safe_settings(settings)
        files = _files_of(cwd, settings)
        # A file that cannot be looked at again would hide its changes: ask git each time.
        grows = any(
            setting.scope in REPOSITORY_SCOPES and _BRINGS_FILES.fullmatch(setting.name)
            for setting in settings
        )
        if files and not grows and None not in _signature(files):
            self._by_folder[cwd] = (files, _signature(files), overrides)
        return overrides


def _files_of(cwd: Path, settings: Iterable[Setting]) -> tuple[Path, ...]:
    """Return the files of the repository's settings."""
    files = {
        cwd / setting.origin.removeprefix("file:")
        for setting in settings
        if setting.scope in REPOSITORY_SCOPES and setting.origin.startswith("file:")
    }
    return tuple(sorted(files))


def _signature(files: tuple[Path, ...]) -> _Signature:
    marks: list[tuple[str, int, int, int] | None] = []
    for file in files:
        try:
            info = file.stat()
        except OSError:
            marks.append(None)
            continue
        marks.append((str(file), info.st_mtime_ns, info.st_size, info.st_ino))
    return tuple(marks)
