"""``cockpit settings``: list, set and unset what cockpit does by default."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from cockpit.access import user_presence
from cockpit.cli_options import examples
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say
from cockpit.config.change_setting import (
    SettingRow,
    change_setting,
    describe_value,
    find_setting,
    list_settings,
    read_text,
)


def _read(only_set: bool) -> Sequence[SettingRow]:
    rows = list_settings(find_project().folder)
    return [row for row in rows if row.origin or not only_set]


def _find(name: str) -> SettingRow:
    key = find_setting(name)
    return next(row for row in _read(only_set=False) if row.key.full == key.full)


def _record(row: SettingRow) -> dict[str, Any]:
    return {
        "name": f"{row.key.table}.{row.key.name}",
        "value": list(row.value) if isinstance(row.value, tuple) else row.value,
        "origin": row.origin,
        "allowed": row.key.allowed,
        "purpose": row.key.purpose,
    }


settings = Collection(
    "settings",
    short_help="List and change settings.",
    help="""List and change your settings, with values and origins.

    A project's own settings, variables and options override yours.
    """,
    examples=("cockpit settings", "cockpit settings set limits.max_waves 20"),
    row="NAME",
    columns={
        "SETTING": lambda row: f"{row.key.table}.{row.key.name}",
        "VALUE": lambda row: describe_value(row.value),
        "FROM": lambda row: row.origin or "default",
        "PURPOSE": lambda row: row.key.purpose,
    },
    read=_read,
    find=_find,
    body=_record,
    none="Every setting has its default.",
    filters=[
        click.option(
            "--set", "only_set", is_flag=True, help="List only those that are not the default."
        )
    ],
)


@settings.command("set", epilog=examples('cockpit settings set model.name "anthropic:NAME"'))
@click.argument("name")
@click.argument("value")
def set_value(name: str, value: str) -> None:
    """Change a setting in your own configuration."""
    _require_user()
    key = find_setting(name)
    path = change_setting(key, read_text(key, value))
    say(f"{key.full} is {value} in {path}, from the next start on")
    _warn_of_override(key.full, str(path))


@settings.command("unset", epilog=examples("cockpit settings unset limits.max_waves"))
@click.argument("name")
def unset(name: str) -> None:
    """Restore the default of a setting."""
    _require_user()
    key = find_setting(name)
    path = change_setting(key, None)
    say(f"{key.full} is no longer set in {path}; its default is {describe_value(key.default)}")
    _warn_of_override(key.full, str(path))


def _require_user() -> None:
    """Raise where it is not the user who changes what is allowed by default."""
    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can change settings, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    user_presence.require_no_agent("changing a setting")


def _warn_of_override(full: str, path: str) -> None:
    row = next(row for row in list_settings(find_project().folder) if row.key.full == full)
    if row.origin not in ("", path):
        say(f"{row.origin} sets it to {describe_value(row.value)} here, which counts.")
