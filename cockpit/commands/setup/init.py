"""``cockpit init``: commented templates for what a project says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cockpit.commands.open_project import find_project
from cockpit.commands.terminal import say, show_json
from cockpit.config.all_settings import KEYS, TABLES, Key
from cockpit.core.errors import StoreUnwritable

CONTEXT = """\
<!-- What an agent must know of this project in every wave. It is part of the identity band of each
packet, so a page is better than ten: what it is for, where things are, commands that work, rules
that hold. Delete this comment. -->
"""


REFUSED = ("[model] base_url", "[log] json")
"""What a project's file may not set at all."""

_EXAMPLES = {
    "[model] name": '"offline"',
    "[limits] max_cost": "5.0",
    "[work] test_command": '"make test"',
}
"""For what is not set unless somebody sets it."""


@click.command(short_help="Write commented templates into .cockpit.")
@click.option("--json", "as_json", is_flag=True, help="What was written, as JSON.")
def init(as_json: bool) -> None:
    """Write .cockpit/config.toml and .cockpit/context.md for version control.

    What is there already is left as it is.
    """
    place = find_project()
    written: list[str] = []
    kept: list[str] = []
    try:
        place.folder.mkdir(exist_ok=True)
        for name, text in (("config.toml", config_template()), ("context.md", CONTEXT)):
            path = place.folder / name
            (written if _write_new(path, text) else kept).append(str(path))
    except OSError as error:
        raise StoreUnwritable(
            f"{place.folder} cannot be written: {error.strerror or error}. Check its permissions."
        ) from error
    if as_json:
        show_json({"written": written, "kept": kept})
        return
    for name in written:
        say(f"written  {name}")
    for name in kept:
        say(f"kept     {name} (it was there)")


def config_template() -> str:
    """The project's configuration with every key that it may set, commented out."""
    parts = [
        "# Settings of this project, for everybody who works on it. A line without its '#' counts.\n"
        "# A project may tighten what holds and never widen it; docs/reference/configuration.md says what\n"
        "# that means, and where your own settings go.\n"
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
        "none": f" (here only {key.default!r})",
        "lower": " (here only lower)",
        "higher": " (here only higher)",
        "any": "",
    }[key.project]
    return f"# {key.purpose}: {key.allowed}{note}\n# {key.name} = {value}\n"


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there yet; a link counts as being there."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True
