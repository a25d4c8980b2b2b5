"""``cockpit stats``: how much sessions held, got done and had to leave, at any time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import AS_JSON
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import format_table, say, show, show_json
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    import sqlite3

    from cockpit.chains.report.measures import Measures

_SPAN = re.compile(r"(\d{1,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


@click.command(short_help="How sessions of chains did: context, batches, reviews, restarts.")
@click.option("--since", metavar="WHEN", help="From then on: 7d, 12h, 2w, a date or a moment.")
@click.option("--before", metavar="WHEN", help="Up to then. With --after: the first of two times.")
@click.option("--after", metavar="WHEN", help="Compare what is before with what is after.")
@AS_JSON
def stats(since: str | None, before: str | None, after: str | None, as_json: bool) -> None:
    """Measure the sessions of chains, from the journal; dates are in UTC.

    `--since 7d` looks at a week. `--before DATE --after DATE` compares two times: all up to the one
    (from --since on), and all from the other on; --after alone compares what came before it with what
    came after.
    """
    first = _moment("--since", since) if since else ""
    until = _moment("--before", before) if before else ""
    later = _moment("--after", after) if after else ""
    if first and (end := until or later) and first >= end:
        option = "--before" if until else "--after"
        raise WrongUse(f"--since is not earlier than {option}; there is nothing between them.")
    if later:
        if until > later:
            say("--after is earlier than --before: what lies between them counts on both sides.")
        _compare(first, until or later, later, as_json)
        return
    from cockpit.chains.report.measures import OPEN

    found = _measured(first, until or OPEN)
    if as_json:
        show_json(found.body())
        return
    _show(found)


def _measured(since: str, before: str) -> Measures:
    from cockpit.chains.report.measures import Measures, measure_chains

    def read(connection: sqlite3.Connection) -> Measures:
        return measure_chains(connection, since, before)

    return read_store(read, empty=Measures(since, before))


def _show(found: Measures) -> None:
    from cockpit.chains.report.measure_rows import measure_rows

    rows = [(row.name, row.shown, row.aim or "", row.detail) for row in measure_rows(found)]
    show(format_table(("MEASURE", "NOW", "AIM", ""), rows))
    if not found.workers:
        say("No session of a chain has ended in that time; `cockpit work --all` starts one.")


def _compare(since: str, before: str, after: str, as_json: bool) -> None:
    from cockpit.chains.report.measure_rows import compare_measures
    from cockpit.chains.report.measures import OPEN

    old, new = _measured(since, before), _measured(after, OPEN)
    if as_json:
        show_json({"before": old.body(), "after": new.body()})
        return
    signs = {True: "better", False: "worse", None: ""}
    rows = [
        (each.name, each.before, each.after, each.change, signs[each.better])
        for each in compare_measures(old, new)
    ]
    heads = ("MEASURE", f"BEFORE {before[:10]}", f"FROM {after[:10]}", "CHANGE", "")
    show(format_table(heads, rows))
    say(f"{pluralize(old.workers, 'worker')} ended before, {new.workers:,} after.")


def _moment(option: str, written: str) -> str:
    """A moment as it is stored. Raises :class:`WrongUse`."""
    from cockpit.core.clock import SystemClock, format_time

    span = _SPAN.fullmatch(written)
    try:
        if span is not None:
            return format_time(
                SystemClock().now() - timedelta(hours=int(span[1]) * _HOURS[span[2]])
            )
        found = datetime.fromisoformat(written)
    except (ValueError, OverflowError) as error:
        raise WrongUse(
            f"{option} {written!r} is no time; write 7d, 2026-01-05 or 2026-01-05T10:00."
        ) from error
    return format_time(found if found.tzinfo is not None else found.replace(tzinfo=UTC))
