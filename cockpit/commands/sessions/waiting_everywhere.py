"""``cockpit proposals list --all-projects``: what waits in every project of this user."""

from __future__ import annotations

from datetime import UTC, datetime

from cockpit.commands.caller_rights import require_user_of_all
from cockpit.commands.sessions.proposal_records import describe_record, format_left, format_span
from cockpit.commands.terminal import say, show_list
from cockpit.core.clock import parse_time
from cockpit.loop.all_projects.follow_projects import read_all
from cockpit.loop.all_projects.project_reader import MOST_PROPOSALS


def list_everywhere(as_json: bool) -> None:
    """Print the pending proposals of all projects, oldest first; no store is changed."""
    require_user_of_all()
    states = read_all()
    rows = sorted(
        (
            (state, proposal)
            for state in states.values()
            if state.condition == "open"
            for proposal in state.proposals
        ),
        key=lambda row: (row[1].created_at, row[0].project.key, row[1].proposal_id),
    )
    now = datetime.now(UTC)
    branches = [
        str(proposal.body.get("branch", ""))
        or (state.askers[proposal.session_id].branch if proposal.session_id in state.askers else "")
        or state.branch
        for state, proposal in rows
    ]
    show_list(
        as_json,
        [
            {
                **describe_record(proposal),
                "project": state.project.name,
                "branch": branch,
                "home": str(state.project.home),
                "key": state.project.key,
            }
            for (state, proposal), branch in zip(rows, branches, strict=True)
        ],
        ("PROJECT", "BRANCH", "PROPOSAL", "KIND", "RISK", "AGE", "LEFT", "TITLE"),
        [
            (
                state.project.name,
                branch or "–",
                proposal.proposal_id,
                proposal.kind,
                proposal.risk,
                format_span((now - parse_time(proposal.created_at)).total_seconds()),
                format_left(proposal, now),
                proposal.title,
            )
            for (state, proposal), branch in zip(rows, branches, strict=True)
        ],
        "No proposal waits for a decision in any project.",
    )
    for state in states.values():
        if state.condition not in ("open", "empty"):
            say(f"{state.project.name} was left out, it is {state.condition}: {state.problem}")
        elif state.waiting > MOST_PROPOSALS:
            say(
                f"{state.project.name} has {state.waiting:,} that wait; the oldest {MOST_PROPOSALS} are"
                " listed."
            )
