"""``cockpit init``: write commented templates of a project's configuration and context."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import find_project
from cockpit.commands.terminal import say
from cockpit.config.all_settings import KEYS, TABLES, Key
from cockpit.core.errors import StoreUnwritable
from cockpit.core.project.project_trust import list_loadable, write_trust

CONTEXT = """\
<!-- What every agent must know about this project in each wave: its purpose, where things are, which
commands to use, which rules apply. It is part of the identity band of each packet, so keep it to one
page. Comments like this one stay out of packets. -->
"""


REFUSED = frozenset(key.full for key in KEYS if key.project == "none" and key.default is None)
"""The settings that a project's file may not contain at all."""

_EXAMPLES = {
    "[model] name": '"offline"',
    "[model] context_window": "32768",
    "[limits] max_cost": "5.0",
    "[limits] max_tokens": "2000000",
    "[work] test_command": '"make test"',
    "[work] setup": '"npm ci"',
    "[work] copy": '[".env.test"]',
    "[work] link": '["node_modules"]',
    "[work] env": '{ PORT = "{port}", DATABASE = "shop_{task}" }',
}
"""Example values of settings without a default."""


@click.command(
    short_help="Write configuration templates to .cockpit.", epilog=examples("cockpit init")
)
def init() -> None:
    """Write commented templates to .cockpit/config.toml and .cockpit/context.md.

    Files that exist stay as they are. Put both under version control.
    """
    place = find_project()
    written: list[str] = []
    existing: list[str] = []
    try:
        place.folder.mkdir(exist_ok=True)
        for name, text in (("config.toml", config_template()), ("context.md", CONTEXT)):
            path = place.folder / name
            (written if _write_new(path, text) else existing).append(str(path))
    except OSError as error:
        raise StoreUnwritable(
            f"{place.folder} cannot be written: {error.strerror or error}. Check its permissions."
        ) from error
    # The user wrote these just now; what was there before stays as it was judged.
    files = list_loadable(place.home)
    new = {Path(name).name for name in written}
    if any(file.name in new and not file.trusted for file in files):
        write_trust(place, [file for file in files if file.trusted or file.name in new])
    for name in written:
        say(f"written  {name}")
    for name in existing:
        say(f"kept     {name} (it exists)")


def config_template() -> str:
    """Return a project's configuration with every setting that it may contain, commented out."""
    parts = [
        "# Settings of this project, for everyone who works on it. Remove the '#' of a line to use it.\n"
        "# A project may tighten settings and never widen them. docs/reference/configuration.md lists\n"
        "# all settings and says where your own go.\n"
    ]
    for table in TABLES:
        keys = [key for key in KEYS if key.table == table and key.full not in REFUSED]
        if not keys:
            continue
        parts.append(f"\n[{table}]\n" + "".join(_line(key) for key in keys))
    return "".join(parts)


def _line(key: Key) -> str:
    value = _EXAMPLES.get(key.full, json.dumps(key.default))
    note = {
        "none": f" (in this file only {key.default!r})",
        "lower": " (in this file only lower)",
        "higher": " (in this file only higher)",
        "fills": " (not where a user has set their own)",
        "neutral": "",
    }[key.project]
    return f"# {key.purpose}: {key.allowed}{note}\n# {key.name} = {value}\n"


def _write_new(path: Path, text: str) -> bool:
    """Write a file unless it exists; return whether it was written. A link counts as existing."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True
