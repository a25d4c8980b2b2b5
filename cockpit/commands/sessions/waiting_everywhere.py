"""``cockpit proposals --all-projects``: what waits in every project of this user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from cockpit.collections.collection import Listed
from cockpit.collections.work.proposals import describe_record, format_left, format_span
from cockpit.commands.caller_rights import require_user_of_all
from cockpit.commands.collection import Columns
from cockpit.core.clock import parse_time
from cockpit.loop.all_projects.follow_projects import read_all
from cockpit.loop.all_projects.project_reader import MOST_PROPOSALS, ProjectState
from cockpit.store.sessions.proposals import Proposal


class ElsewhereRow(Struct, frozen=True):
    """A proposal that waits, with the project that it is of."""

    state: ProjectState
    proposal: Proposal

    @property
    def branch(self) -> str:
        """The branch that it is about: of its agent, of its session, else of the checkout."""
        asker = self.state.askers.get(self.proposal.session_id)
        named = str(self.proposal.body.get("branch", ""))
        return named or (asker.branch if asker is not None else "") or self.state.branch

    def body(self) -> dict[str, Any]:
        project = self.state.project
        return {
            **describe_record(self.proposal),
            "project": project.name,
            "branch": self.branch,
            "home": str(project.home),
            "key": project.key,
        }


def _age(row: ElsewhereRow) -> str:
    return format_span((datetime.now(UTC) - parse_time(row.proposal.created_at)).total_seconds())


COLUMNS_ELSEWHERE: Columns[ElsewhereRow] = {
    "PROJECT": lambda row: row.state.project.name,
    "BRANCH": lambda row: row.branch or "–",
    "PROPOSAL": lambda row: row.proposal.proposal_id,
    "KIND": lambda row: row.proposal.kind,
    "RISK": lambda row: row.proposal.risk,
    "AGE": _age,
    "LEFT": lambda row: format_left(row.proposal, datetime.now(UTC)),
    "TITLE": lambda row: row.proposal.title,
}


def read_everywhere() -> Listed[ElsewhereRow]:
    """Read the pending proposals of all projects, oldest first; no store is changed."""
    require_user_of_all()
    states = read_all()
    rows = [
        ElsewhereRow(state, proposal)
        for state in states.values()
        if state.condition == "open"
        for proposal in state.proposals
    ]
    rows.sort(
        key=lambda row: (
            row.proposal.created_at, row.state.project.key, row.proposal.proposal_id,
        )
    )  # fmt: skip
    remarks = []
    for state in states.values():
        if state.condition not in ("open", "empty"):
            remarks.append(
                f"{state.project.name} was left out, it is {state.condition}: {state.problem}"
            )
        elif state.waiting > MOST_PROPOSALS:
            remarks.append(
                f"{state.project.name} has {state.waiting:,} that wait; the oldest {MOST_PROPOSALS} are"
                " listed."
            )
    return Listed(rows, remarks)
