"""``cockpit feedback``: judge the decisions of waves, and show their scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.collection import Collection, limit_option
from cockpit.commands.open_project import (
    choose_session,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import format_table, say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.store.context import profiles
from cockpit.store.context import wave_feedback as stored
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.sessions import waves

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx


def _read(session: str | None, limit: int) -> Sequence[Feedback]:
    def read(connection: sqlite3.Connection) -> list[Feedback]:
        named = None if session is None else choose_session(connection, session)
        return stored.select_recent(connection, named, limit)

    return read_store(read, empty=[])


def _find(name: str) -> list[Feedback]:
    rows = read_store(
        lambda connection: stored.select_history(connection, choose_wave(connection, name))
    )
    if not rows:
        raise NotFound(f"Wave {name} has no score yet. A wave gets its score when it ends.")
    return rows


def _describe(rows: list[Feedback]) -> str:
    now, assessment = rows[-1], rows[-1].assessment
    lines = [
        f"{now.wave_id} · decision quality {_number(assessment.score)}",
        f"profile {now.profile_id} version {now.profile_version} · packet {now.packet_id}"
        f" · judged {len(rows)}×",
        *(f"  {name:<10} {_number(value)}" for name, value in assessment.measures.items()),
    ]
    if assessment.regrets:
        lines.append(f"regretted: {', '.join(assessment.regrets)}")
    if assessment.operator is not None:
        words = f": {assessment.operator.words}" if assessment.operator.words else ""
        lines.append(f"{assessment.operator.by} says {assessment.operator.verdict}{words}")
    if assessment.missed:
        cells = [
            (signal.held, f"{signal.tokens:,}", signal.band, signal.source_ref, signal.item)
            for signal in assessment.missed
        ]
        table = format_table(("LEVEL", "TOKENS", "BAND", "FACT", "ASKED FOR"), cells)
        lines += ["", "missed signals", table]
    return "\n".join(lines)


feedback = Collection[Any](
    "feedback",
    short_help="Judge the decisions of waves.",
    help="""Judge the decisions of waves and show their scores, newest first.

    WAVE is an id, SESSION:N for the Nth wave of a session, or last. One is shown with the parts of its score.
    """,
    examples=(
        "cockpit feedback --session last",
        "cockpit feedback last",
        "cockpit feedback give last good",
    ),
    row="WAVE",
    columns={
        "WAVE": lambda row: row.wave_id,
        "QUALITY": lambda row: _number(row.assessment.score),
        "MISSED": lambda row: str(len(row.assessment.missed)),
        "REGRET": lambda row: ", ".join(row.assessment.regrets) or "–",
        "USER": lambda row: row.assessment.operator.verdict if row.assessment.operator else "–",
        "PROFILE": lambda row: f"{row.profile_id} v{row.profile_version}",
    },
    read=_read,
    find=_find,
    describe=_describe,
    none="No scores yet. A wave gets its score when it ends.",
    body=stored.feedback_body,
    document=lambda rows: {
        **stored.feedback_body(rows[-1]),
        "history": [stored.feedback_body(row) for row in rows],
    },
    filters=[
        click.option(
            "--session", metavar="ID", help="List only waves of this session, an id or last."
        ),
        limit_option(50),
    ],
)


@feedback.command(
    epilog=examples("cockpit feedback give last bad 'It missed the caller in room.py'")
)
@click.argument("wave")
@click.argument("verdict", type=click.Choice(stored.VERDICTS))
@click.argument("words", nargs=-1)
@AS_JSON
def give(wave: str, verdict: str, words: tuple[str, ...], as_json: bool) -> None:
    """Judge the decision of a wave as good or bad.

    Your verdict outweighs the measured score. A newer verdict replaces an older one. With
    COCKPIT_TOKEN it is the verdict of its principal, which needs the scope orientation.approve.
    """
    from cockpit.access.principals import journal_actor
    from cockpit.access.token_scopes import APPROVE
    from cockpit.learn.judge_waves import record_verdict

    def step(tx: Tx) -> Feedback:
        caller = find_caller(tx)
        # Feedback decides promotions: who may not approve a change may not bring it about.
        caller.require(APPROVE, "judge a wave")
        wave_id = choose_wave(tx.connection, wave)
        return record_verdict(tx, wave_id, verdict, " ".join(words), by=journal_actor(caller))

    read_store(stored.select_recent)  # raises where nothing was recorded, before a store is created
    with open_store(find_project()) as store:
        feedback_row = store.write_now(step)
    if as_json:
        show_json(stored.feedback_body(feedback_row))
    else:
        show(
            f"{feedback_row.wave_id}: {verdict} · decision quality {_number(feedback_row.assessment.score)}"
        )


@feedback.command(epilog=examples("cockpit feedback suggest > change.json"))
@click.option(
    "--profile",
    "profile_id",
    default="",
    metavar="ID",
    help="Suggest a change of this profile. Default: the project's.",
)
def suggest(profile_id: str) -> None:
    """Suggest a profile change from the feedback.

    The change, for `cockpit profile propose`, gives more weight to sources that packets dropped and agents
    asked for, and less weight to sources that took their room.
    """
    from cockpit.learn.suggest_weights import suggest_changes
    from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
    from cockpit.orient.profile_changes.guard import CAPABILITY, CRITICAL

    named = (
        profile_id
        or profiles.initial_profile(
            load_project_settings(find_project()).runtime.token_budget
        ).profile_id
    )

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        if not profiles.select_versions(connection, named):
            raise NotFound(f"No profile {named} yet. The first session creates it.")
        # Within the narrowest limits, so that every principal may propose it.
        current = profiles.load_current(connection, named)
        return suggest_changes(connection, current, AGENT_LIMITS, (*CRITICAL, *CAPABILITY))

    rows = read_store(read)
    if not rows:
        say("Nothing to suggest. No source was missed often enough with this version.")
        return
    show_json(rows[0])
    say(rows[0]["reason"])


def choose_wave(connection: sqlite3.Connection, named: str) -> str:
    """Return the id of the wave that ``named`` names: an id, ``SESSION:N`` or ``last``.

    Raises :class:`NotFound`, and ``WrongUse`` where several sessions begin with SESSION.
    """
    session, colon, number = named.rpartition(":")
    if named == "last":
        newest = waves.find_latest(connection, choose_session(connection, "last"))
        if newest is None:
            raise NotFound("The last session has no wave yet. Name a wave or another session.")
        return newest.wave_id
    if not colon:
        return waves.load(connection, named).wave_id
    session_id = choose_session(connection, session)
    for wave in waves.select_for_session(connection, session_id):
        if str(wave.ordinal) == number:
            return wave.wave_id
    raise NotFound(f"Session {session_id} has no wave {number}. `cockpit packet` lists its waves.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
