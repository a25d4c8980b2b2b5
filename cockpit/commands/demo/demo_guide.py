"""The demo's guide: lines that say what to press next, derived from the journal.

The lines are notices of the session that they are about; the model never reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.details.proposals import ProposalCreated, ProposalDecided
from cockpit.store.journal.details.sessions import SessionCompleted, SessionCreated, SessionWaiting
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import messages

BUG_WORDS = "fix the bug: 2 kg costs 6.99, not 5.49"
"""The message that starts the demo's second task."""

DISCUSS_WORDS = "only parcel/client.py and its callers, please"
"""The demo's message about the first context request."""


class Guide:
    """Returns the line for a row. It takes each row once, in the journal's order."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._shown: set[tuple[str, str]] = set()

    def line(self, row: Row) -> tuple[str, str] | None:
        """Return (name of the step, line) where the row is a new step of the demo, else None."""
        if isinstance(created := row.detail, SessionCreated):
            self._types[row.session_id] = created.task_type
        task = self._types.get(row.session_id, "")
        step = _step("review" if task == "review_pr" else "bug", row.detail)
        if step.endswith(".context") and (row.session_id, step) in self._shown:
            step += ".again"
        if not step or (row.session_id, step) in self._shown:
            return None
        self._shown.add((row.session_id, step))
        return step, LINES[step]


async def guide(store: Store) -> None:
    """Follow the journal and add the lines as notices, until cancelled. A line is never added twice."""
    guide_lines = Guide()
    async for rows in follow(store):
        for row in rows:
            line = guide_lines.line(row)
            if line is not None:
                await store.write(_notice(row.session_id, *line))


def _notice(session_id: str, step: str, text: str) -> Any:
    def write(tx: Tx) -> None:
        messages.complete(
            tx,
            session_id=session_id,
            role="notice",
            text=text,
            message_id=f"m-guide-{session_id}-{step}",
        )

    return write


def _step(task: str, detail: Detail) -> str:
    """Return the name of the step that an event is; ``""`` for none."""
    match detail:
        case ProposalCreated(kind="context"):
            return f"{task}.context"
        case ProposalCreated():
            name = f"{task}.{detail.shown().type}"
            return name if name in LINES else ""
        case ProposalDecided(status="discussed", reason=""):
            return f"{task}.discussed"
        case SessionCompleted(status="done"):
            return f"{task}.completed"
        case SessionCompleted():
            return f"{task}.ended"
        case SessionWaiting(for_="person", why="your turn"):
            return f"{task}.question"
        case _:
            return ""


LINES: Mapping[str, str] = {
    "review.context": (
        "GUIDE 1/7  The agent asks before it reads anything. Proposals lists each item with its"
        " tokens. Discuss it first: press Escape, type a message, for example:"
        f" {DISCUSS_WORDS} – and press Enter. A second Escape would take it back."
    ),
    "review.discussed": "GUIDE  Nothing was read. Type a message, then press Enter.",
    "review.context.again": (
        "GUIDE 2/7  The agent asks for less, and the request shows what changed. Press Enter to"
        " approve it. Only then it is read."
    ),
    "review.write_file": (
        "GUIDE 3/7  The review is ready, shown as it will be written. Enter reads on to its end, and"
        " approves it there (with y, where it asks for a second key). F4 shows it full screen."
    ),
    "review.question": (
        "GUIDE  Here rules answer, not a model, and they follow simple words. Type, for example:"
        f" {DISCUSS_WORDS} – and press Enter."
    ),
    "review.ended": (
        f"GUIDE  This ended without a review. Continue it with words such as: {DISCUSS_WORDS} – or go on"
        f" with a bug. Type: {BUG_WORDS} – then press F7, which makes it a new task, and Enter."
    ),
    "review.completed": (
        f"GUIDE 4/7  The review is in .cockpit/reviews. Now a bug. Type: {BUG_WORDS} – then press F7,"
        " which makes it a new task, and Enter."
    ),
    "bug.context": (
        "GUIDE 5/7  Here a script plays the model; all of its actions are real. Look at what it asks"
        " to read, then press Enter."
    ),
    "bug.context.again": "GUIDE 5/7  A smaller request. Enter approves it.",
    "bug.discussed": "GUIDE  Nothing happened. Type a message, then press Enter.",
    "bug.edit_file": (
        "GUIDE 6/7  An edit is shown as the diff that will be written, byte for byte. Press Enter to"
        " write it, and again for the fix that follows."
    ),
    "bug.run": (
        "GUIDE 6/7  A command is shown as it will run: arguments, folder, sandbox, time limit. The"
        " new tests should fail at first. Press Enter."
    ),
    "bug.question": "GUIDE  It waits for your answer. Type a message, then press Enter.",
    "bug.ended": (
        "GUIDE  This ended without a fix. Type a message to try again: press F7 first, which makes it a new"
        f" task, for example: {BUG_WORDS}"
    ),
    "bug.git_commit": "GUIDE 7/7  Exactly these files are committed, with this message. Press Enter.",
    "bug.completed": (
        "GUIDE  The demo is complete. Leave with Ctrl+D, then try your own repository: cockpit review"
        " BRANCH"
    ),
}
"""By step: the line of the guide."""
