"""All proposals that wait, over every session of the project: filter, go to one, approve equal ones at once.

What was discussed or rejected is listed too, on demand, to ask for it again. Specified in
``docs/reference/screen.md``, proposals.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from cockpit.app.actions.decision_actions import go_to
from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.clock import parse_time
from cockpit.core.text import pluralize
from cockpit.loop.trust.decide_rules import decide_rule
from cockpit.loop.views.proposal_listing import (
    ListedProposal,
    Revision,
    describe_body,
    list_proposals,
    read_history,
)
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import EDITED, Proposal
from widgets.text.compare_lines import unify_lines
from widgets.text.detail import DetailRow, fields, quoted, sentence
from widgets.text.numerals import duration
from widgets.text.style_names import DIM, STRONG, WARN, Part
from widgets.work.task_views import QueuedView

_OLDER = re.compile(r"older:(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_READING = (sentence(("Reading what it asks for…", DIM)),)
_AGES_S = 5.0
"""Seconds after which the ages are drawn again."""


class ProposalsScreen(ListScreen[ListedProposal]):
    """What waits for the user, the oldest first."""

    NAME = "Proposals"
    PANE = "requests"
    EMPTY = "Nothing waits for you."
    ENTER = ("open", "again")
    QUESTIONS = {  # noqa: RUF012 -- read only
        "equal": "approves all of them",
        "always": "approves it, and lets such requests pass from now on",
    }
    PLACEHOLDER = "words, kind:context, risk:low, agent:claude, session:s-1, older:10m"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._shows_decided = False
        self._texts: dict[str, Sequence[DetailRow]] = {}
        """What proposals ask for, as it is drawn, by their ids: long ones take a while to compare."""

    def on_mount(self) -> None:  # Textual calls the one of the base class as well
        self.set_interval(_AGES_S, lambda: self.find_rows(self.filter))

    async def read_rows(self) -> tuple[Sequence[ListedProposal], Sequence[str]]:
        engine, decided = self.host.engine.engine, self._shows_decided
        rows = await engine.store.read(
            lambda c: list_proposals(c, engine.store.clock, engine.settings, decided=decided)
        )
        return rows, ()

    async def read_detail(self, row: ListedProposal) -> Any:
        store = self.host.engine.store
        missing = [each for each in _shown_with(row) if each.proposal_id not in self._texts]
        for proposal, drawn in zip(
            missing, await asyncio.to_thread(_draw_texts, missing), strict=True
        ):
            self._texts[proposal.proposal_id] = drawn
        if not row.proposal.revises:
            return ()
        return await store.read(lambda c: read_history(c, row.proposal, unify_lines))

    def describe(self) -> Sequence[Part]:
        waiting = [row for row in self.rows if row.proposal.status == "pending"]
        names = len({row.proposal.session_id for row in waiting})
        text = f"{pluralize(len(waiting), 'proposal')} of {pluralize(names, 'session')}"
        return [(text if waiting else "nothing waits", DIM)]

    def verbs(self, row: ListedProposal) -> Mapping[str, str]:
        if row.proposal.status != "pending":
            return {"again": "ask for it again"} if row.proposal.session_id else {}
        verbs = {"open": "go to it"}
        if not all(each.proposal_id in self._texts for each in _shown_with(row)):
            return verbs  # what the others approve is not drawn yet
        if len(row.equal) > 1:
            verbs["equal"] = f"approve {len(row.equal)} equal ones"
        if row.rules:
            verbs["always"] = "yes, from now on"
        return verbs

    def general_verbs(self) -> Mapping[str, str]:
        return {"decided": "hide decided" if self._shows_decided else "show decided"}

    def question(self, verb: str, row: ListedProposal) -> str:
        if verb == "equal":
            return f"approves all {len(row.equal)} that are shown below"
        return f"{self.QUESTIONS[verb]}: {'; '.join(row.says)}"

    def start(self, verb: str) -> None:
        self._shows_decided = not self._shows_decided
        self.read_again()

    async def do(self, verb: str, row: ListedProposal) -> None:
        proposal = row.proposal
        if verb == "open":
            self.dismiss()
            go_to(self.host, proposal.proposal_id)
        elif verb == "again":
            text = (
                f"Please propose this again, as it was: {proposal.title} ({proposal.proposal_id})."
            )
            self.host.send_message(text, proposal.session_id)
            waiting = self._find_waiting(proposal.session_id)
            when = f" The agent reads it after you decide {waiting}." if waiting else ""
            self.host.show_notice(f"Asked the agent for {proposal.proposal_id} again.{when}")
        else:
            for each in row.equal if verb == "equal" else (proposal,):
                await self.host.engine.approve(each.proposal_id, shown_digest=each.shown_digest)
                self.host.resume_session(each.session_id)
            engine = self.host.engine.engine
            for rule_id in row.rules if verb == "always" else ():
                accept = partial(
                    decide_rule, settings=engine.settings, verb="accept", rule_id=rule_id
                )
                await engine.store.write(accept)

    def _find_waiting(self, session_id: str) -> str:
        """Return the id of a proposal that a session waits for; empty where its agent can read a message."""
        rows = (row.proposal for row in self.rows)
        waiting = (each for each in rows if each.status == "pending")
        return next((each.proposal_id for each in waiting if each.session_id == session_id), "")

    def words(self, row: ListedProposal) -> str:
        proposal = row.proposal
        return (
            f"kind:{proposal.kind} risk:{proposal.risk} agent:{row.agent} session:{proposal.session_id}"
            f" {row.session} {proposal.proposal_id}"
        )

    def find_rows(self, text: str) -> None:
        """Filter by words, and by age with ``older:10m``; the ages are those of now."""
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in _OLDER.findall(text))
        views = [self.draw_row(row) for row in self._rows.values()]
        now = self.host.engine.store.clock.now()
        self._views = [view for view in views if _age_s(self._rows[view.key], now) >= seconds]
        super().find_rows(_OLDER.sub("", text))
        self._views = views

    def draw_row(self, row: ListedProposal) -> QueuedView:
        proposal = row.proposal
        look = state_sign("proposal", proposals.shown_status(proposal))
        state = look.word
        if proposal.status == "pending":
            age = duration(int(_age_s(row, self.host.engine.store.clock.now())))
            state = f"{proposal.risk} risk · {age}"
        equal = f"{len(row.equal)} equal ones" if len(row.equal) > 1 else ""
        origin = " · ".join(
            filter(None, (row.agent, row.where, proposal.task_id, row.session, equal))
        )
        name = f"{proposal.kind}, revised" if proposal.revises else proposal.kind
        return QueuedView(
            proposal.proposal_id, proposal.title, look.sign, look.tone, state, origin, name
        )

    def draw_detail(self, row: ListedProposal, detail: Any) -> Sequence[DetailRow]:
        shown = row.equal if self.asks("equal") else (row.proposal,)
        rows: list[DetailRow] = []
        for place, proposal in enumerate(shown, 1):
            count = f"{place} of {len(shown)}  " if len(shown) > 1 else ""
            rows += [
                sentence((count, WARN), (proposal.title, STRONG)),
                *fields(
                    [
                        ("proposal", proposal.proposal_id),
                        ("session", proposal.session_id),
                        ("risk", proposal.risk),
                        ("asked", proposal.created_at[:16].replace("T", " ")),
                        ("expires", (proposal.expires_at or "")[:16].replace("T", " ")),
                        ("decided", _describe_decision(proposal)),
                    ]
                ),
                *self._texts.get(proposal.proposal_id, _READING),
            ]
        for each in detail or () if len(shown) == 1 else ():
            rows += _draw_revision(each)
        return rows


def _shown_with(row: ListedProposal) -> Sequence[Proposal]:
    """Return the proposals whose texts stand in the detail of a row."""
    return row.equal or (row.proposal,)


def _describe_decision(proposal: Proposal) -> str:
    """Return who decided a proposal and with which words; empty while it waits."""
    if proposal.reason == EDITED:
        return "you edited it"
    who = "you" if proposal.decided_by == "person" else proposal.decided_by or ""
    return f"{who}: “{proposal.reason}”" if proposal.reason else who


def _draw_texts(rows: Sequence[Proposal]) -> list[Sequence[DetailRow]]:
    return [quoted("asks for", "\n".join(describe_body(each.body, unify_lines))) for each in rows]


def _draw_revision(revision: Revision) -> Sequence[DetailRow]:
    """Return what changed after an earlier version, and who changed it; an edit is called an edit."""
    proposal = revision.proposal
    how = "you edited" if revision.was_edited else f"{proposal.status}, then revised:"
    words = f" “{proposal.reason}”" if proposal.reason and not revision.was_edited else ""
    heading = f"{how} {proposal.proposal_id}{words}"
    return quoted(heading, "\n".join(revision.changes) or "the same text")


def _age_s(row: ListedProposal, now: datetime) -> float:
    return (now - parse_time(row.proposal.created_at)).total_seconds()
