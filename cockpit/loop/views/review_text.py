"""The text of a review, from what its session wrote, posted or proposed.

Specified in ``docs/reference/loop.md``, results.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.store.sessions import outbox, proposals, sessions
from cockpit.store.sessions.proposals import Proposal

TASK_TYPE = "review_pr"
"""The task type whose result is a review."""

FOLDER = ".cockpit/reviews/"
"""Where reviews of ranges are written."""

_UNDECIDED = ("pending", "expired")


class ReviewText(Struct, frozen=True):
    """A review as it was shown. ``state`` is ``written`` (to the file ``path``), ``posted`` (to GitHub) or
    ``proposed``: the user has not approved it."""

    text: str
    state: str
    path: str = ""

    def record(self) -> dict[str, str]:
        """Return the fields that a session's JSON result has for its review."""
        fields = {"review": self.text, "review_state": self.state}
        return {**fields, "review_path": self.path} if self.path else fields


def find_review(connection: sqlite3.Connection, session_id: str) -> ReviewText | None:
    """Return the review of a session: the last one carried out, else the last one that waits or expired.

    None for another task type, and when the session has drafted no review. Raises
    :class:`~cockpit.core.errors.NotFound`.
    """
    if sessions.load(connection, session_id).task_type != TASK_TYPE:
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
        review = _read_review(proposal, written, is_done=is_done)
        if review is None:
            continue
        if is_done:
            last_done = review
            written[review.path] = review.text
        elif proposal.status in _UNDECIDED:
            last_draft = review
    return last_done or last_draft


def _read_review(
    proposal: Proposal, written: Mapping[str, str], *, is_done: bool
) -> ReviewText | None:
    """Return the review that one action carries; ``written`` are the reviews so far, by path."""
    body: Mapping[str, Any] = proposal.body
    payload: Mapping[str, Any] = body.get("payload", {})
    path = str(payload.get("path", ""))
    match body.get("type"):
        case "github" if ["command", "gh pr review"] in body["fields"] and body["body"]:
            return ReviewText(str(body["body"]), "posted" if is_done else "proposed")
        case "write_file" if path.startswith(FOLDER):
            text = str(payload["content"])
        case "edit_file" if path in written:
            most = -1 if payload.get("replace_all") else 1
            text = written[path].replace(str(payload["old"]), str(payload["new"]), most)
        case _:
            return None
    return ReviewText(text, "written" if is_done else "proposed", path)
