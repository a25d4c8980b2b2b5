"""``cockpit prune``: archive and delete facts and packets of old sessions."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import find_project, load_project_settings, open_store
from cockpit.commands.terminal import show, show_json
from cockpit.core.clock import SystemClock, format_time
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.config.load_settings import RetentionSettings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.store.chains.prune_remote_rows import RemoteRowsPruning
    from cockpit.store.context.prune import PruneResult
    from cockpit.store.journal.prune_journal import JournalPruning

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
        "cockpit prune",
        "cockpit prune --older-than 30d --dry-run",
        "cockpit prune --older-than 2026-01-31 --journal",
    ),
)
@click.option(
    "--older-than",
    "before",
    type=Before(),
    help="Prune sessions that ended before this age or date: 12h, 30d, 8w, 2026-01-31.",
)
@click.option("--journal", is_flag=True, help="With --older-than: prune rows of the journal, too.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@click.option(
    "--restore",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Restore the facts, packets and jobs of this archive.",
)
@AS_JSON
def prune(
    before: datetime | None, journal: bool, dry_run: bool, restore: Path | None, as_json: bool
) -> None:
    """Move data of old sessions to compressed archives, delete it and give its space back.

    Without --older-than, the settings sessions_days and journal_days of [retention] apply. Archives are
    written to disk before anything is deleted. All data of sessions that can still be resumed stays, and
    the journal can still be verified.
    """
    if restore is not None:
        if before is not None or journal or dry_run:
            raise click.UsageError("Pass --restore ARCHIVE alone.")
        from cockpit.store.context import prune as pruning

        with open_store(find_project()) as store:
            back = pruning.restore(store, restore)
        show_json({"restored": back}) if as_json else show(f"Restored {pluralize(back, 'row')}")
        return
    place = find_project()
    if before is not None:
        due = Due(before, before if journal else None)
    elif journal:
        raise click.UsageError("Pass --older-than AGE with --journal.")
    else:
        due = _due_by_settings(load_project_settings(place).retention)
    result = _prune(place, due, dry_run)
    if as_json:
        show_json(result.body())
    else:
        show(result.summary(dry_run))


class Due(Struct, frozen=True):
    """What is pruned: sessions that ended, and rows that were written, before these times."""

    sessions: datetime | None
    journal: datetime | None


class Pruned(Struct, frozen=True):
    """What one run of the command deleted."""

    sessions: PruneResult | None
    journal: JournalPruning | None
    remote: RemoteRowsPruning | None
    """Journals of workers of other machines; None where the journal was not pruned."""
    freed: int
    """Bytes that were given back to the disk."""

    def body(self) -> dict[str, Any]:
        """Return it as JSON."""
        body = self.sessions.body() if self.sessions else {}
        if self.journal is not None:
            archive = self.journal.archive
            body |= {
                "journal_rows": self.journal.rows,
                "journal_archive": archive.name if archive else "",
            }
        if self.remote is not None:
            archive = self.remote.archive
            body |= {
                "remote_rows": self.remote.rows,
                "remote_archive": archive.name if archive else "",
            }
        return body | {"freed_bytes": self.freed}

    def summary(self, dry_run: bool) -> str:
        """Return it as lines of text."""
        verb = "would be deleted" if dry_run else "deleted"
        lines = []
        if (done := self.sessions) is not None:
            lines.append(
                f"{pluralize(len(done.sessions), 'session')}: {pluralize(done.packets, 'packet')},"
                f" {pluralize(done.jobs, 'job')}, {pluralize(done.links, 'link')} and"
                f" {pluralize(done.facts, 'fact')} {verb}"
            )
            lines += [f"archive: {done.archive}"] if done.archive else []
        if (cut := self.journal) is not None:
            lines.append(f"journal: {pluralize(cut.rows, 'row')} {verb}")
            lines += [f"archive: {cut.archive}"] if cut.archive else []
            if cut.ahead:
                lines.append(
                    f"{pluralize(cut.ahead, 'record')} left that a clock dated after now; check the time of"
                    " this machine. They are deleted with the rows around them, or once that time has come."
                )
        if (remote := self.remote) is not None and remote.runs:
            journals = f"{pluralize(remote.runs, 'journal')} of workers of other machines"
            lines.append(f"{journals}: {pluralize(remote.rows, 'row')} {verb}")
            lines += [f"archive: {remote.archive}"] if remote.archive else []
        if self.freed:
            lines.append(f"{self.freed / 1_000_000:,.1f} MB given back to the disk")
        return "\n".join(lines)


def _due_by_settings(retention: RetentionSettings) -> Due:
    if retention.sessions_days is None and retention.journal_days is None:
        raise click.UsageError(
            "Pass --older-than AGE or --restore ARCHIVE, or set sessions_days or journal_days in"
            " [retention] of your configuration."
        )
    now = SystemClock().now()

    def moment(days: int | None) -> datetime | None:
        return None if days is None else now - timedelta(days=days)

    return Due(moment(retention.sessions_days), moment(retention.journal_days))


def _prune(place: ProjectPaths, due: Due, dry_run: bool) -> Pruned:
    from cockpit.loop.views.metrics import fold_counts
    from cockpit.store.chains.prune_remote_rows import prune_remote_rows
    from cockpit.store.context import prune as pruning
    from cockpit.store.db.free_space import free_pages
    from cockpit.store.journal.prune_journal import prune_journal

    sessions = journal = remote = None
    with open_store(place) as store:
        if due.sessions is not None:
            sessions = pruning.prune(store, format_time(due.sessions), dry_run=dry_run)
        if due.journal is not None:
            # First: when its rows came is in the journal.
            remote = prune_remote_rows(store, format_time(due.journal), dry_run=dry_run)
            journal = prune_journal(store, format_time(due.journal), fold_counts, dry_run=dry_run)
        freed = 0 if dry_run else free_pages(store)
    return Pruned(sessions, journal, remote, freed)
