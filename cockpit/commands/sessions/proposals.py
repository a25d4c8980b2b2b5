"""``cockpit proposals``: list, show and decide proposals, from any process."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import click

from cockpit.access import user_presence
from cockpit.cli_options import SHOWN, examples
from cockpit.collections.collection import Listed
from cockpit.collections.work.proposals import COLLECTION
from cockpit.commands.collection_groups import make_group, read_view
from cockpit.commands.open_project import (
    WrongUse,
    find_project,
    load_project_settings,
    open_project_runtime,
    read_store,
)
from cockpit.commands.sessions.proposal_text import WIDTH, framed, proposal_text
from cockpit.commands.sessions.waiting_everywhere import (
    COLUMNS_ELSEWHERE,
    ElsewhereRow,
    read_everywhere,
)
from cockpit.commands.terminal import output_width, say, show
from cockpit.core.errors import Stale
from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.loop.permissions.question_form import AnswerInvalid, parse_answer
from cockpit.loop.permissions.waiting_permission import has_abandoned, load_newest
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains.worktrees import TYPES
from cockpit.store.sessions import outbox, sessions
from cockpit.store.sessions import proposals as stored
from cockpit.store.sessions.proposals import Proposal


def _read(every: bool, all_projects: bool) -> Listed[Any]:
    if all_projects:
        if every:
            raise click.UsageError("--all and --all-projects exclude each other.")
        return read_everywhere()
    if read_store(has_abandoned, empty=False):
        place = find_project()
        asyncio.run(
            _decide_in_runtime(
                place,
                load_project_settings(place).runtime,
                lambda runtime: runtime.withdraw_abandoned(),
            )
        )
    return read_view(COLLECTION, lambda view: COLLECTION.list_rows(view, every=every))


def _find(name: str) -> Proposal:
    return read_view(COLLECTION, lambda view: COLLECTION.find_row(view, name))


def _describe(proposal: Proposal) -> str:
    show(proposal_text(proposal, width=output_width() or WIDTH))
    if proposal.status == "pending":
        say(_say_how(proposal))
    return ""


def _say_how(proposal: Proposal) -> str:
    """Return the commands that decide a proposal."""
    command, name = "cockpit proposals", proposal.proposal_id
    lines = [""]
    if not proposal.body.get("questions"):
        lines.append(f"approve:  {command} approve {name} --shown {proposal.shown_digest[:8]}")
    elif proposal.body.get("form"):
        lines.append(f"answer:   {command} answer {name} ANSWER …")
    lines.append(f"discuss:  {command} discuss {name} --words '…'")
    lines.append(f"reject:   {command} reject {name} --reason '…'")
    if _is_editable(proposal):
        lines.append(f"edit:     {command} discuss {name} --edit")
    return "\n".join(lines)


proposals = make_group(
    COLLECTION,
    read=_read,
    columns=lambda rows: (
        COLUMNS_ELSEWHERE if isinstance(rows[0], ElsewhereRow) else COLLECTION.cells_of(rows)
    ),
    body=lambda row: row.body() if isinstance(row, ElsewhereRow) else COLLECTION.body(row),
    describe=_describe,
    filters=[
        click.option(
            "--all-projects", is_flag=True, help="List pending proposals of all your projects."
        )
    ],
)


@proposals.command(
    "approve",
    epilog=examples(
        "cockpit proposals approve p-1a2b3c --shown 5f0c9d21",
        "cockpit proposals approve p-1a2b3c --item file:src/a.py --item file:src/b.py",
    ),
)
@click.argument("proposal_id")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    help="Narrow a context request to this item. Repeat for more items.",
)
@click.option(
    "--always",
    is_flag=True,
    help="Allow the agent exactly this from now on: add a rule to your permissions.toml.",
)
@SHOWN
def approve(proposal_id: str, items: tuple[str, ...], always: bool, shown: str | None) -> None:
    """Approve a proposal.

    A proposal of high risk needs --shown with its digest. Permissions of external agents can be approved
    with --always; `cockpit trust rules` lists what is allowed so.
    """
    proposal = _find(proposal_id)
    if proposal.risk == "high" and not shown and proposal.status == "pending":
        raise Stale(
            f"{proposal_id} has high risk and needs its digest. Run `cockpit proposals {proposal_id}`"
            " and approve it with the --shown printed there."
        )
    narrowed = list(items) or None
    _decide(
        proposal,
        shown,
        lambda runtime, digest: runtime.approve(
            proposal_id, shown_digest=digest, narrowed=narrowed, always=always
        ),
    )


@proposals.command(
    "reject", epilog=examples("cockpit proposals reject p-1a2b3c --reason 'Keep the old name.'")
)
@click.argument("proposal_id")
@click.option("--reason", default="", metavar="TEXT", help="Send this reason to the agent.")
@SHOWN
def reject(proposal_id: str, reason: str, shown: str | None) -> None:
    """Reject a proposal."""
    _decide(
        _find(proposal_id),
        shown,
        lambda runtime, digest: runtime.reject(proposal_id, shown_digest=digest, reason=reason),
    )


@proposals.command(
    "discuss",
    epilog=examples(
        "cockpit proposals discuss p-1a2b3c --words 'Why not a smaller range?'",
        "cockpit proposals discuss p-1a2b3c --edit 'make test'",
    ),
)
@click.argument("proposal_id")
@click.option("--words", default="", metavar="TEXT", help="Send this message to the agent.")
@click.option(
    "--edit",
    "text",
    is_flag=False,
    flag_value="",
    metavar="[TEXT]",
    help="Propose this text of the action, or input of the permission, instead; or that of your editor.",
)
@SHOWN
def discuss(proposal_id: str, words: str, text: str | None, shown: str | None) -> None:
    """Discuss a proposal before deciding it.

    This ends the current revision. The agent's next revision refers back to it. With --edit the next
    revision is yours: it is judged again, and nothing runs before you approve it.
    """
    proposal = _find(proposal_id)
    if text is not None:
        if words:
            raise WrongUse("--words and --edit exclude each other.")
        _edit(proposal_id, _digest(proposal, shown), text or None)
        return
    _decide(
        proposal,
        shown,
        lambda runtime, digest: runtime.discuss(proposal_id, shown_digest=digest, words=words),
    )


@proposals.command(
    "answer",
    short_help="Answer what an agent asks.",
    epilog=examples(
        "cockpit proposals answer p-1a2b3c 2",
        "cockpit proposals answer p-1a2b3c 'SQLite' '1,3' 'as in the last release'",
    ),
)
@click.argument("proposal_id")
@click.argument("answers", nargs=-1, required=True)
@SHOWN
def answer(proposal_id: str, answers: tuple[str, ...], shown: str | None) -> None:
    """Answer the questions of an external agent.

    Give one ANSWER for each question, in order: the number or the name of an option, several with
    commas where more than one may be chosen, or a text of your own. An empty ANSWER leaves a question out.
    `cockpit proposals PROPOSAL` numbers the options.
    """
    proposal = _find(proposal_id)
    questions = proposal.body.get("questions") or []
    if questions and len(answers) != len(questions):
        raise AnswerInvalid(
            f"{proposal_id} has {pluralize(len(questions), 'question')}; give an ANSWER for each, in order."
        )
    given = [
        parse_answer(question, text) for question, text in zip(questions, answers, strict=False)
    ]
    _decide(
        proposal,
        shown,
        lambda runtime, digest: runtime.answer(proposal_id, shown_digest=digest, answers=given),
    )


def _edit(proposal_id: str, digest: str, text: str | None) -> None:
    """Propose the user's text, or that of their editor, as the next revision."""
    place = find_project()
    settings = load_project_settings(place).runtime
    revision_id = asyncio.run(_edit_in_runtime(place, settings, proposal_id, digest, text))
    if revision_id is None:
        say("Nothing was changed.")
        return
    say("\n".join(framed(f"{revision_id} revises {proposal_id}", _find(revision_id).title)))
    say(f"show:     cockpit proposals {revision_id}")


async def _edit_in_runtime(
    place: ProjectPaths, settings: RuntimeSettings, proposal_id: str, digest: str, text: str | None
) -> str | None:
    """Propose the user's text; returns the id of the revision, or None if it is the same text."""
    from cockpit.app.external_editor import edit_text, editor_command, save_text_on_error

    user_presence.require_no_agent("changing a proposal")
    async with open_project_runtime(place, settings) as runtime:
        before, suffix = await runtime.editable(proposal_id)
        if text is not None:
            if text == before:
                return None
            return await runtime.edit(proposal_id, shown_digest=digest, text=text)
        text = await asyncio.to_thread(
            edit_text, before, argv=editor_command(os.environ), suffix=suffix
        )
        if text == before:
            return None
        with save_text_on_error(text, say, suffix=suffix):
            return await runtime.edit(proposal_id, shown_digest=digest, text=text)


def _decide(
    proposal: Proposal, shown: str | None, decide: Callable[[Any, str], Awaitable[None]]
) -> None:
    """Decide a proposal with the digest that was shown, and print what came of it."""
    digest, place = _digest(proposal, shown), find_project()
    settings = load_project_settings(place).runtime
    asyncio.run(_decide_in_runtime(place, settings, lambda runtime: decide(runtime, digest)))
    decided = read_store(lambda connection: load_newest(connection, proposal.proposal_id))
    verb = "answered" if decided.body.get("answers") else decided.status
    title = decided.title
    if decided.narrowed:
        title += f", narrowed to {', '.join(decided.narrowed)}"
    say("\n".join(framed(f"{decided.proposal_id} is {verb}", title)))
    for line in read_store(lambda connection: _follow_up(connection, decided)):
        say(line)


def _follow_up(connection: sqlite3.Connection, proposal: Proposal) -> list[str]:
    """Return what the decision over an agent's worktree came to; nothing for other proposals."""
    if proposal.body.get("type") not in TYPES:
        return []
    if proposal.status == "approved":
        return [
            receipt.summary
            for action in outbox.select_for_session(connection, proposal.session_id)
            if action.proposal_id == proposal.proposal_id
            for receipt in outbox.select_receipts(connection, action.action_id)[-1:]
        ]
    if proposal.status == "discussed":
        session = sessions.load(connection, proposal.session_id)
        command = f"cockpit run --continue {session.session_id}"
        if session.pid and is_process_alive(session.pid):
            return [
                "The agent is open on a screen: it reads it with your next message there. Or close that"
                f" screen and run: {command}"
            ]
        return [
            f"Its session is {session.status}. The agent reads it when you resume it: {command}"
        ]
    return [
        f"Nothing is removed. {each.proposal_id} waits: {each.title}"
        f"\nshow:     cockpit proposals {each.proposal_id}"
        for each in stored.select_for_session(connection, proposal.session_id)
        if each.status == "pending" and each.body.get("type") in TYPES
    ]


async def _decide_in_runtime(
    place: ProjectPaths, settings: RuntimeSettings, decide: Callable[[Any], Awaitable[None]]
) -> None:
    async with open_project_runtime(place, settings) as runtime:
        await decide(runtime)


def _digest(proposal: Proposal, shown: str | None) -> str:
    """Return the full digest for the decision; ``shown`` may be its first 8 or more characters."""
    if shown is None:
        return proposal.shown_digest
    if len(shown) < 8 or not proposal.shown_digest.startswith(shown):
        raise Stale(
            f"{proposal.proposal_id} does not have the digest {shown}. Nothing was decided. Look at it"
            f" again with `cockpit proposals {proposal.proposal_id}`."
        )
    return proposal.shown_digest


def _is_editable(proposal: Proposal) -> bool:
    if proposal.kind == "action":
        return not proposal.body.get("agent")  # what an agent did is not the text of one action
    return bool(proposal.body.get("editable"))
