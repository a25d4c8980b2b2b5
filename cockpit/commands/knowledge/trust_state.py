"""``cockpit debug trust``: how far the inner loops of each task type collapsed."""

from __future__ import annotations

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.terminal import show_list


@click.command("trust", epilog=examples("cockpit debug trust"))
@AS_JSON
def show_state(as_json: bool) -> None:
    """Show how far both inner loops collapsed.

    Of each task type: Orient (what may be read) and Decide (what may be done) are early, trusted or
    collapsed.
    """
    from cockpit.loop.trust.list_rules import list_states

    place = find_project()
    settings = load_project_settings(place).runtime
    with open_store(place) as store:
        states = store.read_now(lambda connection: list_states(connection, store.clock, settings))
    show_list(
        as_json,
        [to_builtins(each) for each in states],
        ("TASK TYPE", "ORIENT", "DECIDE", "WHY"),
        [
            (
                each.task_type,
                each.orient.state,
                each.decide.state,
                f"orient: {each.orient.why}; decide: {each.decide.why}",
            )
            for each in states
        ],
        "No decisions yet. The state appears after your first one.",
    )
