"""``cockpit profile propose|import|approve|reject|rollback``: shifting attention, from any process.

What is refused prints its code on stdout, says why on stderr, and ends with 3. Who calls is the person
at the terminal, or the namespace of the token that they hold. Source: RFC-003 §10.3, §11.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from cockpit.cli_options import TOKEN
from cockpit.commands.command_caller import find_caller
from cockpit.commands.exit_codes import Exit, exit_code_of_error
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import CockpitError
from cockpit.store.context import profiles
from cockpit.store.context.profile_model import Profile

if TYPE_CHECKING:
    from cockpit.loop.decisions.profile_change_results import Outcome

LARGEST_FILE = 1_000_000
JSON = click.option("--json", "as_json", is_flag=True, help="What became of it, as JSON.")
FILE = click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
SHOWN = click.option(
    "--shown",
    metavar="DIGEST",
    help="The digest of what you saw (the first 8 characters do): refused when it is not that.",
)


@click.command("propose")
@FILE
@click.option("--profile", "profile_id", default="", metavar="ID", help="Change that profile.")
@TOKEN
@JSON
def propose(file: Path, profile_id: str, token: str, as_json: bool) -> None:
    """Propose the change in FILE ('-': standard input), for a person to decide.

    FILE holds a JSON object: base_profile_version, effective_waves, and any of bands, rules,
    total_token_budget and reason. What it leaves out stays as it is.
    """
    payload = _content(file)
    _proposed(lambda base: payload, profile_id, token, as_json)


@click.command("import")
@FILE
@click.option("--profile", "profile_id", default="", metavar="ID", help="Change that profile.")
@click.option(
    "--waves",
    type=click.IntRange(min=0),
    default=0,
    help="Hold for so many waves. Default: for good.",
)
@click.option("--reason", default="imported", metavar="WORDS", help="Why, for who decides.")
@TOKEN
@JSON
def import_profile(
    file: Path, profile_id: str, waves: int, reason: str, token: str, as_json: bool
) -> None:
    """Propose that the profile becomes what FILE, an export, says. The guard applies."""
    from cockpit.orient.profile_changes.profile_json import imported

    payload = _content(file)
    _proposed(
        lambda base: imported(payload, base, waves=waves, reason=reason),
        profile_id,
        token,
        as_json,
    )


@click.command("approve")
@click.argument("proposal_id")
@SHOWN
@TOKEN
@JSON
def approve(proposal_id: str, shown: str | None, token: str, as_json: bool) -> None:
    """Approve the change PROPOSAL_ID: it is the current version at once."""
    _decided(proposal_id, "approved", shown, token, as_json)


@click.command("reject")
@click.argument("proposal_id")
@click.option("--reason", default="", metavar="WORDS", help="Why, for the agent.")
@SHOWN
@TOKEN
@JSON
def reject(proposal_id: str, reason: str, shown: str | None, token: str, as_json: bool) -> None:
    """Reject the change PROPOSAL_ID: attention stays as it is."""
    _decided(proposal_id, "rejected", shown, token, as_json, reason)


@click.command("rollback")
@click.argument("profile_id", default="")
@click.option(
    "--to",
    type=click.IntRange(min=1),
    metavar="VERSION",
    help="Back to that version, not to the one before the adaptation.",
)
@TOKEN
@JSON
def rollback(profile_id: str, to: int | None, token: str, as_json: bool) -> None:
    """End the adaptation of PROFILE_ID now: the next wave begins as before it."""
    from cockpit.loop.decisions.profile_change_expiry import roll_back
    from cockpit.orient.profile_changes.profile_json import document

    place = find_project()
    settings = load_project_settings(place).runtime

    def step(tx: Any) -> Profile:
        name = profile_id or profiles.ensure_default(tx, settings.token_budget).profile_id
        return roll_back(tx, settings, name, find_caller(tx, token), to=to)

    with _coded(as_json), open_store(place) as store:
        made = store.write_now(step)
    if as_json:
        show_json(document(made))
    else:
        show(f"{made.profile_id} version {made.version} holds now.")


COMMANDS = (propose, import_profile, approve, reject, rollback)


def _proposed(
    payload: Callable[[Profile], Any], profile_id: str, token: str, as_json: bool
) -> None:
    from cockpit.loop.decisions import profile_change_service
    from cockpit.orient.profile_changes.change_record import ChangeRefused

    place = find_project()
    settings = load_project_settings(place).runtime
    ensure_root_token(place)

    def step(tx: Any) -> Outcome:
        who = find_caller(tx, token)
        base = profiles.ensure_default(tx, settings.token_budget)
        if profile_id:
            base = profiles.load_current(tx.connection, profile_id)
        try:
            asked = payload(base)
        except ChangeRefused as error:
            raise CockpitError(f"{error.code}: {error}", code=error.code) from error
        return profile_change_service.propose(
            tx,
            settings,
            asked,
            who,
            profile_id=base.profile_id,
            proposal_id=tx.ids.new("p"),
            deadline_s=settings.limits.deadline_s,
        )

    with _coded(as_json), open_store(place) as store:
        outcome = store.write_now(step)
    _tell(outcome, as_json)
    if outcome.status == "pending" and not as_json:
        say(
            f"\nlook:     cockpit proposals show {outcome.proposal_id}\n"
            f"approve:  cockpit profile approve {outcome.proposal_id}\n"
            f"reject:   cockpit profile reject {outcome.proposal_id} --reason '…'"
        )
    outcome.granted()


def _decided(
    proposal_id: str,
    verdict: Literal["approved", "rejected"],
    shown: str | None,
    token: str,
    as_json: bool,
    reason: str = "",
) -> None:
    from cockpit.loop.decisions import profile_change_service

    place = find_project()
    settings = load_project_settings(place).runtime

    def step(tx: Any) -> Outcome:
        return profile_change_service.decide(
            tx,
            settings,
            proposal_id,
            verdict,
            find_caller(tx, token),
            shown_digest=_digest(tx, proposal_id, shown),
            reason=reason,
        )

    with _coded(as_json), open_store(place) as store:
        outcome = store.write_now(step)
    _tell(outcome, as_json)
    outcome.granted()


def _tell(outcome: Outcome, as_json: bool) -> None:
    """The proposal, where it stands, and the guard's verdict: on stdout, whatever it is."""
    from cockpit.orient.profile_changes.guard import passed

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
                "verdict": verdict or passed(),
            }
        )
        return
    show(
        f"{outcome.proposal_id}  {outcome.status}"
        + (f"  version {outcome.version} holds now" if outcome.version else "")
    )
    for entry in verdict:
        show(f"✘ {entry['code']}  {entry['message']}")
    if not verdict and outcome.status == "pending":
        show("✔ the guard lets it through")


@contextmanager
def _coded(as_json: bool) -> Iterator[None]:
    """A refusal that leaves nothing behind prints its code as well."""
    try:
        yield
    except CockpitError as error:
        if exit_code_of_error(error) is Exit.REFUSED:
            if as_json:
                show_json({"status": "refused", "code": error.code, "message": str(error)})
            else:
                show(f"✘ {error.code}")
        raise


def _digest(tx: Any, proposal_id: str, shown: str | None) -> str | None:
    """The digest that the decision names: the whole one when ``shown`` begins it."""
    from cockpit.store.sessions import proposals

    if shown is None:
        return None
    whole = proposals.load(tx.connection, proposal_id).shown_digest
    return whole if len(shown) >= 8 and whole.startswith(shown) else shown


def _content(file: Path) -> bytes:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(LARGEST_FILE)
        with file.open("rb") as stream:
            return stream.read(LARGEST_FILE)
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror or error}.") from error
