"""Marks of files and folders: what the operating system says of them, without opening a file.

Two equal marks mean the same content. An empty mark means that a change could go unseen. A hook call loads
this, so it imports nothing that takes time. See ``docs/reference/guards.md``, served again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time

MOST_FILES = 20_000
"""Entries of a project that are looked at; a larger one has no mark."""
RACY_NS = 50_000_000
"""A file that changed less than this before the look may change again within one tick of its clock."""
VERSION_FOLDERS = frozenset((".git", ".hg", ".svn"))
OWN_STATE = ".cockpit/state"


def mark_file(path: str) -> str:
    """Return the mark of a file that is not a link; ``-`` if there is none, empty if unknown."""
    try:
        seen = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "-"
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(seen.st_mode) or _is_racy(seen, time.time_ns()):
        return ""
    return _describe(seen)


def mark_folder(
    top: str, *, leave_out: frozenset[str] = frozenset(), most: int = MOST_FILES
) -> str:
    """Return the digest of what is below ``top``: names, sizes, times; '' where that is not known."""
    digest = hashlib.sha256()
    left = most
    now = time.time_ns()
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(f"{top}/{folder}") as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            return ""
        left -= len(entries)
        if left < 0:
            return ""
        for entry in entries:
            path = f"{folder}{entry.name}"
            if entry.name in leave_out or path == OWN_STATE:
                continue
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                return ""
            if stat.S_ISDIR(seen.st_mode):
                folders.append(f"{path}/")
                digest.update(f"{path!r}/\n".encode())
                continue
            if stat.S_ISREG(seen.st_mode) and _is_racy(seen, now):
                return ""
            digest.update(f"{path!r}:{_describe(seen)}\n".encode())
    return digest.hexdigest()


def _describe(seen: os.stat_result) -> str:
    return (
        f"{seen.st_dev}:{seen.st_ino}:{seen.st_mode}:{seen.st_size}:{seen.st_mtime_ns}"
        f":{seen.st_ctime_ns}"
    )


def _is_racy(seen: os.stat_result, now: int) -> bool:
    """Whether a change right now could leave the same times; also for times in the future."""
    return max(seen.st_mtime_ns, seen.st_ctime_ns) > now - RACY_NS
