"""``cockpit stats``: measure the workers of chains over a time span, or compare two spans."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import format_table, say, show, show_json
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    import sqlite3

    from cockpit.chains.report.measures import Measures

_SPAN = re.compile(r"(\d{1,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


@click.command(
    short_help="Measure the workers of chains.",
    epilog=examples(
        "cockpit stats --since 7d",
        "cockpit stats --before 2026-01-05 --after 2026-01-12",
        "cockpit stats --after 2026-01-12 --json",
    ),
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Measure from this time on: 12h, 7d, 2w, a date, or a date and time.",
)
@click.option(
    "--before",
    metavar="WHEN",
    help="Measure up to this time. With --after, the end of the first span.",
)
@click.option("--after", metavar="WHEN", help="Compare the time before with the time after this.")
@AS_JSON
def stats(since: str | None, before: str | None, after: str | None, as_json: bool) -> None:
    """Measure the workers of chains: context, batches, reviews and restarts.

    `--since 7d` measures a week. `--before DATE --after DATE` compares two spans: up to the first date,
    and from the second date on. --after alone compares the time before it with the time after it. Dates
    are in UTC.
    """
    first = _moment("--since", since) if since else ""
    until = _moment("--before", before) if before else ""
    later = _moment("--after", after) if after else ""
    if first and (end := until or later) and first >= end:
        option = "--before" if until else "--after"
        raise WrongUse(f"--since is not earlier than {option}. Choose an earlier time for --since.")
    if later:
        if until > later:
            say("--after is earlier than --before, so the time between them counts in both spans.")
        _compare(first, until or later, later, as_json)
        return
    measures = _measured(first, until)
    if as_json:
        show_json(_body(measures, first, until))
        return
    rows = [(row.name, row.shown, row.aim, row.detail) for row in measures.rows]
    show(format_table(("MEASURE", "NOW", "AIM", ""), rows))
    if not measures.workers:
        say("No worker has ended in that time. `cockpit work --all` starts a chain.")


def _measured(since: str, before: str) -> Measures:
    from cockpit.chains.report.measures import OPEN, measure_chains

    def read(connection: sqlite3.Connection) -> Measures:
        return measure_chains(connection, since, before or OPEN)

    return read_store(read, empty=measure_chains(None))


def _body(measures: Measures, since: str, before: str) -> dict[str, Any]:
    """Return the JSON object of one time span."""
    return {
        "since": since or None,
        "before": before or None,
        "workers": measures.workers,
        "measures": [row.body() for row in measures.rows],
    }


def _compare(since: str, before: str, after: str, as_json: bool) -> None:
    old, new = _measured(since, before), _measured(after, "")
    if as_json:
        show_json({"before": _body(old, since, before), "after": _body(new, after, "")})
        return
    signs = {True: "better", False: "worse", None: ""}
    rows = []
    for then, now in zip(old.rows, new.rows, strict=True):
        change, better = now.change_since(then)
        rows.append((now.name, then.shown, now.shown, change, signs[better]))
    heads = ("MEASURE", f"BEFORE {before[:10]}", f"FROM {after[:10]}", "CHANGE", "")
    show(format_table(heads, rows))
    say(f"{pluralize(old.workers, 'worker')} ended before, {new.workers:,} after.")


def _moment(option: str, written: str) -> str:
    """Return a time in the format of the store. Raises :class:`WrongUse`."""
    from cockpit.core.clock import SystemClock, format_time

    span = _SPAN.fullmatch(written)
    try:
        if span is not None:
            return format_time(
                SystemClock().now() - timedelta(hours=int(span[1]) * _HOURS[span[2]])
            )
        moment = datetime.fromisoformat(written)
    except (ValueError, OverflowError) as error:
        raise WrongUse(
            f"{option} {written!r} is not a time. Write for example 7d, 2026-01-05 or 2026-01-05T10:00."
        ) from error
    return format_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
