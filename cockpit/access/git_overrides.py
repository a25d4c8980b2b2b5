"""Settings that switch off the programs which a repository's own configuration makes git run.

Git's configuration names programs: filters, drivers of diffs and merges, monitors, helpers. Those of the
user and of the system are the user's choice. Those of a repository came with the repository, and looking at
a repository must not run them. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import GitFolders

REPOSITORY_SCOPES = frozenset({"local", "worktree"})
"""Scopes of git's settings that belong to a repository."""

_Signature = tuple[int, int, int, int, int]
_MOST_REPOSITORIES = 64
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
        (r"submodule\..*\.ignore", "all"),
    )
)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.DOTALL)
"""A list: an empty value drops the entries before it."""
_BRINGS_FILES = re.compile(
    r"include\.path|includeif\..*\.path|extensions\.worktreeconfig", re.DOTALL
)
"""Settings that bring in files which may not be there yet."""


class Setting(Struct, frozen=True):
    """One entry of ``git config --list --show-scope --show-origin``."""

    scope: str
    origin: str
    """Where it stands, as ``file:.git/config``."""
    name: str
    """As ``filter.NAME.clean``, section and key in small letters."""
    value: str


class ListedSettings(Struct, frozen=True):
    """Every setting that git uses in a folder."""

    settings: tuple[Setting, ...]
    overrides: tuple[tuple[str, str], ...]
    """The settings, as (name, value), that switch off the repository's own programs."""


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


def parse_listing(listing: bytes) -> ListedSettings:
    """Return the settings of such an output, with their overrides."""
    settings = parse_settings(listing)
    return ListedSettings(tuple(settings), tuple(safe_settings(settings)))


class RepositorySettings:
    """The settings of each repository, listed again only when a file of them changed.

    Which repository a folder belongs to is read again
    each time: a program that ran in the folder can have aimed it at another one.
    """

    def __init__(self) -> None:
        self._remembered: dict[tuple[_Signature | None, str], ListedSettings] = {}

    async def load(
        self,
        cwd: Path,
        folders: GitFolders | None,
        list_settings: Callable[[], Awaitable[bytes]],
    ) -> ListedSettings:
        """Return the settings of git in ``cwd``; ``list_settings`` asks git for them.

        ``folders`` are those of its repository as they are now; None where only git can find it.
        """
        if folders is None:
            return parse_listing(await list_settings())
        config = f"{folders.common}/config"
        key = (_sign(config), folders.own)
        if (remembered := self._remembered.get(key)) is not None:
            return remembered
        listed = parse_listing(await list_settings())
        grows = any(
            setting.scope in REPOSITORY_SCOPES and _BRINGS_FILES.fullmatch(setting.name)
            for setting in listed.settings
        )
        # Listed while it did not change, and the only file that git read of this repository.
        read = {
            _sign(os.path.join(cwd, setting.origin.removeprefix("file:")))  # noqa: PTH118
            for setting in listed.settings
            if setting.scope in REPOSITORY_SCOPES and setting.origin.startswith("file:")
        }
        if key[0] is not None and read == {key[0]} == {_sign(config)} and not grows:
            if len(self._remembered) >= _MOST_REPOSITORIES:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[key] = listed
        return listed


def _sign(file: str) -> _Signature | None:
    try:
        info = os.stat(file)  # noqa: PTH116 - for each call of git
    except OSError:
        return None
    # The time of the last change of any kind is the kernel's: a program cannot set it back.
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
