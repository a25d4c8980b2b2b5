"""``cockpit plan``: a written plan becomes epics, stories, tasks and dependencies, approved as a whole."""

from __future__ import annotations

import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import TOKEN
from cockpit.commands.backlog.call_work_tools import AS_JSON
from cockpit.commands.command_caller import find_caller
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.text import pluralize
from widgets.text.clean import hidden

if TYPE_CHECKING:
    from cockpit.backlog.planning.propose_plan import PlanResult
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal

_PROPOSAL = re.compile(r"p-[0-9a-z]{6,16}")
_FILE = re.compile(r"\S+\.(?:md|markdown|txt)|\S*/\S*", re.IGNORECASE)
_MOST_BYTES = 1_000_000


@click.command(short_help="Turn a written plan into epics, stories and tasks.")
@click.argument("source", metavar="FILE|TEXT|-")
@click.option("--edit", "in_editor", is_flag=True, help="Open it in your editor first.")
@click.option("--check", is_flag=True, help="Show what it would become, and propose nothing.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "trusted", "reads", "all"]),
    help="all: take it in at once. Default: it waits for you.",
)
@click.option("--again", is_flag=True, help="Even if this very plan is in the backlog already.")
@TOKEN
@AS_JSON
def plan(
    source: str,
    in_editor: bool,
    check: bool,
    approve: str | None,
    again: bool,
    token: str,
    as_json: bool,
) -> None:
    """Propose what FILE, TEXT or standard input (-) plans, for you to approve as a whole.

    Headings are epics and stories, items of lists are tasks; (after #1), [bug], 3h, `src/a.py` and an
    "Acceptance:" line say more of a task. No model is asked. With the id of a plan that waits, --edit
    puts what you make of it in its place. Nothing is in the backlog before it is approved.
    """
    if check and (approve or again):
        raise WrongUse("--check proposes nothing; leave --approve and --again out.")
    waiting = _waiting(source)
    if waiting is not None and not in_editor:
        raise WrongUse(
            f"{source} waits already; --edit changes it, `cockpit proposals` decides it."
        )
    text = _text(source) if waiting is None else str(waiting.body["payload"]["markdown"])
    keeping: AbstractContextManager[None] = nullcontext()
    if in_editor:
        from cockpit.app.external_editor import kept_if_refused

        text = _edited(text)
        keeping = kept_if_refused(text, say)
    with keeping:
        if check:
            _check(text, as_json)
            return
        made, became = _proposed(text, waiting, token, approve, again)
    if as_json:
        show_json(_record(made, became))
        return
    show(f"{made.title}\n\n{str(made.body['body']).rstrip()}")
    for note in made.body["notes"]:
        show(f"! {note}")
    if count := hidden(str(made.body["payload"]["markdown"])):
        show(f"! It holds {pluralize(count, 'character')} that cannot be shown: see --json.")
    _say_how_it_stands(made, became)


def _proposed(
    text: str, waiting: Proposal | None, token: str, approve: str | None, again: bool
) -> tuple[Proposal, PlanResult | None]:
    place = find_project()
    settings = load_project_settings(place, {"[approval] policy": approve}).runtime
    ensure_root_token(place)

    def step(tx: Tx) -> tuple[Proposal, PlanResult | None]:
        from cockpit.access.token_scopes import NotAllowed
        from cockpit.backlog.approved_plans import COMMISSIONS
        from cockpit.backlog.planning.plan import PLAN_ACTION
        from cockpit.backlog.planning.propose_plan import plan_result, propose
        from cockpit.loop.decisions.edit_action import revise

        who = find_caller(tx, token)
        if waiting is None:
            made = propose(tx, text, who, policy=settings.policy, again=again)
        elif who.kind != "person":
            raise NotAllowed(f"{who.namespace} may not edit this: only the person in command does.")
        else:
            made = revise(
                tx, COMMISSIONS[PLAN_ACTION], waiting.proposal_id, waiting.shown_digest, text
            )
        return made, plan_result(tx.connection, made.proposal_id)

    with open_store(place) as store:
        return store.write_now(step)


def _check(text: str, as_json: bool) -> None:
    from cockpit.backlog.planning.parse_plan import read_plan
    from cockpit.backlog.planning.plan_markdown import plan_markdown

    found = read_plan(text)
    if as_json:
        show_json({**found.body(), "notes": list(found.notes)})
        return
    show(f"{found.counted()}\n\n{plan_markdown(found).rstrip()}")
    for note in found.notes:
        show(f"! {note}")


def _say_how_it_stands(made: Proposal, became: PlanResult | None) -> None:
    if became is not None:
        tasks = became.tasks
        ids = tasks[0] if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"
        say(f"\nIt is in the backlog: {', '.join((*became.epics, *became.stories, ids))}.")
        return
    identity, digest = made.proposal_id, made.shown_digest[:8]
    say(
        f"\nNothing is in the backlog yet; {identity} waits for you, on the screen as well.\n"
        f"approve:  cockpit proposals approve {identity} --shown {digest}\n"
        f"edit:     cockpit plan {identity} --edit\n"
        f"reject:   cockpit proposals reject {identity}"
    )


def _record(made: Proposal, became: PlanResult | None) -> dict[str, Any]:
    return {
        "proposal_id": made.proposal_id,
        "status": made.status,
        "title": made.title,
        "shown_digest": made.shown_digest,
        "plan": made.body["body"],
        "notes": list(made.body["notes"]),
        "taken": None if became is None else became.body(),
    }


def _waiting(source: str) -> Proposal | None:
    """The plan that waits under this id; None where ``source`` is no id."""
    from cockpit.backlog.planning.plan import PLAN_ACTION
    from cockpit.core.errors import AlreadyDecided
    from cockpit.store.sessions import proposals

    if not _PROPOSAL.fullmatch(source) or Path(source).exists():
        return None
    found = read_store(lambda connection: proposals.load(connection, source))
    if found.kind != "action" or found.body.get("type") != PLAN_ACTION:
        raise WrongUse(f"{source} is no plan; `cockpit proposals show {source}` says what it is.")
    if found.status != "pending":
        raise AlreadyDecided(f"{source} was {found.status} already: there is nothing to edit.")
    return found


def _text(source: str) -> str:
    if source == "-":
        return _readable(sys.stdin.read(_MOST_BYTES), "Standard input")
    if "\n" in source or not (_is_file(source) or _FILE.fullmatch(source)):
        return _readable(source, "The text")
    try:
        with Path(source).open(encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise WrongUse(f"{source} is not UTF-8 text (byte {error.start}).") from error


def _readable(text: str, what: str) -> str:
    # Bytes that are no UTF-8 come in as lone surrogates.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise WrongUse(f"{what} is not UTF-8 text.")
    return text


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False  # too long for a name, or with characters that none has: it is a text


def _edited(text: str) -> str:
    from cockpit.app.external_editor import command, edited

    return edited(text, argv=command(os.environ), suffix=".md")
