"""``cockpit tasks import`` and ``export``: the backlog in and out, and issues of GitHub in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import TOKEN
from cockpit.commands.backlog.call_work_tools import AS_JSON, authorize_writer, write_store
from cockpit.commands.open_project import WrongUse, find_project, read_store
from cockpit.commands.terminal import json_text, say, show, show_json, show_json_line
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.backlog.import_export import ImportCounts
    from cockpit.store.db.transaction import Tx

_GITHUB = "github"


@click.command("import")
@click.argument("source", metavar="FILE|-|github")
@click.option(
    "--label", "labels", multiple=True, metavar="NAME", help="Issues with it; again for more."
)
@click.option("--repo", metavar="OWNER/NAME", help="That repository's issues, not this project's.")
@click.option("--story", "story_id", metavar="ID", help="New issues go into this story.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@TOKEN
@AS_JSON
def import_tasks(
    source: str,
    labels: tuple[str, ...],
    repo: str | None,
    story_id: str | None,
    limit: int,
    token: str,
    as_json: bool,
) -> None:
    """Take in what `tasks export` wrote, JSON Lines, or the open issues of GitHub.

    Importing the same again changes nothing.
    """
    if source != _GITHUB and (labels or repo or story_id):
        raise WrongUse("--label, --repo and --story are for `cockpit tasks import github`.")
    if source == _GITHUB:
        import asyncio

        from cockpit.backlog.github_issues import import_issues, open_issues

        home = find_project().home
        found = asyncio.run(open_issues(home, labels=labels, repo=repo, limit=limit))

        def step(tx: Tx) -> ImportCounts:
            by = authorize_writer(tx, token, "import issues")
            return import_issues(tx, found, story_id=story_id, by=by)
    else:
        from cockpit.backlog.import_export import import_backlog, read_lines

        lines = read_lines(_lines(source))

        def step(tx: Tx) -> ImportCounts:
            return import_backlog(tx, lines, by=authorize_writer(tx, token, "import tasks"))

    made: ImportCounts = write_store(step)
    told = {"created": made.created, "changed": made.changed, "unchanged": made.unchanged}
    if as_json:
        show_json(told)
    else:
        show(", ".join(f"{number} {word}" for word, number in told.items()))


def _lines(source: str) -> Iterable[str]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
    # Not splitlines: JSON may hold U+2028 raw.
    return text.split("\n")


@click.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def export_tasks(file: Path | None) -> None:
    """Write the whole backlog as JSON Lines, to FILE or standard output."""
    from cockpit.backlog.import_export import export_backlog

    nothing: list[dict[str, Any]] = []
    found = read_store(lambda connection: list(export_backlog(connection)), empty=nothing)
    lines = [json_text(one) for one in found]
    if file is None:
        for line in lines:
            show_json_line(line)
        return
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"{file} has {pluralize(len(lines), 'line')}")


COMMANDS: tuple[click.Command, ...] = (import_tasks, export_tasks)
"""The commands that move the backlog."""
