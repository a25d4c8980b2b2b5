"""``cockpit settings``: the group of the collection, and setting one."""

from __future__ import annotations

import os

import click

from cockpit.access import user_presence
from cockpit.cli_options import examples
from cockpit.collections.settings import COLLECTION
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say
from cockpit.config.change_setting import (
    change_setting,
    describe_value,
    find_setting,
    list_settings,
    read_text,
)

settings = make_group(COLLECTION)


@settings.command(
    "set",
    epilog=examples(
        'cockpit settings set model.name "anthropic:NAME"', "cockpit settings set limits.max_waves"
    ),
)
@click.argument("name")
@click.argument("value", required=False)
def set_value(name: str, value: str | None) -> None:
    """Change a setting in your own configuration.

    Without VALUE its default is restored.
    """
    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can change settings, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    user_presence.require_no_agent("changing a setting")
    key = find_setting(name)
    path = str(change_setting(key, None if value is None else read_text(key, value)))
    if value is None:
        say(f"{key.full} is no longer set in {path}; its default is {describe_value(key.default)}")
    else:
        say(f"{key.full} is {value} in {path}, from the next start on")
    row = next(row for row in list_settings(find_project().folder) if row.key.full == key.full)
    if row.origin not in ("", path):
        say(f"{row.origin} sets it to {describe_value(row.value)} here, which counts.")
