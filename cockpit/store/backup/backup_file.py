"""The file of a backup: a compressed tar archive that begins with a list of what is in it.

Specified in ``docs/how-to/backup.md``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import IO

import msgspec

from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import PROJECT_FILE
from cockpit.core.read_record import decode_json
from cockpit.core.state_folder import DATABASE

LIST = "backup.json"
VERSION = 1
_CHUNK = 1_048_576
_LARGEST_LIST = 64_000_000
_PATH = re.compile(r"[^/\0]{1,255}(?:/[^/\0]{1,255}){0,20}")
LEFT_OUT = frozenset(("worktrees", "backups", "runs", "restore"))
"""Folders of a state that no backup has: git's own, copies, and what lasts as long as a process."""
_DERIVED = re.compile(r"\.|knowledge.*\.db|.*\.lock\Z|.*\.db-(?:wal|shm|journal)\Z|.*\.partial\Z")
"""Names of files that are made again from others, or are a part of the moment."""


class BackupRefused(CockpitError):
    """A backup cannot be written or restored; the message says why, and nothing was changed."""

    code = "backup_refused"


class Part(msgspec.Struct, frozen=True):
    """One file of a backup."""

    path: str
    """Below the state folder."""
    size: int
    """Bytes."""
    sha256: str


class Contents(msgspec.Struct, frozen=True):
    """The list at the beginning of a backup."""

    version: int
    cockpit: str
    """The version of cockpit that wrote it."""
    at: str
    """When."""
    identity: str
    """The project: its common git directory, or its folder."""
    home: str
    """Its main checkout."""
    state: str
    """Its state folder."""
    seq: int
    """The journal's last row."""
    digest: str
    """That row's digest."""
    parts: tuple[Part, ...]


def is_kept(path: Path) -> bool:
    """Whether a backup has the file ``path`` of a state folder, relative to it, beside the database."""
    if len(path.parts) > 1:
        return path.parts[0] not in LEFT_OUT
    return path.name not in (DATABASE, PROJECT_FILE, *LEFT_OUT) and not _DERIVED.match(path.name)


def digest_file(path: Path) -> tuple[int, str]:
    """Return the size and SHA-256 of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def pack(target: Path, folder: Path, contents: Contents) -> None:
    """Write the parts in ``folder`` and their list to the new file ``target``, and sync it."""
    (folder / LIST).write_bytes(msgspec.json.encode(contents))
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as raw:
        with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=3) as archive:
            for name in (LIST, *(part.path for part in contents.parts)):
                archive.add(folder / name, arcname=name, recursive=False, filter=_anonymous)
        raw.flush()
        os.fsync(raw.fileno())


def unpack(source: Path, folder: Path) -> Contents:
    """Write the parts of the backup ``source`` into ``folder``, each compared with the list.

    Nothing but plain files of the list is written, and only below ``folder``. Raises :class:`BackupRefused`
    for a file that is not a whole backup of a version that this cockpit reads.
    """
    try:
        with tarfile.open(source, mode="r|gz") as archive:
            members = iter(archive)
            first = next(members, None)
            listing = archive.extractfile(first) if first is not None else None
            if first is None or listing is None or first.name != LIST:
                raise BackupRefused(f"{source} is not a backup of cockpit.")
            contents = _read_list(source, listing.read(_LARGEST_LIST))
            waiting = {part.path: part for part in contents.parts}
            for member in members:
                part = waiting.pop(member.name, None)
                content = archive.extractfile(member) if member.isreg() else None
                if part is None or content is None or member.size != part.size:
                    raise BackupRefused(f"{source}: {member.name[:200]!r} is not in its list.")
                _write_part(folder / part.path, content)
                if digest_file(folder / part.path) != (part.size, part.sha256):
                    raise BackupRefused(f"{source}: {part.path[:200]!r} was changed.")
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BackupRefused(f"{source} is not a whole backup of cockpit: {error}.") from error
    if waiting:
        raise BackupRefused(f"{source} lacks {next(iter(waiting))[:200]!r}.")
    return contents


def _read_list(source: Path, raw: bytes) -> Contents:
    contents = decode_json(raw, Contents)
    if contents.version > VERSION:
        raise BackupRefused(
            f"{source} was written by cockpit {contents.cockpit}, in a form that this version cannot read."
            " Upgrade cockpit, then restore it."
        )
    for part in contents.parts:
        words = part.path.split("/")
        if not _PATH.fullmatch(part.path) or not {"", ".", ".."}.isdisjoint(words):
            raise BackupRefused(f"{source} names a file outside the state: {part.path[:200]!r}.")
        if part.path != DATABASE and not is_kept(Path(part.path)):
            raise BackupRefused(f"{source} names a file that no backup has: {part.path[:200]!r}.")
    return contents


def _write_part(target: Path, content: IO[bytes]) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(content, file, _CHUNK)
        file.flush()
        os.fsync(file.fileno())


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def sync_folder(folder: Path) -> None:
    """See that the names in ``folder`` are on the disk."""
    entry = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
