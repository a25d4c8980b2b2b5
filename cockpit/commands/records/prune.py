"""``cockpit prune``: archive and delete facts and packets of old sessions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import find_project, open_store
from cockpit.commands.terminal import show, show_json
from cockpit.core.clock import SystemClock, format_time
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.store.context.prune import PruneResult

_AGE = re.compile(r"(\d+)\s*([hdw])\Z")
_HOURS = {"h": 1, "d": 24, "w": 168}


class Before(click.ParamType[datetime]):
    """An age (``12h``, ``30d``, ``8w``) or a date (``2026-01-31``)."""

    name = "age or date"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        text = str(value).strip()
        if age := _AGE.match(text):
            hours = int(age[1]) * _HOURS[age[2]]
            if hours <= 24 * 36_500:
                return SystemClock().now() - timedelta(hours=hours)
        try:
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            self.fail(f"{value!r} is not an age such as 30d, and not a date such as 2026-01-31.")


@click.command(
    short_help="Archive and delete data of old sessions.",
    epilog=examples(
        "cockpit prune --older-than 30d --dry-run", "cockpit prune --older-than 2026-01-31"
    ),
)
@click.option(
    "--older-than",
    "before",
    type=Before(),
    help="Prune sessions that ended before this age or date: 12h, 30d, 8w, 2026-01-31.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@click.option(
    "--restore",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Restore the facts and packets of this archive.",
)
@AS_JSON
def prune(before: datetime | None, dry_run: bool, restore: Path | None, as_json: bool) -> None:
    """Move facts and packets of old sessions to a compressed archive and delete them.

    The archive is written to disk before anything is deleted. The journal stays, and so does all data of
    sessions that can still be resumed.
    """
    from cockpit.store.context import prune as pruning

    if before is not None and restore is None:
        with open_store(find_project()) as store:
            result = pruning.prune(store, format_time(before), dry_run=dry_run)
        show_json(result.body()) if as_json else show(_summary(result, dry_run))
    elif restore is not None and before is None:
        with open_store(find_project()) as store:
            back = pruning.restore(store, restore)
        show_json({"restored": back}) if as_json else show(f"Restored {pluralize(back, 'row')}")
    else:
        raise click.UsageError("Pass --older-than AGE or --restore ARCHIVE.")


def _summary(result: PruneResult, dry_run: bool) -> str:
    verb = "would be deleted" if dry_run else "deleted"
    words = (
        f"{pluralize(len(result.sessions), 'session')}: {pluralize(result.packets, 'packet')},"
        f" {pluralize(result.links, 'link')} and {pluralize(result.facts, 'fact')} {verb}"
    )
    return f"{words}\narchive: {result.archive}" if result.archive else words
