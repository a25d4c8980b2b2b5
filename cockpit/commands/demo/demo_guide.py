"""The demo's guide: what to press next, told line by line as the journal grows.

A projection like any other: rows in, lines out, nothing kept elsewhere. The lines are notices of the
session that they are about; the model never reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import messages

BUG_WORDS = "fix the bug: 2 kg costs 6.99, not 5.49"
"""What starts the demo's second task."""

DISCUSS_WORDS = "only parcel/client.py and its callers, please"
"""What the demo says about the first context request."""


class Guide:
    """Gives the line that a row calls for. Rows go in once each, in the journal's order."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._told: set[tuple[str, str]] = set()

    def line(self, row: Row) -> tuple[str, str] | None:
        """(name of the step, words) when this row is a step of the demo; each step is told once."""
        if row.action == Action.SESSION_CREATED:
            self._types[row.session_id] = str(row.raw_detail()["task_type"])
        task = self._types.get(row.session_id, "")
        step = _step("review" if task == "review_pr" else "bug", row.action, row.raw_detail())
        if not step or (row.session_id, step) in self._told:
            return None
        self._told.add((row.session_id, step))
        return step, LINES[step]


def guide_line(rows: list[Row]) -> str:
    """The last line that ``rows``, from the journal's first on, call for; '' before any."""
    guide = Guide()
    told = [line for row in rows if (line := guide.line(row)) is not None]
    return told[-1][1] if told else ""


async def guide(store: Store) -> None:
    """Follow the journal and put the lines into it, until cancelled. Told again, nothing doubles."""
    teller = Guide()
    async for rows in follow(store):
        for row in rows:
            found = teller.line(row)
            if found is not None:
                await store.write(_notice(row.session_id, *found))


def _notice(session_id: str, step: str, words: str) -> Any:
    def write(tx: Tx) -> None:
        messages.complete(
            tx,
            session_id=session_id,
            role="notice",
            text=words,
            message_id=f"m-guide-{session_id}-{step}",
        )

    return write


def _step(task: str, action: str, detail: Mapping[str, Any]) -> str:
    """The name of the step that a row of this kind is; '' for none."""
    match action:
        case Action.PROPOSAL_CREATED if detail["kind"] == "context":
            revised = ".again" if detail["revises"] else ""
            return f"{task}.context{revised}"
        case Action.PROPOSAL_CREATED:
            name = f"{task}.{detail['body']['type']}"
            return name if name in LINES else ""
        case Action.PROPOSAL_DISCUSSED if not detail["words"]:
            return f"{task}.discussed"
        case Action.SESSION_COMPLETED:
            return f"{task}.completed"
        case _:
            return ""


LINES: Mapping[str, str] = {
    "review.context": (
        "GUIDE 1/8  The agent asks before it reads anything; under Proposals stands each item with"
        " its tokens. Press Escape: you want to talk first."
    ),
    "review.discussed": (
        "GUIDE 2/8  Nothing was read. Say what is on your mind, for example:"
        f" {DISCUSS_WORDS} – and press Enter."
    ),
    "review.context.again": (
        "GUIDE 3/8  The agent asks for less, and the request says what changed. Press Enter: you"
        " approve, and only now it is read."
    ),
    "review.write_file": (
        "GUIDE 4/8  The review is ready, shown as it will be written; F4 gives it the whole screen."
        " Read it, then press Enter (and y, where a second key is asked for)."
    ),
    "review.completed": (
        f"GUIDE 5/8  The review is in .cockpit/reviews. Now a bug. Type: {BUG_WORDS} – then press F7,"
        " which makes a new task of it, and Enter."
    ),
    "bug.context": (
        "GUIDE 6/8  A script speaks here instead of a model; all that it does is real. Look at what"
        " it wants to read, then press Enter."
    ),
    "bug.context.again": "GUIDE 6/8  A smaller request. Enter approves it.",
    "bug.discussed": "GUIDE  Nothing happened. Say what is on your mind, then press Enter.",
    "bug.edit_file": (
        "GUIDE 7/8  An edit is shown as the diff that will be written, byte for byte. Enter writes"
        " it; so with the fix that follows."
    ),
    "bug.run": (
        "GUIDE 7/8  A command is shown as it will run: words, folder, sandbox, time. The new tests"
        " should fail at first. Press Enter."
    ),
    "bug.git_commit": "GUIDE 8/8  Exactly these files are committed, with this message. Press Enter.",
    "bug.completed": (
        "GUIDE  That is all. Leave with Ctrl+D, then try your own repository: cockpit review"
        " main..HEAD"
    ),
}
"""By step, what the guide says."""
