"""A session without the screen: driven to its end, told as it goes.

Three projections of the same journal rows: a story, the rows themselves, or one document at the end.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cockpit.backlog.service import set_status
from cockpit.commands.exit_codes import Exit, exit_code_of_session
from cockpit.commands.open_project import (
    WrongUse,
    choose_session,
    ensure_root_token,
    find_project,
    load_project_settings,
)
from cockpit.commands.report_error import report_error
from cockpit.commands.terminal import (
    SafeStream,
    is_terminal,
    say,
    show_json,
    show_json_line,
)
from cockpit.config.load_settings import Settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.session_loop import SessionPruned
from cockpit.loop.views.session_report import session_document
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import sessions


@dataclass(frozen=True, slots=True)
class Ending:
    """How the drive ended: the session, and the error that ended it, if one did."""

    session_id: str
    interrupted: bool
    error: Exception | None


class Teller:
    """Tells rows of one session in the chosen format, each once and in order."""

    def __init__(self, output: str, after: int) -> None:
        self.seq = after
        self._lines = output == "stream-json"
        self._story = Storyteller()
        # The story is the answer of `text`; beside a document it is progress, for a person only.
        stream = sys.stdout if output == "text" else sys.stderr
        quiet = self._lines or (output == "json" and not is_terminal(sys.stderr))
        self._telling = None if quiet else SafeStream(stream)

    def take(self, rows: Sequence[journal.Row]) -> None:
        """Tell these rows. Raises :class:`ReaderGone`."""
        for row in rows:
            if row.seq <= self.seq:
                continue
            self.seq = row.seq
            if self._lines:
                show_json_line(row.line())
            elif self._telling is not None and (text := self._story.tell(row)):
                self._telling.write(text)


def drive(
    words: str,
    session: str | None,
    *,
    task_id: str | None = None,
    output: str,
    flags: Mapping[str, object],
) -> Exit:
    """Begin a session (or go on with one) and run it to its end; returns the exit code.

    With ``task_id`` the new session begins that task of the backlog.

    The session's last word in ``output``'s format is on stdout by then. Raises
    :class:`~cockpit.core.errors.CockpitError` where none could begin.
    """
    place = find_project()
    settings = load_project_settings(place, flags)
    ensure_root_token(place, quiet=not is_terminal(sys.stderr))
    return asyncio.run(_drive(place, settings, words, session, task_id, output, flags))


async def _drive(
    place: ProjectPaths,
    settings: Settings,
    words: str,
    session: str | None,
    task_id: str | None,
    output: str,
    flags: Mapping[str, object],
) -> Exit:
    async with open_runtime(place, settings.runtime) as runtime:
        before = await runtime.store.read(journal.last_seq)
        session_id = await _begin(runtime, settings, words, session, task_id, flags)
        ending = await _run(runtime, session_id, Teller(output, before))
        if output == "json":
            document = await runtime.store.read(lambda c: session_document(c, session_id))
            show_json(document)
        ended = await runtime.store.read(lambda c: sessions.load(c, session_id))
        code = await runtime.store.read(lambda c: exit_code_of_session(c, session_id))
    if ending.interrupted and ended.status == "stopped":
        code = Exit.INTERRUPTED
    elif ending.error is not None:
        told = report_error(ending.error)
        code = Exit.FAILED if ended.status == "failed" else told
    # A pruned session cannot go on as it is: its error has said what would mend that.
    if code not in (Exit.DONE, Exit.REFUSED) and not isinstance(ending.error, SessionPruned):
        say(
            f"Go on with `cockpit run --continue {session_id}`, or on the screen: cockpit -r {session_id}"
        )
    return code


async def _begin(
    runtime: Runtime,
    settings: Settings,
    words: str,
    session: str | None,
    task_id: str | None,
    flags: Mapping[str, object],
) -> str:
    if session is None:
        begun = await runtime.start(words, interactive=False, task_id=task_id)
        if task_id is not None:
            await runtime.store.write(
                lambda tx: set_status(tx, task_id, "in_progress", by="person", session_id=begun)
            )
        return begun
    session_id = await runtime.store.read(lambda connection: _own(connection, session))
    given = {name for name, value in flags.items() if value is not None}
    limits = any(name.startswith("[limits]") or name.endswith("deadline_s") for name in given)
    await runtime.change(
        session_id,
        policy=settings.runtime.policy if "[approval] policy" in given else None,
        model=settings.runtime.model.model if "[model] name" in given else None,
        limits=settings.runtime.limits if limits else None,
    )
    if words:
        await runtime.say(session_id, words)
    return session_id


def _own(connection: sqlite3.Connection, named: str) -> str:
    """The session to go on with. That of a role is not: here it would write into the person's
    checkout, and not into its task's tree. Raises :class:`WrongUse`."""
    found = sessions.load(connection, choose_session(connection, named))
    if found.role and found.task_id:
        raise WrongUse(
            f"{found.session_id} is the {found.role} of {found.task_id}, and goes on with it in its own"
            f" tree: `cockpit work --task {found.task_id}` (`cockpit tasks unblock {found.task_id}` first"
            " where it is blocked)."
        )
    return found.session_id


async def _run(runtime: Runtime, session_id: str, teller: Teller) -> Ending:
    """Run the session while its rows are told; a signal or a closed pipe stops it in its wave."""
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(runtime.run(session_id, interactive=False), name=f"run {session_id}")
    telling = asyncio.create_task(_tell(runtime, session_id, teller))
    signalled: list[int] = []

    def stop() -> None:
        signalled.append(signal.SIGINT)
        work.cancel()

    loop.add_signal_handler(signal.SIGINT, stop)  # the command line turns the others into it
    try:
        await asyncio.wait({work, telling}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            work.cancel()
        (error,) = await asyncio.gather(work, return_exceptions=True)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        telling.cancel()
        (unread,) = await asyncio.gather(telling, return_exceptions=True)
    if isinstance(unread, Exception):
        raise unread
    await _tell_rest(runtime, session_id, teller)
    failed = error if isinstance(error, Exception) else None
    return Ending(session_id, bool(signalled), failed)


async def _tell(runtime: Runtime, session_id: str, teller: Teller) -> None:
    async for rows in follow(runtime.store, after=teller.seq, session_id=session_id):
        teller.take(rows)


async def _tell_rest(runtime: Runtime, session_id: str, teller: Teller) -> None:
    while True:
        rows = await runtime.store.read(
            lambda connection: journal.rows(connection, after=teller.seq, session_id=session_id)
        )
        if not rows:
            return
        teller.take(rows)
