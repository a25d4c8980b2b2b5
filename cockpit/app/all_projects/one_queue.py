"""The one queue: the pending proposals of all projects in the order of their arrival.

Specified in ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from cockpit.access.notices import Notice, proposal_notice
from cockpit.app.state.header import SessionState
from cockpit.app.state.proposal_queue import as_pending
from cockpit.app.state.proposal_queue import proposal as draw_proposal
from cockpit.core.clock import parse_time
from cockpit.core.text import pluralize
from cockpit.loop.all_projects.project_reader import Asker, ProjectState
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.sessions.proposals import Proposal
from widgets.views import ProposalView, QueueView, WaitingView
from widgets.work.task_views import QueuedView

_ROWS = 12
"""Rows of the queue that are drawn at once, around the proposal in front."""
_NOBODY = Asker("", "", "", "", "", is_driven=False)


class Waiting(msgspec.Struct, frozen=True):
    """A pending proposal, and whose it is."""

    state: ProjectState
    proposal: Proposal
    asker: Asker

    @property
    def key(self) -> str:
        """The id of the proposal among those of all projects; two stores may have the same id."""
        return make_key(self.state, self.proposal)


def make_key(state: ProjectState, proposal: Proposal) -> str:
    """Return the id of a proposal among those of all projects."""
    return f"{state.project.key}/{proposal.proposal_id}"


class OneQueue:
    """What waits in all projects that can be decided in, the oldest first."""

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self._names: dict[str, str] = {}
        self._views: dict[tuple[str, str], ProposalView] = {}
        """Views by key and digest, whose bodies are parsed once."""

    def fold(self, states: Mapping[str, ProjectState]) -> None:
        """Take the states of all projects."""
        self._names = name_projects(states.values())
        waiting = [
            Waiting(state, each, state.askers.get(each.session_id, _NOBODY))
            for state in states.values()
            if state.condition == "open"
            for each in state.proposals
        ]
        waiting.sort(key=lambda each: (each.proposal.created_at, each.key))
        self.waiting = {each.key: each for each in waiting}
        kept = {(key, each.proposal.shown_digest) for key, each in self.waiting.items()}
        self._views = {name: view for name, view in self._views.items() if name in kept}

    def view(self, now: datetime, front: str) -> QueueView:
        """Return the queue with the proposal ``front`` in front while it waits, else the oldest."""
        order = list(self.waiting)
        if not order:
            return QueueView()
        chosen = front if front in self.waiting else order[0]
        index = order.index(chosen)
        first = max(0, min(index - _ROWS // 2, len(order) - _ROWS))
        rows = [self.waiting[key] for key in order[first : first + _ROWS]]
        return QueueView(
            front=self._draw(self.waiting[chosen], now),
            index=index,
            total=len(order),
            waiting=tuple(self._row(row, now) for row in rows) if len(order) > 1 else (),
        )

    def _draw(self, waiting: Waiting, now: datetime) -> ProposalView:
        """Return the view of a proposal as the cockpit of its project draws it, with the project's name."""
        stored, asker = waiting.proposal, waiting.asker
        session = SessionState(
            stored.session_id,
            title=asker.title,
            role=asker.role,
            task_id=stored.task_id or asker.task_id,
        )
        view = draw_proposal(as_pending(stored, waiting.state.rules), now, session)
        return msgspec.structs.replace(
            view,
            proposal_id=waiting.key,
            project=self._names[waiting.state.project.key],
            branch=_branch(waiting, view.branch),
        )

    def _row(self, waiting: Waiting, now: datetime) -> WaitingView:
        view = self._views.get((waiting.key, waiting.proposal.shown_digest))
        if view is None:
            view = self._draw(waiting, now)
            self._views[waiting.key, waiting.proposal.shown_digest] = view
        age = _age_s(waiting.proposal, now)
        who = (view.agent, view.project, view.branch)
        return WaitingView(
            proposal_id=view.proposal_id,
            kind=view.kind,
            risk=view.risk,
            who=" · ".join(part for part in who if part),
            title=view.title,
            age_s=age,
        )


def describe_request(waiting: Waiting) -> Notice:
    """Return what a notification says of a proposal."""
    stored, body = waiting.proposal, waiting.proposal.body
    return proposal_notice(
        waiting.key,
        project=waiting.state.project.name,
        branch=_branch(waiting, str(body.get("branch", ""))),
        proposal_id=stored.proposal_id,
        kind=stored.kind,
        risk=stored.risk,
        title=stored.title,
        agent=str(body.get("agent", "")),
        session_id=stored.session_id,
    )


def _age_s(proposal: Proposal, now: datetime) -> int:
    try:
        return max(0, int((now - parse_time(proposal.created_at)).total_seconds()))
    except ValueError:
        return 0


def _branch(waiting: Waiting, named: str) -> str:
    return named or waiting.asker.branch or waiting.state.branch


def name_projects(states: Iterable[ProjectState]) -> dict[str, str]:
    """Return a name for each project by its key; those of the same name get their parent folder's, too."""
    states = list(states)
    counts = Counter(state.project.name for state in states)
    names = {}
    for state in states:
        project = state.project
        is_unique = counts[project.name] == 1
        names[project.key] = (
            project.name if is_unique else f"{project.home.parent.name}/{project.name}"
        )
    shared = Counter(names.values())
    return {
        state.project.key: (
            names[state.project.key]
            if shared[names[state.project.key]] == 1
            else str(state.project.home)
        )
        for state in states
    }


def order_projects(states: Mapping[str, ProjectState]) -> list[str]:
    """Return the keys of projects: those where something waits first, then those where something runs."""

    def place(key: str) -> tuple[bool, bool, bool, str, str]:
        state = states[key]
        is_open, is_gone = state.condition == "open", state.condition == "gone"
        waits, runs = is_open and state.waiting > 0, is_open and _activity(state) != ""
        return not waits, not runs, is_gone, state.project.name.casefold(), key

    return sorted(states, key=place)


def project_rows(states: Mapping[str, ProjectState], order: Iterable[str]) -> list[QueuedView]:
    """Return the rows of projects in an order of their keys; the others come last."""
    names = name_projects(states.values())
    keys = [key for key in order if key in states]
    keys += sorted(states.keys() - set(keys), key=lambda key: (names[key].casefold(), key))
    return [_project_row(states[key], names[key]) for key in keys]


def _project_row(state: ProjectState, name: str) -> QueuedView:
    shown: str = state.condition
    activity = _activity(state)
    if state.condition == "open":
        if state.waiting:
            shown = "waiting"
        elif activity:
            shown = "running"
        word = f"{state.waiting:,} to decide" if state.waiting else "running" if activity else ""
        about = activity or "nothing runs"
    elif state.condition in ("empty", "reading"):
        word, about = "", "nothing recorded yet" if state.condition == "empty" else "…"
    else:
        word, about = state.condition, ""
    looks = state_sign("project", shown)
    return QueuedView(
        state.project.key,
        " · ".join(part for part in (state.branch, about) if part),
        looks.sign,
        looks.tone,
        word,
        # The line is short: the cause comes before a path.
        shorten_home(
            state.problem.replace(str(state.project.database), "Its store")
            or str(state.project.home)
        ),
        name,
    )


def shorten_home(text: str) -> str:
    """Return text with the user's home directory written as ``~``."""
    home = os.path.expanduser("~")  # noqa: PTH111 - as text
    return text.replace(f"{home}/", "~/") if home != "/" else text


def _activity(state: ProjectState) -> str:
    """Return what runs in a project, as text; empty for nothing."""
    parts = []
    if state.running:
        parts.append(pluralize(state.running, "session"))
    if state.chains:
        parts.append(pluralize(state.chains, "chain"))
    if state.agents:
        parts.append(pluralize(state.agents, "external agent"))
    return " · ".join(parts)


def sum_up(states: Mapping[str, ProjectState]) -> str:
    """Return the counters over all projects, as text."""
    open_states = [state for state in states.values() if state.condition == "open"]
    parts = [pluralize(len(states), "project")]
    for count, name in (
        (sum(state.running for state in open_states), "session"),
        (sum(state.chains for state in open_states), "chain"),
        (sum(state.agents for state in open_states), "external agent"),
    ):
        if count:
            parts.append(pluralize(count, name))
    closed = sum(
        state.condition in ("gone", "locked", "newer", "older", "broken")
        for state in states.values()
    )
    if closed:
        parts.append(f"{closed} not readable")
    return " · ".join(parts)
