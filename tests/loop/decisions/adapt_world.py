"""A project whose weather is watched by two sources, and ways to look at what waves knew of it."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copied_repository import copy_repository
from loop.loop_calc import git
from loop.scenario import ask, finish, turn
from state_for_tests import put_store

from cockpit.access.principals import PERSON, Caller
from cockpit.core.project_paths import locate_project
from cockpit.loop.decisions import profile_change_expiry
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, ProfileChangeLimits, RuntimeSettings
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.profile_changes import find_running
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves

BUDGET = 6_500


def weather_project(root: Path) -> Path:
    """Station reports, read as files, and bulletins, found by searching."""
    return copy_repository(_make_weather, root)


def _make_weather(root: Path) -> None:
    stations, bulletins = root / "stations", root / "bulletins"
    stations.mkdir()
    bulletins.mkdir()
    for number in range(1, 21):
        lines = [f"{hour:02}:00 wind {number}.{hour} m/s, {900 + hour} hPa" for hour in range(12)]
        (stations / f"s{number:02}.md").write_text(f"# Station {number}\n" + "\n".join(lines))
        alerts = [f"Storm alert {number}.{n}: gusts over ridge {n}, stay in" for n in range(8)]
        (bulletins / f"b{number:02}.txt").write_text("\n".join(alerts))
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Weather")


def weather_scenario(waves_held: int, rounds: int) -> str:
    """An agent that reads both sources, shifts its attention in wave 2, and works on to the end."""
    scope = [f"file:stations/s{n:02}.md" for n in range(1, 21)]
    scope += [f"search:alert {n}\\. in bulletins/*" for n in range(1, 21)]
    turns = [ask(*scope, when="wave = 1", text="What does the weather do?")]
    rules = [
        {"rule_id": "search", "priority_weight": 3.0},
        {"rule_id": "file", "priority_weight": 0.4},
    ]
    change = {
        "base_profile_version": 1,
        "effective_waves": waves_held,
        "reason": "a storm",
        "rules": rules,
    }
    words = "A storm is coming: the bulletins matter more than the stations."
    turns.append(turn("propose_profile_change", "wave = 2", words, **change))
    for wave in range(3, rounds):
        note = {"path": f"notes/n{wave}.md", "content": f"wave {wave}\n"}
        turns.append(turn("write_file", f"wave = {wave}", "I note what I see.", **note))
    return "".join([*turns, finish(f"wave = {rounds}", summary="watched")])


def settings_of(tmp_path: Path, **fields: Any) -> RuntimeSettings:
    given = {"token_budget": BUDGET, "limits": Limits(), **fields}
    return RuntimeSettings(user_dir=tmp_path / "user", **given)


@asynccontextmanager
async def runtime_on(root: Path, settings: RuntimeSettings) -> Any:
    async with open_runtime(locate_project(root), settings) as runtime:
        yield runtime


@dataclass(frozen=True)
class Seen:
    """What one wave knew: the profile's version, and tokens in its packet by source type."""

    ordinal: int
    version: int
    tokens: Counter[str]


def seen(store: Store, session_id: str) -> list[Seen]:
    """Every wave of a session, from its stored packet."""

    def read(connection: Any) -> list[Seen]:
        found = []
        for wave in waves.select_for_session(connection, session_id):
            packet = packets.load(connection, wave.wave_id).packet
            entries = [entry for _, entry in packet.rendered()]
            words = facts.load_texts(connection, [entry.fact_id for entry in entries])
            tokens: Counter[str] = Counter()
            for entry in entries:
                tokens[words[entry.fact_id].source_type] += entry.tokens
            found.append(Seen(wave.ordinal, packet.profile_version, tokens))
        return found

    return store.read_now(read)


@dataclass
class Desk:
    """A store with the default profile in it, and the service on it, without a session."""

    store: Store
    settings: RuntimeSettings

    @property
    def profile(self) -> Profile:
        return self.store.read_now(lambda c: profiles.load_current(c, self.name))

    @property
    def name(self) -> str:
        return profiles.initial_profile(self.settings.token_budget).profile_id

    def payload(self, **fields: Any) -> str:
        """A change of weights from the current version, with ``fields`` on top."""
        body = {
            "base_profile_version": self.profile.version,
            "effective_waves": 3,
            "rules": [{"rule_id": "search", "priority_weight": 2.5}],
            "reason": "a storm",
        }
        return json.dumps(body | fields)

    def propose(
        self, payload: str, caller: Caller = PERSON, proposal_id: str | None = None, **more: Any
    ) -> DecisionOutcome:
        def step(tx: Tx) -> DecisionOutcome:
            known = {"profile_id": self.name, "proposal_id": proposal_id or tx.ids.new("p"), **more}
            return propose_profile_change(tx, self.settings, payload, caller, **known)

        return self.store.write_now(step)

    def decide(
        self, proposal_id: str, verdict: Any = "approved", caller: Caller = PERSON, **more: Any
    ) -> DecisionOutcome:
        return self.store.write_now(
            lambda tx: decide_proposal(
                tx, self.settings, proposal_id, verdict, caller, kind="profile", **more
            )
        )

    def begin(self, measure: Any = None) -> Any:
        """A wave begins."""
        given = () if measure is None else (measure,)
        return self.store.write_now(
            lambda tx: profile_change_expiry.pin_profile(tx, self.settings, self.name, *given)
        )

    def roll_back(self, caller: Caller = PERSON, **more: Any) -> Profile:
        return self.store.write_now(
            lambda tx: profile_change_expiry.roll_back_profile(
                tx, self.settings, self.name, caller, **more
            )
        )

    def running(self) -> Any:
        return self.store.read_now(lambda c: find_running(c, self.name))

    def versions(self) -> list[int]:
        found = self.store.read_now(lambda c: profiles.select_versions(c, self.name))
        return [version.version for version in found]

    def actions(self, prefix: str = "orientation.profile.") -> list[str]:
        """The journal's rows of that kind, in order."""
        rows = self.store.read_now(
            lambda c: c.execute("SELECT action FROM journal ORDER BY seq").fetchall()
        )
        return [action for (action,) in rows if action.startswith(prefix)]

    def codes(self) -> list[str]:
        rows = self.store.read_now(
            lambda c: c.execute(
                "SELECT error_code FROM journal WHERE action='orientation.profile.rejected'"
            ).fetchall()
        )
        return [code for (code,) in rows]


def desk(path: Path, clock: Any = None, ids: Any = None, **limits: Any) -> Desk:
    """Open a store at ``path`` with the shipped profile as version 1."""
    store = Store.open(put_store(path), clock, ids)
    settings = RuntimeSettings(adaptation=ProfileChangeLimits(**limits))

    def ensure(tx: Tx) -> None:
        profiles.ensure_default(tx, settings.token_budget)

    store.write_now(ensure)
    return Desk(store, settings)
