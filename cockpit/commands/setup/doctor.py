"""``cockpit doctor``: check the setup and suggest fixes."""

from __future__ import annotations

import asyncio
import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from cockpit.access.run_program import run_program
from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.exit_codes import Exit
from cockpit.commands.open_project import find_project
from cockpit.commands.setup.doctor_check import Check
from cockpit.commands.setup.doctor_checks import every_check
from cockpit.commands.setup.refusals import list_refusals
from cockpit.commands.terminal import format_table, say, show, show_json
from cockpit.core.errors import CockpitError
from cockpit.decide.provider_extras import (
    EXTRAS,
    Extra,
    find_installation,
    install_command,
    is_installed,
)
from cockpit.loop.views.state_signs import state_sign

_INSTALL_S = 900.0
_MOST_REASON = 2_000


@click.command(
    short_help="Check the setup and suggest fixes.",
    epilog=examples(
        "cockpit doctor",
        "cockpit doctor --explain",
        "cockpit doctor --json",
        "cockpit doctor --install anthropic",
    ),
)
@click.option(
    "--install",
    "extra",
    type=click.Choice(EXTRAS),
    help="Install the packages of this extra, after asking.",
)
@YES
@click.option(
    "--explain", is_flag=True, help="List what cockpit refuses of this repository, and why."
)
@AS_JSON
@click.pass_context
def doctor(
    ctx: click.Context, /, extra: Extra | None, yes: bool, explain: bool, as_json: bool
) -> None:
    """Check git, gh and its login, models and keys, sandbox, terminal and store.

    It ends with 1 if something is broken. Something that is only missing disables a part of cockpit.
    """
    if extra is not None:
        _install(extra, yes)
        return
    if explain:
        _explain(as_json)
        return
    checks = asyncio.run(every_check(find_project()))
    if as_json:
        show_json([_record(check) for check in checks])
    else:
        show(format_table(("", ""), [_row(check) for check in checks]).lstrip("\n "))
    if any(check.state == "broken" for check in checks):
        ctx.exit(Exit.FAILED)


def _explain(as_json: bool) -> None:
    """Print what is refused of this repository."""
    refusals = asyncio.run(list_refusals(find_project()))
    if as_json:
        show_json([{"subject": each.subject, "reason": each.reason} for each in refusals])
    elif refusals:
        show(format_table(("REFUSED", "WHY"), [(each.subject, each.reason) for each in refusals]))
    else:
        say("Nothing of this repository is refused.")


def _install(extra: Extra, yes: bool) -> None:
    """Run the command that installs ``extra``, once the user confirms it."""
    if is_installed(extra):
        say(f"The extra {extra!r} is installed.")
        return
    command = install_command(extra, find_installation())
    show(shlex.join(command))
    confirm("Run this command?", yes=yes, undone="nothing was installed")
    ended = asyncio.run(run_program(command, cwd=Path.cwd(), timeout_s=_INSTALL_S))
    if not ended.ok:
        why = ended.error_text or ended.text.strip()
        if ended.timed_out:
            why = f"it took longer than {_INSTALL_S:.0f} s"
        raise CockpitError(f"The extra {extra!r} was not installed: {why[-_MOST_REASON:]}")
    importlib.invalidate_caches()
    if not is_installed(extra):
        raise CockpitError(
            f"The command ended well, but {sys.executable} still lacks the extra {extra!r}. Run the command"
            " yourself and read its output."
        )
    say(f"Installed the extra {extra!r}.")


def _record(check: Check) -> dict[str, Any]:
    return {"name": check.name, "state": check.state, "found": check.detail, "mend": check.fix}


def _row(check: Check) -> tuple[str, str]:
    fix = f" → {check.fix}" if check.fix else ""
    return (f"{state_sign('check', check.state).sign} {check.name}", f"{check.detail}{fix}")
