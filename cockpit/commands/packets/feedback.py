"""``cockpit feedback``: judge the decisions of waves, and show their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.feedback import COLLECTION, choose_wave, word_score
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import show, show_json
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
