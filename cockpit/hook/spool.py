"""``hook-spool`` in the state folder: events that came while another process had locked the store.

One file per event, written under another name first, so that a reader sees it whole or not at all.
"""

from __future__ import annotations

import json
import os

from cockpit.store.hooks.pending_events import HookEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 5_000
"""Files; so many wait only where no cockpit has come to the store for days."""
_END = ".json"


def _folder(state: str) -> str:
    return os.path.join(state, "hook-spool")


def write_event(state: str, event: HookEvent) -> bool:
    """Write the event to a file; False when there are too many already. Raises ``OSError``."""
    folder = _folder(state)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.path.islink(folder) or len(os.listdir(folder)) >= MOST:
        return False
    body = {
        "key": event.key,
        "at": event.at,
        "agent": event.agent,
        "session": event.session,
        "event": event.event,
        "body": event.body,
        "urgent": event.urgent,
    }
    path = os.path.join(folder, event.key + _END)
    with open(os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(body, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.part", path)
    return True


def list_files(state: str) -> list[str]:
    """List the waiting files, the oldest first."""
    folder = _folder(state)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_END))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if not os.path.islink(folder)]


def read_events(paths: list[str]) -> Iterator[HookEvent]:
    """Yield the events in these files; files that are not events are skipped."""
    for path in paths:
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
                record = json.load(file)
            words = [record[name] for name in ("key", "at", "agent", "session", "event", "body")]
            # What cannot be stored would keep everything behind it from being stored.
            if all(isinstance(word, str) and word.encode() for word in words):
                yield HookEvent(*words, urgent=bool(record["urgent"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue


def delete_files(paths: list[str]) -> None:
    """Delete files whose events are in the store."""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # another process took it as well, and it is kept once
