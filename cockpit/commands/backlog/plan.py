"""``cockpit plan``: propose epics, stories, tasks and dependencies from a written plan."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, MODEL, examples, require_user_for_policy
from cockpit.commands.caller_rights import find_caller
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


@click.command(
    short_help="Turn a text or a written plan into tasks.",
    epilog=examples(
        'cockpit plan "add OAuth login with tests and docs"',
        "cockpit plan plan.md --check",
        "cockpit plan plan.md --edit",
        "cat plan.md | cockpit plan - --approve all",
    ),
)
@click.argument("source", metavar="FILE|TEXT|-")
@click.option("--edit", "in_editor", is_flag=True, help="Edit the plan in your editor first.")
@click.option("--check", is_flag=True, help="Show the result without proposing it.")
@click.option(
    "--approve",
    type=click.Choice(["ask", "reads", "all"]),
    callback=require_user_for_policy,
    help="With all, add the plan to the backlog at once. Default: ask you.",
)
@click.option(
    "--again", is_flag=True, help="Propose the plan even if the backlog contains it already."
)
@MODEL
@AS_JSON
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    source: str,
    in_editor: bool,
    check: bool,
    approve: str | None,
    again: bool,
    model: str | None,
    as_json: bool,
) -> None:
    """Turn free text or a written plan into a proposal of epics, stories and tasks.

    The source is a TEXT, a FILE or standard input (-). In a written plan headings become epics and
    stories, list items become tasks; (after #1), [bug], 3h, `src/a.py` and an "Acceptance:" line set fields
    of a task, without a model. A TEXT without list items goes to your model, which may ask you for context
    and proposes tasks; so does any source with --model. You approve the proposal as a whole; nothing is
    added to the backlog before. With the id of a pending plan, --edit replaces it by your edited version.
    """
    if check and (approve or again):
        raise WrongUse("--check proposes nothing. Leave --approve and --again out.")
    waiting = _find_pending(source)
    if waiting is not None and not in_editor:
        raise WrongUse(
            f"{source} is pending already. Change it with --edit, or decide it with `cockpit proposals`."
        )
    if waiting is not None:
        from cockpit.backlog.planning.propose_plan import editable

        text, _ = editable(waiting)
    else:
        text = _read_source(source)
        if model is not None or (not in_editor and _is_free_text(source, text)):
            if check or again or in_editor:
                raise WrongUse("--check, --edit and --again are for written plans. Leave them out.")
            ctx.exit(_plan_with_model(text, approve, model, as_json))
    keeping: AbstractContextManager[None] = nullcontext()
    if in_editor:
        from cockpit.app.external_editor import edit_text, editor_command, save_text_on_error

        text = edit_text(text, argv=editor_command(os.environ), suffix=".md")
        keeping = save_text_on_error(text, say)
    with keeping:
        if check:
            _check(text, as_json)
            return
        proposal, result = _propose(text, waiting, approve, again)
    _show(proposal, result, as_json)


def _is_free_text(source: str, text: str) -> bool:
    """Whether the source is a text, neither a file nor a written plan."""
    from cockpit.backlog.planning.parse_plan import read_plan
    from cockpit.backlog.planning.plan import PlanEmpty, PlanInvalid

    if source == "-" or text is not source:
        return False
    try:
        read_plan(text)
    except PlanEmpty:
        return bool(text.strip())
    except PlanInvalid:
        return False  # a written plan with a fault, which is named
    return False


def _plan_with_model(text: str, approve: str | None, model: str | None, as_json: bool) -> int:
    from cockpit.backlog.planning.propose_plan import plan_result
    from cockpit.commands.backlog.plan_with_model import plan_with_model

    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "A model plans for the user alone, not for the holder of a token. Run it without"
            " COCKPIT_TOKEN, or name a plan's file."
        )
    flags: dict[str, object] = {"[approval] policy": approve, "[model] name": model}
    session_id, proposal, code = asyncio.run(plan_with_model(text, flags, as_json=as_json))
    if proposal is not None:
        identity = proposal.proposal_id
        result = read_store(lambda connection: plan_result(connection, identity))
        _show(proposal, result, as_json, session_id=session_id)
    elif as_json:
        show_json({"session_id": session_id, "proposal_id": None})
    return int(code)


def _show(
    proposal: Proposal, result: PlanResult | None, as_json: bool, *, session_id: str = ""
) -> None:
    """Print a proposed plan, and how to decide it or what it added."""
    if as_json:
        show_json(_record(proposal, result) | ({"session_id": session_id} if session_id else {}))
        return
    show(f"{proposal.title}\n\n{str(proposal.body['body']).rstrip()}")
    for note in proposal.body["notes"]:
        show(f"! {note}")
    for name, value in proposal.body["fields"]:
        if name == "estimate":
            show(f"≈ {value}")
    if count := hidden(str(proposal.body["body"])):
        show(f"! It contains {pluralize(count, 'character')} that cannot be shown. Use --json.")
    _say_status(proposal, result)
    if session_id and result is None:
        say(
            f"discuss:  cockpit proposals discuss {proposal.proposal_id} --words '…', then"
            f" cockpit run --continue {session_id}"
        )


def _propose(
    text: str, waiting: Proposal | None, approve: str | None, again: bool
) -> tuple[Proposal, PlanResult | None]:
    place = find_project()
    settings = load_project_settings(place, {"[approval] policy": approve}).runtime
    ensure_root_token(place)

    def step(tx: Tx) -> tuple[Proposal, PlanResult | None]:
        from cockpit.backlog.planning.backlog_plan_target import APPROVAL_EFFECTS
        from cockpit.backlog.planning.plan import PLAN_ACTION
        from cockpit.backlog.planning.propose_plan import plan_result, propose
        from cockpit.loop.decisions.edit_action import revise_proposal

        who = find_caller(tx)
        if waiting is None:
            proposal = propose(tx, text, who, settings=settings, again=again)
        else:
            proposal = revise_proposal(
                tx,
                settings,
                APPROVAL_EFFECTS[PLAN_ACTION],
                waiting.proposal_id,
                waiting.shown_digest,
                text,
                editor=who,
            )
        return proposal, plan_result(tx.connection, proposal.proposal_id)

    with open_store(place) as store:
        return store.write_now(step)


def _check(text: str, as_json: bool) -> None:
    from cockpit.backlog.planning.parse_plan import read_plan
    from cockpit.backlog.planning.plan_source import plan_source
    from cockpit.backlog.task_type_names import read_names

    parsed = read_plan(text, read_names(find_project().home))
    if as_json:
        show_json({**parsed.body(), "notes": list(parsed.notes)})
        return
    show(f"{parsed.counted()}\n\n{plan_source(parsed).rstrip()}")
    for note in parsed.notes:
        show(f"! {note}")


def _say_status(proposal: Proposal, result: PlanResult | None) -> None:
    if result is not None:
        tasks = result.tasks
        ids = tasks[0] if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"
        say(f"\nAdded to the backlog: {', '.join((*result.epics, *result.stories, ids))}.")
        return
    identity, digest = proposal.proposal_id, proposal.shown_digest[:8]
    say(
        f"\nNothing was added yet. {identity} waits for your decision, here or on the screen.\n"
        f"approve:  cockpit proposals approve {identity} --shown {digest}\n"
        f"edit:     cockpit plan {identity} --edit\n"
        f"reject:   cockpit proposals reject {identity}"
    )


def _record(proposal: Proposal, result: PlanResult | None) -> dict[str, Any]:
    return {
        "proposal_id": proposal.proposal_id,
        "status": proposal.status,
        "title": proposal.title,
        "shown_digest": proposal.shown_digest,
        "plan": proposal.body["body"],
        "notes": list(proposal.body["notes"]),
        "taken": None if result is None else result.body(),
    }


def _find_pending(source: str) -> Proposal | None:
    """Return the pending plan with this id; None where ``source`` is not an id."""
    from cockpit.backlog.planning.plan import PLAN_ACTION
    from cockpit.core.errors import AlreadyDecided
    from cockpit.store.sessions import proposals

    if not _PROPOSAL.fullmatch(source) or Path(source).exists():
        return None
    proposal = read_store(lambda connection: proposals.load(connection, source))
    if proposal.kind != "action" or proposal.body.get("type") != PLAN_ACTION:
        raise WrongUse(f"{source} is not a plan. See `cockpit proposals {source}`.")
    if proposal.status != "pending":
        raise AlreadyDecided(f"{source} was {proposal.status} already and cannot be edited.")
    return proposal


def _read_source(source: str) -> str:
    if source == "-":
        return _require_utf8(sys.stdin.read(_MOST_BYTES), "Standard input")
    if "\n" in source or not (_is_file(source) or _FILE.fullmatch(source)):
        return _require_utf8(source, "The text")
    try:
        with Path(source).open(encoding="utf-8-sig") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise WrongUse(f"{source} is not UTF-8 text (byte {error.start}).") from error


def _require_utf8(text: str, origin: str) -> str:
    # Bytes that are not UTF-8 arrive as lone surrogates.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise WrongUse(f"{origin} is not UTF-8 text.")
    return text


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False  # too long or with characters that no file name has, so it is a text
