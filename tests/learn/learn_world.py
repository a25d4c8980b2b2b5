"""A session in a real store, moved wave by wave by hand: decisions and outcomes as they are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.store_world import begin

from cockpit.learn.judge_waves import judge_after_wave
from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns as columns
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import Fact, Level
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, outbox, plans, proposals, sessions, waves
from cockpit.store.sessions.waves import Wave


def fact(kind: str, ref: str, tokens: int = 10, *, band: str = "situational", **more: Any) -> Fact:
    """A fact of that many tokens."""
    return Fact(
        kind,
        ref,
        band,
        Level(f"{ref} in full", tokens),
        more.pop("reference", Level(ref, tokens)),
        dedupe_key=more.pop("dedupe_key", ref),
        **more,
    )


class World:
    """One session. Every wave goes through all its phases; what happens in it is told."""

    def __init__(self, store: Store, budget: int = 150_000) -> None:
        self.store = store
        self.budget = budget
        self.session = store.write_now(self._create)

    def _create(self, tx: Tx) -> sessions.Session:
        profile = profiles.ensure_default(tx, self.budget)
        session_id = begin(tx, task_type="implement", profile_id=profile.profile_id)
        return sessions.load(tx.connection, session_id)

    def begin(self, made: Sequence[Fact] = ()) -> Wave:
        """The next wave, observed and compiled, about to decide."""

        def step(tx: Tx) -> Wave:
            sid = self.session.session_id
            wave = waves.create(tx, session_id=sid, trace_id=self.session.trace_id)
            profile = profiles.load_current(tx.connection, self.session.profile_id)
            waves.advance(tx, wave.wave_id, "observing", profile_version=profile.version)
            facts.record(
                tx, session_id=sid, wave_id=wave.wave_id, ordinal=wave.ordinal,
                pinned_now=wave.pinned_now, facts=made,
            )  # fmt: skip
            waves.advance(tx, wave.wave_id, "orienting")
            packet = compile_packet(
                columns(tx.connection, sid, wave.ordinal), profile, wave.ordinal
            )
            identity = packets.insert(
                tx, wave.wave_id, packet, pinned_now=wave.pinned_now, session_id=sid
            )
            return waves.advance(tx, wave.wave_id, "deciding", packet_id=identity)

        return self.store.write_now(step)

    def decide(self, wave: Wave, *calls: tuple[str, str], text: str = "") -> None:
        """Commit a plan of ``text`` and (name, error) calls and go on to acting."""
        listed = [
            {
                "call_id": f"call-{wave.ordinal}-{place}",
                "name": name,
                "arguments": {},
                "key": f"k-{wave.wave_id}-{place}",
                "title": name,
                "error": error,
            }
            for place, (name, error) in enumerate(calls, start=1)
        ]

        def step(tx: Tx) -> None:
            plans.commit(
                tx, wave_id=wave.wave_id, session_id=wave.session_id, text=text, calls=listed,
                stop="end",
            )  # fmt: skip
            waves.advance(tx, wave.wave_id, "acting")

        self.store.write_now(step)

    def propose(
        self,
        wave: Wave,
        name: str,
        verdict: str = "approved",
        *,
        kind: str = "context",
        by: str = "person",
        body: dict[str, Any] | None = None,
        revises: str | None = None,
        narrowed: Sequence[str] | None = None,
    ) -> str:
        """A proposal of the wave, decided."""

        def step(tx: Tx) -> str:
            made = proposals.create(
                tx, proposal_id=f"p-{wave.wave_id}-{name}", kind=kind, session_id=wave.session_id,
                wave_id=wave.wave_id, title=name, body=body or {}, risk="low", revises=revises,
            )  # fmt: skip
            proposals.decide(tx, made.proposal_id, verdict, by=by, narrowed=narrowed)
            return made.proposal_id

        return self.store.write_now(step)

    def ask(self, wave: Wave, *items: str, place: int = 1, status: str = "approved") -> None:
        """A context request of the wave's call number ``place``, left pending or settled."""

        def step(tx: Tx) -> None:
            made = context_requests.create(
                tx, request_id=f"q-{wave.wave_id}-{place}", session_id=wave.session_id,
                wave_id=wave.wave_id, call_id=f"call-{wave.ordinal}-{place}", purpose="p",
                question="q",
                items=[{"item": item, "refused": ""} for item in items],
            )  # fmt: skip
            if status != "pending":
                granted = items if status == "approved" else ()
                context_requests.apply_decision(
                    tx, made.request_id, status, approved=granted, decided_by="person"
                )

        self.store.write_now(step)

    def grant(self, wave: Wave, *items: str, place: int = 1) -> None:
        """Settle a pending request of the wave: these items may be read."""
        identity = f"q-{wave.wave_id}-{place}"
        self.store.write_now(
            lambda tx: context_requests.apply_decision(
                tx, identity, "approved", approved=items, decided_by="person"
            )
        )

    def act(
        self,
        wave: Wave,
        kind: str,
        payload: dict[str, Any],
        detail: dict[str, Any] | None = None,
        *,
        place: int = 1,
        ends: str = "confirmed",
    ) -> str:
        """An action of the wave that ends as ``confirmed``, ``failed`` or ``refused``."""
        key = f"k-{wave.wave_id}-{place}"

        def step(tx: Tx) -> str:
            action = outbox.plan(
                tx, wave_id=wave.wave_id, session_id=wave.session_id, position=place, key=key,
                action_type=kind, title=kind, payload=payload,
            )  # fmt: skip
            if ends == "refused":
                outbox.drop(tx, action.action_id, "no")
                return key
            outbox.enqueue(tx, action.action_id, proposal_id=None, payload=payload)
            outbox.dispatch(tx, action.action_id, "me")
            if ends == "confirmed":
                outbox.confirm(tx, action.action_id, summary="done", detail=detail or {})
            else:
                outbox.fail(
                    tx, action.action_id, status="failure", summary="no", detail=detail or {}
                )
            return key

        return self.store.write_now(step)

    def write(self, wave: Wave, path: str, before: str, after: str, *, place: int = 1) -> str:
        """A confirmed change of a file's content."""
        body = {"path": path, "before_sha256": before, "after_sha256": after}
        return self.act(wave, "edit_file", body, place=place)

    def test(self, wave: Wave, code: int, *, place: int = 2) -> str:
        """A test run."""
        detail = {"argv": ["pytest"], "exit_code": code, "tests": {"passed": 3, "failed": code}}
        ends = "confirmed" if code == 0 else "failed"
        return self.act(wave, "run", {"argv": ["pytest"]}, detail, place=place, ends=ends)

    def end(self, wave: Wave) -> list[Feedback]:
        """Complete the wave as the loop does; the rows that this added."""

        def step(tx: Tx) -> list[Feedback]:
            if waves.load(tx.connection, wave.wave_id).phase == "deciding":
                waves.advance(tx, wave.wave_id, "acting")
            waves.advance(tx, wave.wave_id, "learning")
            return judge_after_wave(tx, waves.advance(tx, wave.wave_id, "completed"))

        return self.store.write_now(step)
