"""How many prompts trust rules remove, and whether they let anything pass that was not accepted.

Generated, seeded histories: a user with habits decides what sessions of three task types ask for. Most
requests come of a few habits of the project, some are made to look like trusted ones. The user approves and
pushes back as their habits say, and accepts whatever is offered. Everything runs through the real store,
learning and coverage. Whether a pass was covered is derived anew, by :func:`covers`, from the words of the
acceptances in the journal and what ended them. This simulates users: it shows that rules stay within what was
accepted, and how much they remove for such habits, not what your own work looks like.
"""

from __future__ import annotations

import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from measure import Row, at, row

from cockpit.access.principals import PERSON
from cockpit.core.clock import CountingIds, FixedClock, format_time
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.runtime_settings import RuntimeSettings, TrustSettings
from cockpit.loop.trust import decide_rules
from cockpit.loop.trust.decide_rules import accept_rule, list_offers
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

SEEDS = (3, 17, 41)
SESSIONS = 120
REQUESTS = 8
STRANGE = 0.12
"""Share of requests that imitate a trusted one."""
ASKING = 0.15
"""Share of sessions in which the user decides everything: there they push back on what a rule covers."""
SETTINGS = RuntimeSettings(trust=TrustSettings(approvals=5, sessions=3, expires_days=90))
RISKS = {"git push": "high", "rm": "high"}


@dataclass(frozen=True)
class Habit:
    """One kind of request that sessions of a task type make again and again."""

    task_type: str
    request: str
    """``item`` or ``argv``, with ``#`` where a number varies."""
    weight: float
    disliked: float
    """How often the user pushes back on it."""


HABITS = (
    Habit("review_pr", "file:tests/test_#.py", 6, 0.0),
    Habit("review_pr", "file:src/app/m_#.py", 4, 0.01),
    Habit("review_pr", "pr:#", 3, 0.0),
    Habit("review_pr", "file:docs/page_#.md", 1, 0.3),
    Habit("implement", "file:src/app/m_#.py", 6, 0.0),
    Habit("implement", "pytest -q tests/test_#.py", 6, 0.005),
    Habit("implement", "make check", 2, 0.0),
    Habit("implement", "git push", 1, 0.2),
    Habit("implement", "search:def f_# in src/app/*.py", 2, 0.02),
    Habit("bug", "file:src/app/m_#.py", 5, 0.0),
    Habit("bug", "pytest -q tests/test_#.py", 5, 0.0),
    Habit("bug", "file:logs/run_#.txt", 2, 0.1),
)
IMITATIONS = (
    *("file:tests/../src/key_#.py", "file:tests/.env_#.py", "file:tests/deep/test_#.py"),
    *("file:tests/*.py", "file:src/app/m_#.pyc", "pr:9#", "env A=1 pytest -q tests/test_#.py"),
    *("pytest -q tests/test_#.py -p evil", "pytest -q tests/../src/m_#.py", "make check CC=evil"),
    *("sh -c pytest", "./pytest -q tests/test_#.py", "pytest -q tests/test_#.py;id", "make deploy"),
)


@dataclass
class History:
    """What one simulated user went through."""

    asked: int = 0
    passed: int = 0
    outside: int = 0
    """Passed, and not covered by anything that was accepted and not ended."""
    regretted: int = 0
    """Passed within a rule, where the user would have pushed back this time."""
    late_asked: int = 0
    late_passed: int = 0
    rules: int = 0
    suspended: int = 0
    cpu_ms: list[float] = field(default_factory=list)


def covers(words: Sequence[str], request: str, own: int) -> bool:
    """Whether an accepted rule with these words covers a request, derived from the words alone."""
    name = r"(?!\.)[A-Za-z0-9_][A-Za-z0-9_.-]*"
    if words[0] == "file":
        folder, _, pattern = words[1].rpartition("/")
        return bool(
            re.fullmatch(f"file:{re.escape(folder)}/{name}{re.escape(pattern[1:])}", request)
        )
    if words[0] == "pr":
        return request == f"pr:{own}"
    if words[0] == "search in":
        return bool(re.fullmatch(rf"search:.* in {re.escape(words[1])}", request))
    parts = []
    for word in words:
        folder, star, suffix = word.partition("/*")
        parts.append(f"{re.escape(folder)}/{name}{re.escape(suffix)}" if star else re.escape(word))
    return bool(re.fullmatch(" ".join(parts), request))


class Play:
    """One project of one user."""

    def __init__(self, store: Store, root: Path, rng: random.Random) -> None:
        self.store, self.root, self.rng = store, root, rng
        self.history = History()
        self.count = 0

    def run(self) -> History:
        """Play every session; offers are accepted at its end."""
        for number in range(SESSIONS):
            task_type = self.rng.choice(("review_pr", "implement", "bug"))
            own = self.rng.randrange(10, 80)
            policy = "ask" if self.rng.random() < ASKING else "trusted"
            begin = partial(self._begin, task_type=task_type, own=own, policy=policy)
            session_id = self.store.write_now(begin)
            for habit, request in self._requests(task_type, own):
                self._ask(
                    session_id, task_type, own, habit, request, late=number >= 2 * SESSIONS // 3
                )
            self.store.write_now(self._accept)
            self.store.clock.advance(self.rng.randrange(3_600, 60_000))  # type: ignore[attr-defined]
        return self.history

    def _begin(self, tx: Tx, *, task_type: str, own: int, policy: str) -> str:
        return sessions.create(
            tx, task_type=task_type, title="work", words="do it", target={"pr": own},
            model="script:x", policy=policy, interactive=True, root=self.root, rev=None,
            profile_id="default", limits={}, project="p", branch="main",
        ).session_id  # fmt: skip

    def _requests(self, task_type: str, own: int) -> Iterator[tuple[Habit | None, str]]:
        habits = [habit for habit in HABITS if habit.task_type == task_type]
        for _ in range(REQUESTS):
            number = str(self.rng.randrange(40))
            if self.rng.random() < STRANGE:
                yield None, self.rng.choice(IMITATIONS).replace("#", number)
                continue
            habit = self.rng.choices(habits, [each.weight for each in habits])[0]
            shown = str(own) if habit.request == "pr:#" else number
            yield habit, habit.request.replace("#", shown)

    def _ask(
        self,
        session_id: str,
        task_type: str,
        own: int,
        habit: Habit | None,
        request: str,
        *,
        late: bool,
    ) -> None:
        disliked = habit is None or self.rng.random() < habit.disliked
        began = time.process_time()
        proposal = self.store.write_now(lambda tx: self._propose(tx, session_id, request))
        self.history.cpu_ms.append((time.process_time() - began) * 1_000)
        if proposal.status == "approved":
            self.history.passed += 1
            self.history.late_passed += late
            is_covered = self.store.read_now(
                lambda connection: self._is_covered(connection, task_type, own, request)
            )
            self.history.outside += not is_covered
            self.history.regretted += disliked
            return
        self.history.asked += 1
        self.history.late_asked += late
        verdict = "rejected" if disliked else "approved"
        self.store.write_now(
            lambda tx: decide_proposal(
                tx, SETTINGS, proposal.proposal_id, verdict, PERSON,  # type: ignore[arg-type]
                shown_digest=proposal.shown_digest,
            )
        )  # fmt: skip

    def _propose(self, tx: Tx, session_id: str, request: str) -> Proposal:
        self.count += 1
        proposal_id = f"p-{self.count}"
        reads = re.match(r"(file|pr|search):", request) is not None
        risk = next((risk for words, risk in RISKS.items() if request.startswith(words)), "")
        body: dict[str, object] = {"type": "run", "key": proposal_id, "changes": [], "payload": {
            "argv": request.split(), "timeout_s": 120, "sandboxed": True}}  # fmt: skip
        if reads:
            item = {"item": request, "level": "full", "tokens": 5, "band": "situational",
                    "refused": "", "note": ""}  # fmt: skip
            body = {"purpose": "p", "question": "q", "escalation": "", "items": [item]}
        proposal = proposals.create(
            tx, proposal_id=proposal_id, kind="context" if reads else "action",
            session_id=session_id, wave_id=f"{session_id}-w{self.count}", title=request,
            body=body, risk=risk or ("low" if reads else "medium"),
        )  # fmt: skip
        pass_without_asking(tx, SETTINGS, proposal, None)
        return proposals.load(tx.connection, proposal_id)

    def _accept(self, tx: Tx) -> None:
        for offer in list_offers(tx.connection, tx.clock, SETTINGS):
            accept_rule(tx, SETTINGS, offer.shape.rule_id, PERSON)
            self.history.rules += 1

    def _is_covered(
        self, connection: sqlite3.Connection, task_type: str, own: int, request: str
    ) -> bool:
        """Whether the journal has an acceptance that covers the request, not ended and not expired."""
        now = format_time(self.store.clock.now())
        accepted: dict[str, tuple[Sequence[str], str, str]] = {}
        for event in journal.rows(connection, action="trust.changed"):
            detail = event.raw_detail()
            if detail["status"] == "accepted":
                shape = detail["shape"]
                accepted[detail["rule_id"]] = (
                    shape["words"],
                    shape["task_type"],
                    detail["expires_at"],
                )
            elif detail["status"] != "offered":
                accepted.pop(detail["rule_id"], None)
        return any(
            kind == task_type and ends > now and covers(words, request, own)
            for words, kind, ends in accepted.values()
        )


def rows() -> list[Row]:
    """Play every history."""
    # The bench plays the user; who sits at this terminal is not what it measures.
    decide_rules.user_presence.require_user = lambda *_: None  # type: ignore[assignment]
    histories = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            with Store.open(root / "cockpit.db", FixedClock(step_s=0.001), CountingIds()) as store:
                play = Play(store, root, random.Random(seed))
                play.run()
                suspended = store.read_now(
                    lambda connection: connection.execute(
                        "SELECT count(*) FROM journal WHERE action='trust.changed'"
                        " AND json_extract(detail_json, '$.status')='suspended'"
                    ).fetchone()
                )
                play.history.suspended = suspended[0]
                histories.append(play.history)
    asked, passed = sum(each.asked for each in histories), sum(each.passed for each in histories)
    late_asked = sum(each.late_asked for each in histories)
    late_passed = sum(each.late_passed for each in histories)
    late_share = late_passed / (late_asked + late_passed)
    regretted = sum(each.regretted for each in histories)
    requests = asked + passed
    took = [value for each in histories for value in each.cpu_ms]
    return [
        row("requests in simulated histories", requests, ""),
        row("passed outside what was accepted", sum(h.outside for h in histories), "", most=0),
        row("prompts that rules remove, whole history", passed / requests, "share"),
        row("prompts that rules remove, last third", late_share, "share", least=0.5),
        row("passed by a rule, disliked this time", regretted / max(1, passed), "share"),
        row("rules accepted", sum(h.rules for h in histories), ""),
        row("rules suspended by a pushback", sum(h.suspended for h in histories), ""),
        row("propose and look for coverage, CPU, median", at(0.5, took), "ms"),
    ]  # fmt: skip
