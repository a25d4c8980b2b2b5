"""``cockpit feedback``: judge the decisions of waves, and show their scores."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.feedback import COLLECTION, choose_wave, word_score
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.store.context import profiles
from cockpit.store.context import wave_feedback as stored
from cockpit.store.context.wave_feedback import Feedback

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx


feedback = make_group(COLLECTION)


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
        score = word_score(feedback_row.assessment.score)
        show(f"{feedback_row.wave_id}: {verdict} · decision quality {score}")


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
