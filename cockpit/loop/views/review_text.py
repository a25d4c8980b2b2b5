"""The text of a review, a pull request or an issue, from what its session wrote, posted or proposed.

Specified in ``docs/reference/loop.md``, ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.store.sessions import outbox, proposals, sessions
from cockpit.store.sessions.proposals import Proposal

_POSTS = {
    "review_pr": ("gh pr review", "gh pr comment"),
    "create_pr": ("gh pr create",),
    "create_issue": ("gh issue create",),
}
"""By task type whose result is on GitHub: the commands that post it."""

FOLDER = ".cockpit/reviews/"
"""Where reviews of ranges are written."""


class ReviewText(Struct, frozen=True):
    """A review, or the text of a pull request or an issue, as it was shown.

    ``state`` is ``written`` (to the file ``path``), ``posted`` (to GitHub) or ``proposed``: it was not
    carried out.
    """

    text: str
    state: str
    path: str = ""

    def record(self) -> dict[str, str]:
        """Return the fields that a session's JSON result has for its review."""
        fields = {"review": self.text, "review_state": self.state}
        return {**fields, "review_path": self.path} if self.path else fields


def is_missing_on_github(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether a session's result belongs on GitHub, and GitHub has taken none of its commands."""
    session = sessions.load(connection, session_id)
    if session.task_type not in _POSTS or session.role:
        return False
    if session.task_type == "review_pr" and "pr" not in session.target:
        return False
    draft = find_review(connection, session_id)
    return draft is None or draft.state != "posted"


def find_review(connection: sqlite3.Connection, session_id: str) -> ReviewText | None:
    """Return the review of a session, or its pull request or issue: the last one carried out, else a draft.

    A draft is the last one that was not carried out, whatever was decided of it. None for another task
    type, and when the session has drafted nothing. Raises :class:`~cockpit.core.errors.NotFound`.
    """
    commands = _POSTS.get(sessions.load(connection, session_id).task_type)
    if commands is None:
        return None
    confirmed = {
        action.proposal_id
        for action in outbox.select_for_session(connection, session_id)
        if action.phase == "confirmed"
    }
    written: dict[str, str] = {}
    last_done = last_draft = None
    for proposal in proposals.select_for_session(connection, session_id):
        if proposal.kind != "action":
            continue
        is_done = proposal.proposal_id in confirmed
        review = _read_review(proposal, commands, written, is_done=is_done)
        if review is None:
            continue
        if is_done:
            last_done = review
            written[review.path] = review.text
        else:
            last_draft = review
    return last_done or last_draft


def _read_review(
    proposal: Proposal, commands: Sequence[str], written: Mapping[str, str], *, is_done: bool
) -> ReviewText | None:
    """Return the review that one action carries; ``written`` are the reviews so far, by path."""
    body: Mapping[str, Any] = proposal.body
    payload: Mapping[str, Any] = body.get("payload", {})
    path = str(payload.get("path", ""))
    match body.get("type"):
        case "github" if body["body"] and any(
            ["command", command] in body["fields"] for command in commands
        ):
            return ReviewText(str(body["body"]), "posted" if is_done else "proposed")
        case "write_file" if path.startswith(FOLDER):
            text = str(payload["content"])
        case "edit_file" if path in written:
            most = -1 if payload.get("replace_all") else 1
            text = written[path].replace(str(payload["old"]), str(payload["new"]), most)
        case _:
            return None
    return ReviewText(text, "written" if is_done else "proposed", path)
