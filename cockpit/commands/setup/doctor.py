"""``cockpit doctor``: check the setup and suggest fixes."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import find_project
from cockpit.commands.setup.doctor_checks import Check, every_check
from cockpit.commands.terminal import format_table, show, show_json

SIGNS = {"ok": "✔", "missing": "–", "broken": "✘"}


@click.command(
    short_help="Check the setup and suggest fixes.",
    epilog=examples("cockpit doctor", "cockpit doctor --json"),
)
@AS_JSON
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool) -> None:
    """Check git, gh and its login, models and keys, sandbox, terminal and store.

    It ends with 1 if something is broken. Something that is only missing disables a part of cockpit.
    """
    checks = asyncio.run(every_check(find_project()))
    if as_json:
        show_json([_record(check) for check in checks])
    else:
        show(format_table(("", ""), [_row(check) for check in checks]).lstrip("\n "))
    if any(check.state == "broken" for check in checks):
        ctx.exit(Exit.FAILED)


def _record(check: Check) -> dict[str, Any]:
    return {"name": check.name, "state": check.state, "found": check.detail, "mend": check.fix}


def _row(check: Check) -> tuple[str, str]:
    fix = f" → {check.fix}" if check.fix else ""
    return (f"{SIGNS[check.state]} {check.name}", f"{check.detail}{fix}")
