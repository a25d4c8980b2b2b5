"""Actions on the waves of a session: fork it after one, go back to one with its files, come forward again.

Specified in ``docs/reference/loop.md``, forks and rewind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.host import Host
from cockpit.core.errors import IllegalTransition
from cockpit.core.text import pluralize
from cockpit.store.sessions import messages, waves
from widgets.forms.pick_list import PickRow
from widgets.text.detail import DetailRow, sentence
from widgets.text.style_names import DIM, STRONG, WARN, line

if TYPE_CHECKING:
    from cockpit.loop.rewind.apply_rewind import Rewound
    from cockpit.loop.rewind.plan_rewind import RewindPlan

_TWICE_S = 1.0
"""Seconds within which a second Escape counts."""
_TEXT_MOST = 80


def fork_from_wave(host: Host, session_id: str) -> None:
    """Ask for a wave; a new session continues after it, and is followed."""

    async def fork(wave: int) -> None:
        from cockpit.loop.intake.fork_session import fork_session

        forked = await host.engine.store.write(lambda tx: fork_session(tx, session_id, wave))
        _follow(host, forked.session.session_id)
        host.show_notice(f"Forked after wave {wave}. {session_id} stays as it is.")

    host.request(lambda: _pick_wave(host, session_id, "Fork after", fork))


def rewind_session(host: Host, session_id: str = "") -> None:
    """Ask for a wave, show what going back to it does, and do that after a ``y``."""
    session_id = session_id or host.session_id
    host.request(
        lambda: _pick_wave(host, session_id, "Go back to", partial(_ask, host, session_id))
    )


async def _ask(host: Host, session_id: str, wave: int) -> None:
    from cockpit.app.dialogs.scroll_rows import ScrollRows
    from cockpit.loop.rewind.plan_rewind import plan_rewind

    if host.runs.is_running(session_id):
        raise IllegalTransition(f"Session {session_id} runs. Interrupt it first, then go back.")
    plan = await plan_rewind(host.engine.store, session_id, wave)

    def answer(is_wanted: bool | None) -> None:
        if is_wanted:
            host.request(lambda: _go_back(host, plan))

    host.open_screen(
        ScrollRows(f"Go back to wave {plan.wave}?", describe_plan(plan), "go back"), answer
    )


def describe_plan(plan: RewindPlan) -> list[DetailRow]:
    """Return the rows: what is written, what stays, and what is kept."""
    rows = []
    count = len(plan.files)
    what = (
        "No file changes." if not count else f"{pluralize(count, 'file')} get what they had then:"
    )
    rows.append(sentence((what.replace("1 file get what they", "1 file gets what it"), STRONG)))
    for each in plan.files:
        does = (
            "is removed: it did not exist" if each.content is None else "gets its earlier content"
        )
        rows.append(_entry(each.path, does))
    if plan.stays:
        rows += [sentence(), sentence(("This stays as it is:", WARN))]
        rows += [_entry(each) for each in plan.stays]
    kept = (
        "A new session continues after this wave. The present one stays in the list (F6); `u` on the new one"
        " there brings these files back as they are now."
    )
    rows += [sentence(), sentence((kept, DIM))]
    return rows


def _entry(text: str, does: str = "") -> DetailRow:
    return DetailRow(
        line(text, (f"  {does}" if does else "", DIM)), line(("  · ", DIM)), Content("    ")
    )


async def _go_back(host: Host, plan: RewindPlan) -> None:
    from cockpit.loop.rewind.apply_rewind import rewind

    done = await rewind(host.engine.store, host.engine.place, plan)
    _follow(host, done.session_id)
    _report(host, done, f"Back at wave {plan.wave}")


def come_forward(host: Host, session_id: str) -> None:
    """Bring back the files that going back replaced, and follow the session before."""

    async def come() -> None:
        from cockpit.loop.rewind.apply_rewind import bring_back

        done = await bring_back(host.engine.store, host.engine.place, session_id)
        _follow(host, done.session_id)
        _report(host, done, "Forward again")

    host.request(come)


def _report(host: Host, done: Rewound, where: str) -> None:
    notice = f"{where}: {pluralize(len(done.files), 'file')} changed."
    host.show_notice("\n".join([notice, *done.stays]))


def _follow(host: Host, session_id: str) -> None:
    host.trail.clear()
    host.attach(session_id)
    host.main.prompt.focus()


async def _pick_wave(
    host: Host, session_id: str, title: str, then: Callable[[int], Awaitable[None]]
) -> None:
    rows = await host.engine.store.read(partial(_list_waves, session_id=session_id))

    def pick(wave: str | None) -> None:
        if wave:
            host.request(lambda: then(int(wave)))

    empty = "Nothing to choose: no wave of the built-in agent has ended here."
    host.open_screen(PickOne(f"{title} a wave of {session_id}", rows, empty=empty), pick)


def _list_waves(connection: sqlite3.Connection, session_id: str) -> list[PickRow]:
    """Return the waves, the newest first, each with the first words that were written in it."""
    from cockpit.loop.intake.fork_session import list_waves_to_fork

    ended = set(list_waves_to_fork(connection, session_id))
    first_words: dict[str, str] = {}
    for message in messages.select_for_session(connection, session_id):
        if message.wave_id and message.text.strip():
            first_words.setdefault(
                message.wave_id, message.text.strip().splitlines()[0][:_TEXT_MOST]
            )
    rows = waves.select_for_session(connection, session_id)
    return [
        (str(wave.ordinal), f"wave {wave.ordinal}", first_words.get(wave.wave_id, wave.phase))
        for wave in reversed(rows)
        if wave.ordinal in ended
    ]


def note_escape(host: Host) -> None:
    """Open the list of waves on the second Escape in an empty prompt while nothing waits."""
    main = host.main
    if main.prompt.text.strip() or main.queue.total or not _can_go_back(main.context):
        return
    now = host.engine.store.clock.monotonic()
    is_second = now - host.escaped_at <= _TWICE_S
    host.escaped_at = float("-inf") if is_second else now
    if is_second:
        rewind_session(host)
    else:
        main.flash("esc again goes back to an earlier wave")


def _can_go_back(context: ActionContext) -> bool:
    return context.has_session and not context.has_agent and not context.session_runs


REWIND_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "rewind", "Session", "Go back to an earlier wave, with its files", "rewind",
        run=rewind_session, when=_can_go_back, needs="a session of the built-in agent that rests",
        command="rewind", synonyms="undo checkpoint restore earlier revert",
    ),
)  # fmt: skip
