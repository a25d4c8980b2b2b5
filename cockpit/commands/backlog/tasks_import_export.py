"""``cockpit tasks import`` and ``export``: copy the backlog, and import GitHub issues."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.backlog.call_work_tools import authorize_writer, read_source, write_store
from cockpit.commands.open_project import WrongUse, find_project, read_store
from cockpit.commands.terminal import json_text, say, show, show_json, show_json_line
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.backlog.import_export import ImportCounts
    from cockpit.store.db.transaction import Tx

_GITHUB = "github"
_MOST_ISSUES = 1_000


@click.command(
    "import",
    epilog=examples(
        "cockpit tasks import backlog.jsonl", "cockpit tasks import github --label bug"
    ),
)
@click.argument("source", metavar="FILE|-|github")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="Import only issues with this label. Repeat for more.",
)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Import issues of this repository. Default: this project's.",
)
@click.option("--story", "story_id", metavar="ID", help="Put new issues into this story.")
@AS_JSON
def import_tasks(
    source: str,
    labels: tuple[str, ...],
    repo: str | None,
    story_id: str | None,
    as_json: bool,
) -> None:
    """Import tasks from a file or from GitHub.

    FILE contains JSON Lines, as `cockpit tasks export` writes them; - reads standard input. "github" imports
    the open issues, at most 1,000. Importing the same records again changes nothing.
    """
    if source != _GITHUB and (labels or repo or story_id):
        raise WrongUse("--label, --repo and --story need `cockpit tasks import github`.")
    if source == _GITHUB:
        import asyncio

        from cockpit.backlog.github_issues import import_issues, open_issues
        from cockpit.backlog.task_type_names import read_names

        home = find_project().home
        records = asyncio.run(
            open_issues(
                home, labels=labels, repo=repo, limit=_MOST_ISSUES, task_types=read_names(home)
            )
        )

        def step(tx: Tx) -> ImportCounts:
            by = authorize_writer(tx, "import issues")
            return import_issues(tx, records, story_id=story_id, by=by)
    else:
        from cockpit.backlog.import_export import import_backlog, read_lines

        # Not splitlines, because JSON may contain U+2028 unescaped.
        lines = read_lines(read_source(source).split("\n"))

        def step(tx: Tx) -> ImportCounts:
            return import_backlog(tx, lines, by=authorize_writer(tx, "import tasks"))

    result: ImportCounts = write_store(step)
    counts = {"created": result.created, "changed": result.changed, "unchanged": result.unchanged}
    if as_json:
        show_json(counts)
    else:
        show(", ".join(f"{number} {word}" for word, number in counts.items()))


@click.command(
    "export",
    epilog=examples("cockpit tasks export backlog.jsonl", "cockpit tasks export > backlog.jsonl"),
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def export_tasks(file: Path | None) -> None:
    """Export the whole backlog.

    Write it as JSON Lines to FILE or to standard output.
    """
    from cockpit.backlog.import_export import export_backlog

    nothing: list[dict[str, Any]] = []
    records = read_store(lambda connection: list(export_backlog(connection)), empty=nothing)
    lines = [json_text(record) for record in records]
    if file is None:
        for line in lines:
            show_json_line(line)
        return
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"Wrote {pluralize(len(lines), 'line')} to {file}")


COMMANDS: tuple[click.Command, ...] = (import_tasks, export_tasks)
"""The commands that copy the backlog."""
