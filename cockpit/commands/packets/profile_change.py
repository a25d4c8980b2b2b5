"""``cockpit profile propose`` and ``rollback``: change orientation profiles.

A refusal prints its code on stdout and the reason on stderr, and ends with 3. The caller is the user,
or the principal of a token. Specified in ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import find_caller, find_user
from cockpit.commands.exit_codes import Exit, exit_code_of_error
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import CockpitError, NotFound
from cockpit.store.context import profiles
from cockpit.store.context.profile_model import Profile

if TYPE_CHECKING:
    from cockpit.loop.decisions.decision_outcome import DecisionOutcome

LARGEST_FILE = 1_000_000
PROFILE = click.option(
    "--profile",
    "profile_id",
    default="",
    metavar="ID",
    help="Use this profile. Default: that of this project's token budget.",
)


@click.command(
    "propose",
    epilog=examples(
        "cockpit profile propose change.json",
        "cockpit profile propose profile.json --waves 10",
        "cockpit profile propose --suggested --dry-run",
    ),
)
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path), required=False)
@PROFILE
@click.option(
    "--waves",
    type=click.IntRange(min=0),
    default=0,
    help="Apply an exported profile for this many waves. Default: permanently.",
)
@click.option(
    "--reason",
    default="imported",
    metavar="TEXT",
    help="Record this reason for an exported profile.",
)
@click.option("--suggested", is_flag=True, help="Propose what feedback suggests, without FILE.")
@click.option("--dry-run", is_flag=True, help="Print what feedback suggests, and propose nothing.")
@AS_JSON
def propose(
    *,
    file: Path | None,
    profile_id: str,
    waves: int,
    reason: str,
    suggested: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Propose a change, or an exported profile.

    FILE (- for standard input) is a JSON object: base_profile_version, effective_waves, and any of
    bands{NAME: {min_tokens, target_tokens, max_tokens}}, rules[], total_token_budget and reason. Fields
    that it leaves out stay the same. Or it is a whole profile, as `cockpit profile current --json` prints it.
    What is suggested gives more weight to sources that packets dropped and agents asked for, and less to
    those that took their room. The guard checks it, and you decide the proposal with `cockpit proposals`.
    """
    from cockpit.loop.decisions.propose_profile_change import propose_profile_change
    from cockpit.orient.profile_changes.change_record import ChangeRefused
    from cockpit.orient.profile_changes.profile_json import import_profile

    if suggested == (file is not None):
        raise click.UsageError("Name a FILE, or pass --suggested.")
    if dry_run and not suggested:
        raise click.UsageError("--dry-run is for --suggested.")
    place = find_project()
    settings = load_project_settings(place).runtime
    if file is not None:
        text = _read_file(file)
    else:
        suggestion = _suggest(
            profile_id or profiles.initial_profile(settings.token_budget).profile_id
        )
        if suggestion is None:
            say("Nothing to suggest. No source was missed often enough with this version.")
            return
        if dry_run:
            show_json(suggestion)
            say(suggestion["reason"])
            return
        text = json.dumps(suggestion).encode()
    ensure_root_token(place)

    def step(tx: Any) -> DecisionOutcome:
        who = find_caller(tx)
        base = profiles.ensure_default(tx, settings.token_budget)
        if profile_id:
            base = profiles.load_current(tx.connection, profile_id)
        try:
            change = (
                import_profile(text, base, waves=waves, reason=reason)
                if _is_exported(text)
                else text
            )
        except ChangeRefused as error:
            raise CockpitError(f"{error.code}: {error}", code=error.code) from error
        return propose_profile_change(
            tx,
            settings,
            change,
            who,
            profile_id=base.profile_id,
            proposal_id=tx.ids.new("p"),
            deadline_s=settings.limits.deadline_s,
        )

    with _print_refusal_code(as_json), open_store(place) as store:
        outcome = store.write_now(step)
    _print_outcome(outcome, as_json)
    if outcome.status == "pending" and not as_json:
        say(
            f"\nlook:     cockpit proposals {outcome.proposal_id}\n"
            f"approve:  cockpit proposals approve {outcome.proposal_id}\n"
            f"reject:   cockpit proposals reject {outcome.proposal_id} --reason '…'"
        )
    outcome.raise_if_refused()


def _suggest(profile_id: str) -> dict[str, Any] | None:
    """Return the change that the feedback of the last waves suggests. Raises ``NotFound``."""
    from cockpit.learn.suggest_weights import suggest_changes
    from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
    from cockpit.orient.profile_changes.guard import CAPABILITY, CRITICAL

    def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        if not profiles.select_versions(connection, profile_id):
            raise NotFound(f"No profile {profile_id} yet. The first session creates it.")
        # Within the narrowest limits, so that every principal may propose it.
        current = profiles.load_current(connection, profile_id)
        return suggest_changes(connection, current, AGENT_LIMITS, (*CRITICAL, *CAPABILITY))

    return next(iter(read_store(read)), None)


def _is_exported(text: bytes) -> bool:
    """Whether a document is a whole profile: a change names its bands, an export lists them."""
    try:
        return isinstance(json.loads(text).get("bands"), list)
    except (ValueError, AttributeError, RecursionError):
        return False  # refused with its fault, as a change


@click.command(
    "rollback", epilog=examples("cockpit profile rollback", "cockpit profile rollback --to 3")
)
@PROFILE
@click.option(
    "--to",
    type=click.IntRange(min=1),
    metavar="VERSION",
    help="Return to this version. Default: the version before the temporary change.",
)
@AS_JSON
def rollback(profile_id: str, to: int | None, as_json: bool) -> None:
    """Roll back a temporary profile change.

    The next wave uses the earlier version again.
    """
    from cockpit.loop.decisions.profile_change_expiry import roll_back_profile
    from cockpit.orient.profile_changes.profile_json import profile_document

    place = find_project()
    settings = load_project_settings(place).runtime

    def step(tx: Any) -> Profile:
        name = profile_id or profiles.ensure_default(tx, settings.token_budget).profile_id
        return roll_back_profile(tx, settings, name, find_user(tx, "rolling back a profile"), to=to)

    with _print_refusal_code(as_json), open_store(place) as store:
        restored = store.write_now(step)
    if as_json:
        show_json(profile_document(restored))
    else:
        show(f"{restored.profile_id} version {restored.version} is the current version.")


def _print_outcome(outcome: DecisionOutcome, as_json: bool) -> None:
    """Print the proposal, its status and the verdict of the guard on stdout."""
    from cockpit.orient.profile_changes.guard import passed_checks

    verdict = [
        {"code": refusal.code, "ok": False, "message": refusal.message}
        for refusal in outcome.refusals
    ]
    if as_json:
        show_json(
            {
                "proposal_id": outcome.proposal_id,
                "status": outcome.status,
                "version": outcome.version,
                "code": outcome.refusals[0].code if outcome.refusals else None,
                "verdict": verdict or passed_checks(),
            }
        )
        return
    show(
        f"{outcome.proposal_id}  {outcome.status}"
        + (f"  version {outcome.version} is the current version" if outcome.version else "")
    )
    for entry in verdict:
        show(f"✗ {entry['code']}  {entry['message']}")
    if not verdict and outcome.status == "pending":
        show("✔ the guard allows it")


@contextmanager
def _print_refusal_code(as_json: bool) -> Iterator[None]:
    """Print the code of a refusal that stores no proposal."""
    try:
        yield
    except CockpitError as error:
        if exit_code_of_error(error) is Exit.REFUSED:
            if as_json:
                show_json({"status": "refused", "code": error.code, "message": str(error)})
            else:
                show(f"✗ {error.code}")
        raise


def _read_file(file: Path) -> bytes:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(LARGEST_FILE)
        with file.open("rb") as stream:
            return stream.read(LARGEST_FILE)
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror or error}.") from error
