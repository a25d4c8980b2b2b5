"""Going back to a wave and forward again: files first, each only where it is what was shown.

The contents that going back replaces are kept in the project's state, so that they can be brought back.
See ``docs/reference/loop.md``, rewind.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.act.adapters.write_files import put_file
from cockpit.act.text_edits import bytes_digest, digest_now
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.read_record import decode_json
from cockpit.loop.intake.fork_session import fork_session
from cockpit.loop.rewind.plan_rewind import FileBack, RewindPlan
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionRewound

_FOLDER = "rewinds"


class KeptFile(msgspec.Struct, frozen=True):
    """A file that going back changed. Contents are base64; None where there was no file."""

    path: str
    left: str | None
    """The content that was left, and can be brought back."""
    became: str | None
    """The content that it got."""


class Kept(msgspec.Struct, frozen=True):
    """What is kept of one going back."""

    source: str
    wave: int
    root: str
    files: tuple[KeptFile, ...]


class Rewound(Struct, frozen=True):
    """A session went back, or forward again."""

    session_id: str
    """The session to follow from now on."""
    files: tuple[str, ...]
    """The files that were changed."""
    stays: tuple[str, ...]
    """What could not be changed, as sentences."""


async def rewind(store: Store, place: ProjectPaths, plan: RewindPlan) -> Rewound:
    """Go back as planned: the files get their earlier contents, and a new session continues from the wave.

    The session stays as it is. Every content that is replaced is kept on disk before anything is written, and
    a file that changed since the plan was shown is left alone. Raises what ``fork_session`` raises.
    """
    confined = Confined(plan.root)
    pending = _file_of(place, f"{plan.session_id}.pending")
    await asyncio.to_thread(_keep, confined, plan, pending)
    changed, left = await asyncio.to_thread(_write_all, confined, plan.files, plan.session_id)
    stays = (*plan.stays, *left)

    def step(tx: Tx) -> str:
        fork = fork_session(tx, plan.session_id, plan.wave)
        session = fork.session
        event = SessionRewound(
            source=plan.session_id, wave=plan.wave, files=tuple(changed), stays=stays
        )
        tx.journal(event, actor="person", session_id=session.session_id, trace_id=session.trace_id)
        return session.session_id

    session_id = await store.write(step)
    if changed:
        pending.replace(_file_of(place, session_id))
    else:
        pending.unlink(missing_ok=True)
    return Rewound(session_id, tuple(changed), stays)


def list_rewound(place: ProjectPaths) -> frozenset[str]:
    """Return the sessions that began by going back with files that can be brought back."""
    return frozenset(path.stem for path in (place.state / _FOLDER).glob("*.json"))


async def bring_back(store: Store, place: ProjectPaths, session_id: str) -> Rewound:
    """Undo a going back: the files get the contents that it replaced; the session before is to be followed.

    A file that changed since stays as it is. Raises :class:`NotFound` where nothing is kept.
    """
    path = _file_of(place, session_id)
    try:
        kept = decode_json(path.read_bytes(), Kept)
    except (OSError, msgspec.MsgspecError) as error:
        raise NotFound(f"Nothing is kept to bring back for session {session_id}.") from error
    confined = Confined(Path(kept.root))
    files = [FileBack(each.path, _digest(each.became), _decode(each.left)) for each in kept.files]
    changed, stays = await asyncio.to_thread(_write_all, confined, files, session_id)
    event = SessionRewound(
        source=session_id, wave=0, files=tuple(changed), stays=tuple(stays), forward=True
    )
    await store.write(lambda tx: tx.journal(event, actor="person", session_id=kept.source))
    if not stays:
        path.unlink(missing_ok=True)
    return Rewound(kept.source, tuple(changed), tuple(stays))


def _file_of(place: ProjectPaths, name: str) -> Path:
    return place.state / _FOLDER / f"{name}.json"


def _keep(confined: Confined, plan: RewindPlan, path: Path) -> None:
    """Write the contents that will be replaced to a file that only the user can read, durably."""
    files = []
    for each in plan.files:
        left = None
        if each.now is not None:
            with confined.open_read(each.path) as file:
                left = file.read()
        files.append(KeptFile(each.path, _encode(left), _encode(each.content)))
    kept = Kept(plan.session_id, plan.wave, str(plan.root), tuple(files))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as output:
        output.write(msgspec.json.encode(kept))
        output.flush()
        os.fsync(output.fileno())


def _write_all(
    confined: Confined, files: tuple[FileBack, ...] | list[FileBack], key: str
) -> tuple[list[str], list[str]]:
    """Write files; return those that were changed, and why others were not, as sentences."""
    changed, stays = [], []
    for each in files:
        try:
            if each.content is None:
                is_done = _remove(confined, each)
            else:
                is_done = put_file(confined, each.path, each.content, f"{key} rewind", each.now)
        except (CockpitError, OSError) as error:
            stays.append(f"{each.path}: {error}")
            continue
        if is_done:
            changed.append(each.path)
        else:
            stays.append(f"{each.path}: it changed meanwhile, and stays as it is.")
    return changed, stays


def _remove(confined: Confined, each: FileBack) -> bool:
    if digest_now(confined, each.path) != each.now:
        return False
    with (
        contextlib.suppress(FileNotFoundError, PathRefused),
        confined.parent(each.path) as (at, name),
    ):
        os.unlink(name, dir_fd=at)
        os.fsync(at)
    return digest_now(confined, each.path) is None


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _digest(text: str | None) -> str | None:
    data = _decode(text)
    return None if data is None else bytes_digest(data)
