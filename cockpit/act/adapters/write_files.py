"""Write and edit files: whole, durable, and never over another program's change.

The new content goes to a temporary file in the same directory, is synced, takes the old file's mode and
then its name; the directory is synced last. A crash leaves the old file or the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.adapters.adapter import Failure, Found, Outcome, failed, succeeded
from cockpit.act.text_edits import (
    ActionRefused,
    bytes_digest,
    digest_now,
    find_offsets,
    read_now,
    replace_text,
)
from cockpit.act.workspace import Workspace
from cockpit.core.errors import find_machine_fault
from cockpit.core.project_paths import OWN_FOLDER, ignore_generated_files
from cockpit.core.read_record import convert
from cockpit.core.text import pluralize

TURN_S = 2.0
"""Seconds that a write waits for another cockpit that gives a file in the same directory its new name."""
_TURN_POLL_S = 0.002


class _Payload(Struct, frozen=True):
    path: str
    before_sha256: str | None
    after_sha256: str
    content: str | None = None
    old: str | None = None
    new: str | None = None
    replace_all: bool = False


class FileAdapter:
    """Performs ``write_file``, ``edit_file`` and ``create_skill``, which is the writing of a file."""

    ends_when_cancelled = False

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Write the file, unless it is no longer what the user saw (conflict)."""
        request = convert(payload, _Payload)
        return await _to_the_end(lambda: _perform(request, key, ground.confined))

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Compare the content with that of before and after; unknown if it is neither."""
        request = convert(payload, _Payload)
        now = await asyncio.to_thread(digest_now, ground.confined, request.path)
        if now == request.after_sha256:
            await asyncio.to_thread(_discard_leftover, ground.confined, request.path, key)
            return "done"
        return "not_done" if now == request.before_sha256 else "unknown"


async def _to_the_end(step: Callable[[], Outcome]) -> Outcome:
    """Run ``step`` in a thread and wait for its end even when cancelled: no write goes on unattended."""
    work = asyncio.ensure_future(asyncio.to_thread(step))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


def _perform(request: _Payload, key: str, confined: Confined) -> Outcome:
    path = request.path
    try:
        now = read_now(confined, path)
    except ActionRefused as error:
        return failed("conflict", f"{path} changed since it was shown: {error}")
    current = now.sha256 if now else None
    if now is not None and current == request.after_sha256:
        return _written(request, len(now.text.encode()))
    if current != request.before_sha256:
        return failed(
            "conflict",
            f"{path} changed on disk since it was shown; nothing was written. Look at it again.",
            path=path,
            expected=request.before_sha256,
            found=current,
        )
    after = _after(request, now.text if now else None)
    if after is None or bytes_digest(after) != request.after_sha256:
        return failed("conflict", f"{path}: the edit no longer gives what was shown.", path=path)
    try:
        written = put_file(confined, path, after, key, request.before_sha256)
        folder = confined.root / OWN_FOLDER
        if path.startswith(f"{OWN_FOLDER}/") and not folder.is_symlink():
            # In a linked worktree this is the first that is written there: git must not see it.
            ignore_generated_files(folder)
    except OSError as error:
        if digest_now(confined, path) != request.after_sha256:
            words = f"{path} cannot be written: {error.strerror or error}."
            kind: Failure = "machine" if find_machine_fault(error) else "permanent"
            return failed(kind, words, path=path)
        # It has its new content: what failed came after that.
        with contextlib.suppress(OSError):
            _discard_leftover(confined, path, key)
        return _written(request, len(after))
    if not written:
        return failed(
            "conflict",
            f"{path} changed while it was written; it was left as it is. Look at it again.",
            path=path,
            expected=request.before_sha256,
            found=digest_now(confined, path),
        )
    return _written(request, len(after))


def _written(request: _Payload, size: int) -> Outcome:
    """Return the outcome of a written file, whether it was new or not: a repeated run gives the same text."""
    path, digest = request.path, request.after_sha256
    return succeeded(
        f"{path} is written, {pluralize(size, 'byte')}.", path=path, sha256=digest, bytes=size
    )


def _after(request: _Payload, text: str | None) -> bytes | None:
    if request.content is not None:
        return request.content.encode()
    if (
        text is None
        or not request.old
        or request.new is None
        or not find_offsets(text, request.old)
    ):
        return None
    return replace_text(text, request.old, request.new, replace_all=request.replace_all).encode()


def put_file(confined: Confined, path: str, data: bytes, key: str, before: str | None) -> bool:
    """Give ``path`` the content ``data``; False when its digest is no longer ``before``.

    Where somebody else gave it the same content meanwhile, it has what it was to have: True.
    """
    with confined.parent(path, create=True) as (directory, name):
        temporary = _temporary_name(key)
        # A leftover of a crash under the same key; O_EXCL below refuses anything newer.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o666, dir_fd=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                mode = _mode(name, directory)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            if before is None and _linked(temporary, name, directory):
                return True
            with _turn(directory):
                now = _digest_at(name, directory)
                if now != before:
                    return now == bytes_digest(data)
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            os.fsync(directory)
    return True


@contextlib.contextmanager
def _turn(directory: int) -> Iterator[None]:
    """Let no other cockpit put a file in this directory between the last look at one and its new name.

    A program that keeps the lock, or a file system without it, holds no write up for longer than
    :data:`TURN_S`: the look itself is then all that protects the other's change.
    """
    until = time.monotonic() + TURN_S
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                break
            time.sleep(_TURN_POLL_S)
        except OSError:
            break
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_UN)


def _temporary_name(key: str) -> str:
    return f".{bytes_digest(key.encode())[:16]}.cockpit"


def _discard_leftover(confined: Confined, path: str, key: str) -> None:
    """Remove the temporary file of a write that was cut off after the file had its new name."""
    with confined.parent(path) as (directory, _), contextlib.suppress(FileNotFoundError):
        os.unlink(_temporary_name(key), dir_fd=directory)


def _linked(temporary: str, name: str, directory: int) -> bool:
    """Name a new file by a hard link, which never replaces a file made meanwhile.

    Returns False where the file system has no hard links, or the name is taken.
    """
    try:
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def _mode(name: str, directory: int) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _digest_at(name: str, directory: int) -> str | None:
    try:
        # Without waiting for the other end of a pipe that was put there.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=directory)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return bytes_digest(file.read())
