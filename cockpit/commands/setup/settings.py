"""``cockpit settings``: list, set and unset what cockpit does by default."""

from __future__ import annotations

import os
from typing import Any

import click

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say, show_list
from cockpit.config.change_setting import (
    SettingRow,
    change_setting,
    describe_value,
    find_setting,
    list_settings,
    read_text,
)


@click.group(
    short_help="List and change settings.",
    invoke_without_command=True,
    epilog=examples("cockpit settings", "cockpit settings set limits.max_waves 20"),
)
@click.pass_context
def settings(ctx: click.Context, /) -> None:
    """List and change your settings.

    Without a command it lists them. A project's own settings, variables and options override yours.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_all)


@settings.command("list", epilog=examples("cockpit settings list", "cockpit settings list --json"))
@click.option("--set", "only_set", is_flag=True, help="List only those that are not the default.")
@AS_JSON
def list_all(only_set: bool = False, as_json: bool = False) -> None:
    """List settings, with values and origins."""
    rows = [
        row
        for row in list_settings(find_project(settled=False).folder)
        if row.origin or not only_set
    ]
    show_list(
        as_json,
        [_record(row) for row in rows],
        ("SETTING", "VALUE", "FROM", "PURPOSE"),
        [
            (
                f"{row.key.table}.{row.key.name}",
                describe_value(row.value),
                row.origin or "default",
                row.key.purpose,
            )
            for row in rows
        ],
        "Every setting has its default.",
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
    row = next(
        row for row in list_settings(find_project(settled=False).folder) if row.key.full == full
    )
    if row.origin not in ("", path):
        say(f"{row.origin} sets it to {describe_value(row.value)} here, which counts.")


def _record(row: SettingRow) -> dict[str, Any]:
    return {
        "name": f"{row.key.table}.{row.key.name}",
        "value": list(row.value) if isinstance(row.value, tuple) else row.value,
        "origin": row.origin,
        "allowed": row.key.allowed,
        "purpose": row.key.purpose,
    }
