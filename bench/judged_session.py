"""A session in a real store whose waves are judged; its weights change as the loop itself suggests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from cockpit.learn.decision_quality import measure_version
from cockpit.learn.judge_waves import judge_after_wave
from cockpit.loop.decisions.profile_change_expiry import pin_profile
from cockpit.loop.decisions.suggest_weights import suggest_weights
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import Fact
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, plans, sessions, waves
from cockpit.store.sessions.waves import Wave


class JudgedSession:
    """One session, wave by wave: ``begin``, then ``end`` with what its agent asks for."""

    def __init__(
        self, store: Store, settings: RuntimeSettings, profile_id: str, *, adapts: bool
    ) -> None:
        self._store = store
        self._settings = settings
        self._adapts = adapts
        self._asked: tuple[str, Sequence[str]] | None = None
        self.session = store.write_now(
            lambda tx: sessions.create(
                tx, task_type="investigate", title="bench", words="bench", target={}, model="none",
                policy="ask", interactive=False, root=store.path.parent, rev=None,
                profile_id=profile_id, limits={}, project="bench", branch="",
            )
        )  # fmt: skip

    def begin(self, observed: Sequence[Fact]) -> tuple[Wave, Profile]:
        """Begin a wave that observes these facts; return it with the profile that it runs under."""

        def write(tx: Tx) -> tuple[Wave, Profile]:
            session = self.session
            wave = waves.create(tx, session_id=session.session_id, trace_id=session.trace_id)
            pinned = pin_profile(tx, self._settings, session.profile_id, measure_version, wave)
            waves.advance(tx, wave.wave_id, "observing", profile_version=pinned.version)
            if self._asked is not None:
                request_id, items = self._asked
                context_requests.apply_decision(
                    tx, request_id, "approved", approved=items, decided_by="person"
                )
            facts.record(
                tx, session_id=session.session_id, wave_id=wave.wave_id, ordinal=wave.ordinal,
                pinned_now=wave.pinned_now, facts=observed,
            )  # fmt: skip
            waves.advance(tx, wave.wave_id, "orienting")
            return wave, profiles.load(tx.connection, session.profile_id, pinned.version)

        return self._store.write_now(write)

    def end(
        self,
        wave: Wave,
        packet: Packet,
        items: Sequence[str],
        *,
        text: str = "",
        arguments: Mapping[str, Any] | None = None,
        act: Callable[[Tx], object] = lambda _tx: None,
    ) -> None:
        """Store the wave's packet and its plan, ask for ``items``, and learn.

        ``text`` and ``arguments`` are what the agent says and calls; ``act`` stores what it does beside.
        """
        session_id, wave_id = self.session.session_id, wave.wave_id
        call = {"call_id": "ask", "name": "ask", "arguments": dict(arguments or {}), "error": ""}

        def write(tx: Tx) -> None:
            packet_id = packets.insert(
                tx, wave_id, packet, pinned_now=wave.pinned_now, session_id=session_id
            )
            waves.advance(tx, wave_id, "deciding", packet_id=packet_id)
            calls = [call] if items or arguments else []
            plans.commit(
                tx, wave_id=wave_id, session_id=session_id, text=text, calls=calls, stop="end"
            )
            waves.advance(tx, wave_id, "acting")
            act(tx)
            self._asked = None
            if items:
                asked = context_requests.create(
                    tx, request_id=f"q-{wave_id}", session_id=session_id, wave_id=wave_id,
                    call_id="ask", purpose="decide", question="what is there?",
                    items=[{"item": item, "refused": ""} for item in items],
                )  # fmt: skip
                self._asked = (asked.request_id, items)
            waves.advance(tx, wave_id, "learning")
            judged = judge_after_wave(tx, waves.advance(tx, wave_id, "completed"))
            flagged = any(each.assessment.missed or each.assessment.regrets for each in judged)
            if self._adapts and flagged:
                suggest_weights(tx, self._context(wave))

        self._store.write_now(write)

    def _context(self, wave: Wave) -> WaveContext:
        """Return what the suggestion reads of a wave's context."""
        engine = SimpleNamespace(settings=self._settings)
        context = SimpleNamespace(
            session=self.session, wave=wave, engine=engine, proposal_deadline_s=None
        )
        return cast(WaveContext, context)
