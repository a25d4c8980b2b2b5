"""The engine: what every phase of a wave works with, opened once per runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.act.workspace import ActGround
from cockpit.core.project_paths import ProjectPaths
from cockpit.decide.choose_model import choose_model
from cockpit.decide.model import Model
from cockpit.loop.change_waiter import Pulse
from cockpit.loop.intake.roles import NOBODY, Role, load_roles
from cockpit.loop.intake.task_types import TaskType
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import Detail
from cockpit.store.sessions.sessions import Session
from cockpit.store.sessions.waves import Wave


@dataclass(frozen=True, slots=True)
class Engine:
    """The store, the project and everything that a wave needs of both.

    ``repo`` is ``owner/name`` of the project on GitHub, where a remote names one.
    """

    store: Store
    place: ProjectPaths
    settings: RuntimeSettings
    types: Mapping[str, TaskType]
    ground: ActGround
    pulse: Pulse
    repo: str | None
    models: dict[str | None, Model] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)

    def model(self, name: str | None) -> Model:
        """The model of that name, or the default; the same one as long as the runtime is open.

        Raises ``ModelError``.
        """
        known = self.models.get(name)
        if known is None:
            environment = {**os.environ, **self.settings.environment}
            known = self.models[name] = choose_model(
                name,
                config=self.settings.model,
                env=environment,
                sleep=self.store.clock.sleep,
            )
        return known

    def role(self, name: str) -> Role | None:
        """The role of that name, None for a session without one. One that nobody knows can only end.

        Roles come from the main checkout: what is changed in a task's own tree gives no rights.
        Raises ``RoleInvalid``.
        """
        if not name:
            return None
        if not self.roles:
            self.roles.update(load_roles(self.place.home, self.settings.user_dir))
        return self.roles.get(name, NOBODY)


@dataclass(frozen=True, slots=True)
class Here:
    """One wave of one session, as a phase sees it."""

    engine: Engine
    session: Session
    wave: Wave

    @property
    def store(self) -> Store:
        return self.engine.store

    def journal(
        self,
        tx: Tx,
        event: Detail,
        *,
        actor: str = "engine",
        result: str = "ok",
        error_code: str = "",
        latency_ms: int | None = None,
    ) -> None:
        """Append a row that belongs to this wave."""
        tx.journal(
            event,
            actor=actor,
            session_id=self.session.session_id,
            wave_id=self.wave.wave_id,
            trace_id=self.session.trace_id,
            packet_id=self.wave.packet_id,
            result=result,
            error_code=error_code,
            latency_ms=latency_ms,
        )
