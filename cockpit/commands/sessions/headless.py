"""Run a session without the screen and print it: as a story, as journal rows or as one document.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.access.user_presence import explain_absence
from cockpit.backlog.service import set_status
from cockpit.collections.choose_session import choose_session
from cockpit.commands.exit_codes import Exit, exit_code_of_session
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.report_error import report_error
from cockpit.commands.sessions.offline_notice import find_offline_notice
from cockpit.commands.terminal import (
    SafeStream,
    is_terminal,
    output_width,
    say,
    show_json,
    show_json_line,
)
from cockpit.commands.unconfined import settle_unconfined
from cockpit.config.load_settings import Settings
from cockpit.core.errors import NotFound
from cockpit.core.processes import stop_on_interrupt
from cockpit.core.project.project_trust import list_untrusted
from cockpit.loop.runtime import Runtime
from cockpit.loop.session_loop import SessionPruned
from cockpit.loop.views.review_text import ReviewText, find_review, is_missing_on_github
from cockpit.loop.views.session_report import session_document
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import sessions


class Ending(Struct, frozen=True):
    """How a run ended. ``interrupted``: by a signal; ``error``: the exception that ended it, if any."""

    interrupted: bool
    error: Exception | None


class Order(Struct, frozen=True):
    """A session without the screen, as the command line asks for it."""

    text: str
    """The task, or the next message."""
    output: str
    flags: Mapping[str, object]
    session: str | None = None
    """The session to resume; None for a new one."""
    task_id: str | None = None
    """The task of the backlog that the new session starts."""
    prints_review: bool = False
    """Whether the text output is the session's review."""
    agent: str | None = None
    """The external agent that has the session."""
    where: str = ""
    """``checkout``, ``worktree``, or '' for the rule: the second agent in a project gets a worktree."""
    is_typed: bool = False
    """Whether the text was an argument, and so the user's where they are present."""


class RowPrinter:
    """Prints the rows of one session in the chosen format, each once and in order.

    ``after`` is the sequence number of the last row that is not printed; ``hints`` adds commands for the
    user to the story.
    """

    def __init__(
        self,
        output: str,
        after: int,
        *,
        prints_review: bool = False,
        agents: bool = False,
        hints: bool = True,
    ) -> None:
        self.seq = after
        self._lines = output == "stream-json"
        # For `text` the story is the answer, unless a review is; for `json` it is progress, which only a
        # terminal gets.
        stream = sys.stdout if output == "text" and not prints_review else sys.stderr
        quiet = self._lines or (output == "json" and not is_terminal(sys.stderr))
        self._output = None if quiet else SafeStream(stream)
        self._story = Storyteller(hints=hints, agents=agents, width=output_width(stream))

    def print_rows(self, rows: Sequence[journal.Row]) -> None:
        """Print these rows. Raises :class:`ReaderGone`."""
        for row in rows:
            if row.seq <= self.seq:
                continue
            self.seq = row.seq
            if self._lines:
                show_json_line(row.line())
            elif self._output is not None and (text := self._story.tell(row)):
                self._output.write(text)


async def drive(order: Order) -> Exit:
    """Start or resume a session and run it to its end; return the exit code.

    The output is complete when this returns. Raises :class:`~cockpit.core.errors.CockpitError` where no
    session could start.
    """
    place = find_project()
    settings = load_project_settings(place, order.flags)
    ensure_root_token(place, quiet=not is_terminal(sys.stderr))
    await settle_unconfined(settings, None)
    async with open_project_runtime(place, settings.runtime) as runtime:
        before = await runtime.store.read(journal.last_seq)
        if order.session is None:
            session_id = await _begin(runtime, order)
        else:
            session_id = await _resume(runtime, settings, order, order.session)
        ending = await run_session(
            runtime, session_id, before, order.output, prints_review=order.prints_review
        )
        if order.output == "json":
            document = await runtime.store.read(lambda c: session_document(c, session_id))
            untrusted = [file.name for file in list_untrusted(runtime.place.home)]
            show_json({**document, "untrusted": untrusted})
        elif order.output == "text":
            draft = await runtime.store.read(lambda c: find_review(c, session_id))
            unposted = await runtime.store.read(lambda c: is_missing_on_github(c, session_id))
            if order.prints_review:
                _print_review(draft)
            elif unposted and draft is not None:
                say("It is not posted. This is the draft:")
                SafeStream(sys.stdout).write(draft.text.rstrip("\n") + "\n")
        stored = await runtime.store.read(lambda c: sessions.load(c, session_id))
        code = await runtime.store.read(lambda c: exit_code_of_session(c, session_id))
    if ending.interrupted and stored.status == "stopped":
        code = Exit.INTERRUPTED
    elif ending.error is not None:
        error_code = report_error(ending.error)
        code = Exit.FAILED if stored.status == "failed" else error_code
    # A pruned session cannot be resumed as it is: its error has named the command that restores it.
    if code not in (Exit.DONE, Exit.REFUSED) and not isinstance(ending.error, SessionPruned):
        say_how_to_resume(session_id)
    return code


def say_how_to_resume(session_id: str) -> None:
    """Print the commands that resume a session."""
    say(
        f"Resume with `cockpit run --continue {session_id}`, or on the screen with"
        f" `cockpit -r {session_id}`."
    )


def _print_review(review: ReviewText | None) -> None:
    if review is None:
        say("There is no review: the session drafted none.")
        return
    say(
        {
            "written": f"The review is also in {review.path}.",
            "posted": "The review is posted to the pull request.",
            "proposed": "The review is a draft: it was not approved, so it is not written or posted.",
        }[review.state]
    )
    SafeStream(sys.stdout).write(review.text.rstrip("\n") + "\n")


async def _begin(runtime: Runtime, order: Order) -> str:
    """Start a session, of the built-in agent or an external one; return its id."""
    if order.agent is not None:
        session_id = await runtime.start_agent(
            order.agent, order.text, interactive=False, where=order.where, task_id=order.task_id
        )
    else:
        if notice := await find_offline_notice(runtime, order.text):
            say(notice)
        session_id = await runtime.start(
            order.text,
            interactive=False,
            task_id=order.task_id,
            is_typed=order.is_typed and not explain_absence(),
        )
    if (task_id := order.task_id) is not None:
        await runtime.store.write(
            lambda tx: set_status(tx, task_id, "in_progress", by="person", session_id=session_id)
        )
    return session_id


async def _resume(runtime: Runtime, settings: Settings, order: Order, named: str) -> str:
    """Send the text to a session: the last one of an external agent, or another; return its id."""
    if order.agent is not None and named == "last":
        rows = await runtime.store.read(sessions.select_of_agents)
        ids = [row.session_id for row in rows if row.agent == order.agent]
        if not ids:
            raise NotFound(
                f"{order.agent} has no session yet. Start one with"
                f" `cockpit run --agent {order.agent} TASK`."
            )
        session_id = ids[0]
    else:
        session_id = await runtime.store.read(lambda c: _choose_resumable(c, named))
    if order.agent is None:
        changed = {name for name, value in order.flags.items() if value is not None}
        limits = any(name.startswith("[limits]") or name.endswith("deadline_s") for name in changed)
        await runtime.change(
            session_id,
            policy=settings.runtime.policy if "[approval] policy" in changed else None,
            model=settings.runtime.model.model if "[model] name" in changed else None,
            limits=settings.runtime.limits if limits else None,
        )
    if order.text:
        await runtime.say(session_id, order.text)
    return session_id


def _choose_resumable(connection: sqlite3.Connection, named: str) -> str:
    """Return the id of the session to resume. Raises :class:`WrongUse` for the session of a role,
    which would write into the user's checkout instead of its task's worktree."""
    chosen = sessions.load(connection, choose_session(connection, named))
    if chosen.role and chosen.task_id:
        raise WrongUse(
            f"{chosen.session_id} is the {chosen.role} of {chosen.task_id} and works in the worktree of that"
            f" task. Run `cockpit work --task {chosen.task_id}`, after"
            f" `cockpit tasks move {chosen.task_id} unblocked` if the task is blocked."
        )
    return chosen.session_id


async def run_session(
    runtime: Runtime, session_id: str, after: int, output: str, *, prints_review: bool
) -> Ending:
    """Run a new session and print its rows behind ``after`` in the format ``output``."""
    try:
        started = await runtime.store.read(lambda c: sessions.load(c, session_id))
        printer = RowPrinter(output, after, prints_review=prints_review, agents=bool(started.agent))
    except BaseException:  # a signal: nothing runs the session yet
        await asyncio.shield(runtime.store.write(lambda tx: sessions.stop_unowned(tx, session_id)))
        raise
    return await run_and_print(runtime, session_id, printer)


async def run_and_print(runtime: Runtime, session_id: str, printer: RowPrinter) -> Ending:
    """Run the session and print its rows; a signal or a closed pipe stops it within its wave."""
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(runtime.run(session_id, interactive=False), name=f"run {session_id}")
    printing = asyncio.create_task(_print(runtime, session_id, printer))
    signalled: list[int] = []

    def stop() -> None:
        signalled.append(signal.SIGINT)
        work.cancel()

    stop_on_interrupt(loop, stop)  # the command line turns SIGTERM and SIGHUP into SIGINT
    try:
        await asyncio.wait({work, printing}, return_when=asyncio.FIRST_COMPLETED)
        if printing.done():
            work.cancel()
        (error,) = await asyncio.gather(work, return_exceptions=True)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        printing.cancel()
        (failure,) = await asyncio.gather(printing, return_exceptions=True)
    if isinstance(failure, Exception):
        raise failure
    await _print_rest(runtime, session_id, printer)
    failed = error if isinstance(error, Exception) else None
    return Ending(bool(signalled), failed)


async def _print(runtime: Runtime, session_id: str, printer: RowPrinter) -> None:
    async for rows in follow(runtime.store, after=printer.seq, session_id=session_id):
        printer.print_rows(rows)


async def _print_rest(runtime: Runtime, session_id: str, printer: RowPrinter) -> None:
    while True:
        rows = await runtime.store.read(
            lambda connection: journal.rows(connection, after=printer.seq, session_id=session_id)
        )
        if not rows:
            return
        printer.print_rows(rows)
