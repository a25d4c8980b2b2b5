"""``cockpit feedback``: how good a wave's decision was, and what a person says of it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import TOKEN
from cockpit.commands.command_caller import find_caller
from cockpit.commands.open_project import (
    choose_session,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import format_table, say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.store.context import profiles
from cockpit.store.context import wave_feedback as stored
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.sessions import waves

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


class FirstIsGive(click.Group):
    """``feedback WAVE good`` is ``feedback give WAVE good``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["give", *args]
        return super().parse_args(ctx, args)


@click.group(cls=FirstIsGive, short_help="How good a wave's decision was.")
def feedback() -> None:
    """Judge waves, and see how they were judged.

    A WAVE is its id, SESSION:N (its Nth wave), or 'last'.
    """


@feedback.command()
@click.argument("wave")
@click.argument("verdict", type=click.Choice(stored.VERDICTS))
@click.argument("words", nargs=-1)
@TOKEN
@AS_JSON
def give(wave: str, verdict: str, words: tuple[str, ...], token: str, as_json: bool) -> None:
    """Say that WAVE's decision was good or bad, and why; a newer word replaces an older one."""
    from cockpit.access.token_scopes import APPROVE
    from cockpit.learn.judge_waves import spoken
    from cockpit.loop.decisions.profile_change_results import actor_of

    def step(tx: Tx) -> Feedback:
        caller = find_caller(tx, token)
        # Feedback decides promotions: who may not approve a change may not bring it about.
        caller.require(APPROVE, "judge a wave")
        wave_id = choose_wave(tx.connection, wave)
        return spoken(tx, wave_id, verdict, " ".join(words), by=actor_of(caller))

    read_store(
        stored.select_recent
    )  # in a project where nothing was recorded, it says so and makes nothing
    with open_store(find_project()) as store:
        made = store.write_now(step)
    if as_json:
        show_json(stored.feedback_body(made))
    else:
        show(f"{made.wave_id}: {verdict} · decision quality {_number(made.assessment.score)}")


@feedback.command("show")
@click.argument("wave", default="last")
@AS_JSON
def show_feedback(wave: str, as_json: bool) -> None:
    """Show what is known of WAVE's decision, and how the picture changed."""
    rows: list[Feedback] = read_store(
        lambda connection: stored.select_history(connection, choose_wave(connection, wave))
    )
    if not rows:
        raise NotFound(f"Wave {wave} was not judged yet: that happens when it has ended.")
    now = rows[-1]
    if as_json:
        show_json(
            {**stored.feedback_body(now), "history": [stored.feedback_body(row) for row in rows]}
        )
        return
    judged = now.assessment
    show(f"{now.wave_id} · decision quality {_number(judged.score)}")
    show(
        f"profile {now.profile_id} version {now.profile_version} · packet {now.packet_id}"
        f" · judged {len(rows)}×"
    )
    for name, value in judged.measures.items():
        show(f"  {name:<10} {_number(value)}")
    if judged.regrets:
        show(f"regretted: {', '.join(judged.regrets)}")
    if judged.operator is not None:
        words = f": {judged.operator.words}" if judged.operator.words else ""
        show(f"{judged.operator.by} says {judged.operator.verdict}{words}")
    if judged.missed:
        show("\nmissed signals")
        show(
            format_table(
                ("HELD", "TOKENS", "BAND", "FACT", "ASKED FOR"),
                [
                    (one.held, f"{one.tokens:,}", one.band, one.source_ref, one.item)
                    for one in judged.missed
                ],
            )
        )


@feedback.command("list")
@click.option("--session", metavar="ID", help="Only this session; 'last' is the newest.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@AS_JSON
def list_feedback(session: str | None, limit: int, as_json: bool) -> None:
    """List how waves were judged, the newest first."""

    def read(connection: sqlite3.Connection) -> list[Feedback]:
        named = None if session is None else choose_session(connection, session)
        return stored.select_recent(connection, named, limit)

    found: list[Feedback] = read_store(read, empty=[])
    show_list(
        as_json,
        [stored.feedback_body(row) for row in found],
        ("WAVE", "QUALITY", "MISSED", "REGRET", "PERSON", "PROFILE"),
        [
            (
                row.wave_id,
                _number(row.assessment.score),
                str(len(row.assessment.missed)),
                ", ".join(row.assessment.regrets) or "–",
                row.assessment.operator.verdict if row.assessment.operator else "–",
                f"{row.profile_id} v{row.profile_version}",
            )
            for row in found
        ],
        "No wave was judged yet.",
    )


@feedback.command()
@click.option("--profile", "profile_id", default="", metavar="ID", help="For that profile.")
def suggest(profile_id: str) -> None:
    """Print a change for `cockpit profile propose`: more weight for what was missed, less for what
    held its room."""
    from cockpit.learn.suggest_weights import suggestions
    from cockpit.orient.profile_changes.change_limits import AGENTS
    from cockpit.orient.profile_changes.guard import CAPABILITY, CRITICAL

    named = (
        profile_id
        or profiles.initial_profile(
            load_project_settings(find_project()).runtime.token_budget
        ).profile_id
    )

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        if not profiles.select_versions(connection, named):
            raise NotFound(f"There is no profile {named} here yet; the first session makes it.")
        # Within the narrowest envelope: whoever hands it in stays inside their own.
        current = profiles.load_current(connection, named)
        return suggestions(connection, current, AGENTS, (*CRITICAL, *CAPABILITY))

    found = read_store(read)
    if not found:
        say("Nothing to suggest: no source was missed often enough under this version.")
        return
    show_json(found[0])
    say(found[0]["reason"])


def choose_wave(connection: sqlite3.Connection, named: str) -> str:
    """The id of the wave that ``named`` is: an id, ``SESSION:N``, or ``last``.

    Raises :class:`NotFound`, and ``WrongUse`` for a session's name that several begin with.
    """
    session, colon, number = named.rpartition(":")
    if named == "last":
        newest = waves.find_latest(connection, choose_session(connection, "last"))
        if newest is None:
            raise NotFound("The last session has no wave yet.")
        return newest.wave_id
    if not colon:
        return waves.load(connection, named).wave_id
    session_id = choose_session(connection, session)
    for wave in waves.select_for_session(connection, session_id):
        if str(wave.ordinal) == number:
            return wave.wave_id
    raise NotFound(f"Session {session_id} has no wave {number}; `cockpit packet show` lists them.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
