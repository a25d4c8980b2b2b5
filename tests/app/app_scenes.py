"""Scenes: what a journal says at some moment, written through the store as the engine would."""

from __future__ import annotations

import json
from pathlib import Path

from cockpit.app.state.screen_state import State, read_changes, read_state
from cockpit.orient.profile_changes.apply_change import apply_change
from cockpit.orient.profile_changes.change_preview import change_title, proposal_body
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context.profile_model import load_shipped
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.sessions import SessionFailed, SessionWaiting
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.trace_ids import Trace
from cockpit.store.sessions import context_requests, messages, outbox, proposals, sessions, waves

BANDS = (
    ("identity", 4_100, 12_000, 18_000, 25_000, 9, 0),
    ("objectives", 17_900, 15_000, 22_000, 40_000, 31, 0),
    ("capabilities", 9_800, 10_000, 15_000, 25_000, 12, 0),
    ("situational", 75_000, 45_000, 70_000, 110_000, 131, 22),
    ("exploration", 6_600, 5_000, 12_000, 25_000, 29, 9),
    ("reserve", 0, 3_000, 5_000, 8_000, 0, 0),
)
ITEMS = (
    ("file:src/http/client.py:40-160", 3_400, "situational", ""),
    ("file:tests/test_retry.py", 2_100, "situational", ""),
    ("log:-5", 700, "exploration", ""),
)
BEFORE = """class Retry:
    def __init__(self, limit):
        self.limit = limit
        self.attempt = 0

    def after(self, ok):
        self.attempt += 1
        return min(self.limit, 2 ** self.attempt)
"""
AFTER = BEFORE.replace(
    "        self.attempt += 1\n", "        self.attempt = 0 if ok else self.attempt + 1\n"
)
REVIEW = """**Verdict** Changes needed: the backoff is never reset.

**Understanding** You make retries survive a dropped socket by keeping the attempt on the client.

**What we like** The jitter is seeded; errors keep their cause.

**Questions** Was removing `test_retry_reset` intended?

**Nits** `client.py:88` the log line repeats the URL.
"""
THOUGHTS = """The retry loop never resets **attempt** after a success, so the second
outage of a connection starts at the longest delay:

```python
def after(self, ok):
    self.attempt += 1
```

The removed test was the only one that covered it. I propose to ask
for both before this is merged."""


class Scene:
    """Writes one session's story, a step at a time."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.root = root
        self.session_id = ""
        self.wave_id = ""

    def begin(
        self, words: str = "review pr 24", *, title: str = "", task_type: str = "review_pr",
        policy: str = "ask", branch: str = "fix-login",
    ) -> Scene:  # fmt: skip
        def step(tx: Tx) -> str:
            return sessions.create(
                tx, task_type=task_type, title=title or "#24", words=words, target={},
                model="anthropic:claude-sonnet-5", policy=policy, interactive=True,
                root=self.root, rev=None, profile_id="default", limits={}, project="acme/api",
                branch=branch,
            ).session_id  # fmt: skip

        self.session_id = self.store.write_now(step)
        self.say("person", words)
        return self

    def say(self, role: str, text: str, *, interrupted: bool = False) -> Scene:
        self.store.write_now(
            lambda tx: messages.complete(
                tx, session_id=self.session_id, role=role, text=text, wave_id=self.wave_id,
                interrupted=interrupted,
            )
        )  # fmt: skip
        return self

    def stream(self, *fragments: str) -> Scene:
        def step(tx: Tx) -> None:
            messages.start(
                tx, session_id=self.session_id, wave_id=self.wave_id, message_id="m-live"
            )
            for number, text in enumerate(fragments):
                messages.append_delta(
                    tx, session_id=self.session_id, wave_id=self.wave_id, message_id="m-live",
                    text=text, number=number,
                )  # fmt: skip

        self.store.write_now(step)
        return self

    def wave(self, *phases: str) -> Scene:
        """The next wave, taken through ``phases``; its packet is compiled when it orients."""

        def step(tx: Tx) -> str:
            wave = waves.create(tx, session_id=self.session_id, trace_id="t")
            for phase in phases:
                if phase == "deciding":
                    self._packet(tx, wave.wave_id, wave.ordinal)
                waves.advance(tx, wave.wave_id, phase)
            return wave.wave_id

        self.wave_id = self.store.write_now(step)
        return self

    def advance(self, *phases: str) -> Scene:
        def step(tx: Tx) -> None:
            for phase in phases:
                waves.advance(tx, self.wave_id, phase)

        self.store.write_now(step)
        return self

    def _packet(self, tx: Tx, wave_id: str, ordinal: int) -> None:
        tx.append_row(
            Action.PACKET_COMPILED,
            session_id=self.session_id,
            wave_id=wave_id,
            trace=Trace(profile_id="default", profile_version=7),
            body={
                "digest": "9f31c2e8a40b", "ordinal": ordinal, "token_used": 113_420,
                "token_budget": 150_000, "facts": 212, "dropped": 31, "drops": {},
                "bands": [
                    {"band": n, "used": u, "min": lo, "target": t, "max": hi, "facts": f,
                     "dropped": d}
                    for n, u, lo, t, hi, f, d in BANDS
                ],
            },
        )  # fmt: skip

    def spend(self, tokens: int = 41_200, cost: float = 0.12) -> Scene:
        def step(tx: Tx) -> None:
            sessions.add_usage(
                tx, self.session_id, input_tokens=tokens - 1_000, output_tokens=1_000,
                cached_tokens=0, cost_usd=cost,
            )  # fmt: skip
            tx.append_row(
                Action.MODEL_COMPLETED,
                session_id=self.session_id,
                wave_id=self.wave_id,
                body={
                    "model": "anthropic:claude-sonnet-5", "input_tokens": tokens - 1_000,
                    "output_tokens": 1_000, "cached_tokens": 0, "cost_usd": cost, "stop": "end",
                },
            )  # fmt: skip

        self.store.write_now(step)
        return self

    def ask(
        self, proposal_id: str = "p-context", *, items=ITEMS, revises=None, changes=()
    ) -> Scene:
        """A context request that waits."""
        rows = [
            {"item": i, "level": "full", "tokens": t, "band": b, "refused": r, "note": ""}
            for i, t, b, r in items
        ]
        body = {
            "purpose": "judge the retry change",
            "question": "how does the client reset its backoff?",
            "escalation": "none: all of it is in the repository",
            "items": rows,
            "total_tokens": sum(row["tokens"] for row in rows),
        }
        if changes:
            body["changes"] = list(changes)

        def step(tx: Tx) -> None:
            proposals.create(
                tx, proposal_id=proposal_id, kind="context", session_id=self.session_id,
                wave_id=self.wave_id, title=f"read {len(rows)} items", body=body, risk="low",
                revises=revises,
            )  # fmt: skip
            context_requests.create(
                tx, request_id=f"r-{proposal_id}", session_id=self.session_id,
                wave_id=self.wave_id, call_id="c1", purpose=body["purpose"],
                question=body["question"], escalation=body["escalation"], items=rows,
                proposal_id=proposal_id,
            )  # fmt: skip
            sessions.set_status(
                tx, self.session_id, "waiting", detail=SessionWaiting(for_="proposal", why="read")
            )

        self.store.write_now(step)
        return self

    def decide(self, proposal_id: str, verdict: str, *, by: str = "person", **more) -> Scene:
        self.store.write_now(lambda tx: proposals.decide(tx, proposal_id, verdict, by=by, **more))
        return self

    def fetched(self, proposal_id: str = "p-context") -> Scene:
        outcomes = [
            {"item": i, "facts": 4, "new": 4, "tokens": t, "error": ""} for i, t, _, _ in ITEMS
        ]
        self.store.write_now(
            lambda tx: context_requests.record_fetched(
                tx, f"r-{proposal_id}", wave_id=self.wave_id, outcomes=outcomes
            )
        )
        return self

    def propose(
        self, proposal_id: str = "p-action", *, title: str = "edit src/http/retry.py",
        kind: str = "edit_file", risk: str = "medium", fields=(), body: str = "", diffs=(),
        notes=(), payload=None, deadline_s: float | None = None, revises: str | None = None,
        changes=(), card=None,
    ) -> Scene:  # fmt: skip
        """An action that waits."""
        shown = {
            "type": kind, "summary": title, "fields": [list(pair) for pair in fields],
            "body": body, "diffs": [dict(zip(("path", "before", "after"), d, strict=True)) for d in diffs],
            "notes": list(notes), "payload": payload or {"path": "src/http/retry.py"},
        }  # fmt: skip
        if changes:
            shown["changes"] = list(changes)
        if card:
            shown["card"] = card

        def step(tx: Tx) -> None:
            proposals.create(
                tx, proposal_id=proposal_id, kind="action", session_id=self.session_id,
                wave_id=self.wave_id, title=title, body=shown, risk=risk, deadline_s=deadline_s,
                revises=revises,
            )  # fmt: skip
            sessions.set_status(
                tx, self.session_id, "waiting", detail=SessionWaiting(for_="proposal", why=title)
            )

        self.store.write_now(step)
        return self

    def shift_attention(self, proposal_id: str = "p-profile") -> Scene:
        """A change of the attention profile for three waves, as the guard let it through."""
        base = load_shipped()
        change = parse_change(
            json.dumps(
                {
                    "base_profile_version": base.version,
                    "effective_waves": 3,
                    "bands": {"situational": {"target_tokens": 80_000},
                              "exploration": {"target_tokens": 8_000, "max_tokens": 20_000}},
                    "rules": [{"rule_id": base.rules[0].rule_id, "priority_weight": 2.5}],
                    "reason": "the weather decides this task: what it says comes first",
                }
            )
        )  # fmt: skip
        after = apply_change(change, base)
        body = proposal_body(change, base, after)

        def step(tx: Tx) -> None:
            proposals.create(
                tx, proposal_id=proposal_id, kind="profile", session_id=self.session_id,
                wave_id=self.wave_id, title=change_title(change), body=body, risk="medium",
            )  # fmt: skip

        self.store.write_now(step)
        return self

    def edit(self, proposal_id: str = "p-action", **more) -> Scene:
        """A change to a file, as a diff."""
        return self.propose(
            proposal_id,
            fields=(("file", "src/http/retry.py"), ("change", "1 line")),
            diffs=(("src/http/retry.py", BEFORE, AFTER),),
            **more,
        )

    def review(self, proposal_id: str = "p-review", **more) -> Scene:
        """A review on GitHub."""
        return self.propose(
            proposal_id, title="gh pr review 24 --request-changes", kind="github",
            fields=(("repository", "acme/api"), ("pull request", "24"),
                    ("verdict", "request changes")),
            body=REVIEW, **more,
        )  # fmt: skip

    def ran(self, title: str, summary: str, *, fails: str = "") -> Scene:
        """An approved action that ran."""

        def step(tx: Tx) -> None:
            planned = outbox.plan(
                tx, wave_id=self.wave_id, session_id=self.session_id, position=0,
                key=f"k-{title}", action_type="edit_file", title=title, payload={},
            )  # fmt: skip
            outbox.enqueue(tx, planned.action_id, proposal_id=None, payload={})
            outbox.dispatch(tx, planned.action_id, "me")
            if fails:
                outbox.fail(tx, planned.action_id, status="failure", summary=fails, detail={})
            else:
                outbox.confirm(tx, planned.action_id, summary=summary, detail={})

        self.store.write_now(step)
        return self

    def enter(self, entered: str, /, **detail) -> Scene:
        event = read_part(detail_type(f"session.{entered}"), detail)
        self.store.write_now(
            lambda tx: sessions.set_status(
                tx, self.session_id, entered, detail=event, result=detail or None
            )
        )
        return self

    def fail(self, message: str) -> Scene:
        def step(tx: Tx) -> None:
            waves.fail(tx, self.wave_id, retryable=True, error_class="network", message=message)
            sessions.set_status(
                tx,
                self.session_id,
                "failed",
                error_code="network",
                detail=SessionFailed(message=message),
            )

        self.store.write_now(step)
        return self


ALL = ("observing", "orienting", "deciding", "acting", "learning", "completed")


def to_decide(scene: Scene) -> Scene:
    """One wave done, its context read; the second decides."""
    scene.begin().wave(*ALL[:4]).say(
        "agent",
        "I have the diff. To judge the retry change I need to see how the client resets its "
        "backoff, and the test that covered it before.",
    )
    scene.ask().decide("p-context", "approved").advance("learning", "completed")
    scene.enter("running").wave("observing").fetched()
    scene.store.write_now(lambda tx: waves.advance(tx, scene.wave_id, "orienting"))
    scene.store.write_now(lambda tx: scene._packet(tx, scene.wave_id, 2))
    scene.advance("deciding").spend()
    return scene


def current(store: Store, session_id: str = "") -> State:
    """What the screen shows now, with a session open."""
    return store.read_now(lambda c: read_state(c, session_id, store.clock.now()))


def follow_rows(store: Store, state: State) -> State:
    """What the screen shows after all rows that came since."""
    now = store.clock.now()
    while batch := store.read_now(lambda c: journal.rows(c, after=state.seq)):
        named = state.name_changes(batch)
        state.take(store.read_now(lambda c, named=named: read_changes(c, named, now)))
        state.fold(batch)
    return state
