"""The context that every phase of a wave gets: the engine of the project, the session and the wave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from cockpit.act.workspace import Workspace
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.skills.skill import Skill
from cockpit.decide.choose_model import choose_model
from cockpit.decide.context_window import fit_budget
from cockpit.decide.model import Model
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.intake.roles import NOBODY, LoadedRoles, Role, load_roles
from cockpit.loop.intake.task_types import TaskType
from cockpit.loop.knowledge.librarian import Librarian
from cockpit.loop.runtime_settings import DEFAULT_DEADLINE_S, RuntimeSettings
from cockpit.loop.skills.project_skills import ProjectSkills, open_project_skills
from cockpit.loop.tools.added_tools import AddedTools
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import Detail
from cockpit.store.sessions.sessions import Session
from cockpit.store.sessions.waves import Wave

EVENT_LEASE_S = 86_400.0
"""Seconds that a wave leases its events for. While the wave is open nobody else claims them."""


class Engine(Struct, frozen=True):
    """Everything that the waves of one project share; opened once per runtime."""

    store: Store
    place: ProjectPaths
    settings: RuntimeSettings
    task_types: Mapping[str, TaskType]
    """The task types by name."""
    ground: Workspace
    """Where actions run."""
    change_waiter: ChangeWaiter
    repo: str | None
    """``owner/name`` of the project on GitHub, where one remote names it."""
    models: dict[str | None, Model] = field(default_factory=dict)
    loaded_roles: list[LoadedRoles] = field(default_factory=list)
    """The roles, once they were needed."""
    shelves: list[ProjectSkills] = field(default_factory=list)
    """the project's skills, once it was needed."""
    librarians: list[Librarian] = field(default_factory=list)
    """The librarian, once it was needed."""
    added: AddedTools | None = None
    """The tools beside cockpit's own; None where there can be none."""
    type_problems: Sequence[str] = ()
    """One sentence for each task-type file that is not used because it is invalid."""

    @property
    def librarian(self) -> Librarian:
        """The index of what the project says about itself."""
        if not self.librarians:
            knowledge = self.settings.knowledge
            self.librarians.append(Librarian(self.place, knowledge, self.store, self._read_skills))
        return self.librarians[0]

    def _read_skills(self) -> list[Skill]:
        """Return the skills for the index."""
        return list(self.skills.refresh().skills.values())

    @property
    def skills(self) -> ProjectSkills:
        """The skills of cockpit, the user and the project; read when it is refreshed."""
        if not self.shelves:
            settings = self.settings
            self.shelves.append(
                open_project_skills(self.place, settings.user_dir, settings.environment)
            )
        return self.shelves[0]

    def model(self, name: str | None) -> Model:
        """Return the model of that name, or the default one; the same object for every call.

        Raises ``ModelError``.
        """
        model = self.models.get(name)
        if model is None:
            environment = {**os.environ, **self.settings.environment}
            model = self.models[name] = choose_model(
                name,
                config=self.settings.model,
                env=environment,
                sleep=self.store.clock.sleep,
            )
        return model

    async def fit_budget(self, model: str) -> int:
        """Return the token budget of packets for the model of that full name."""
        settings = self.settings
        return await asyncio.to_thread(fit_budget, model, settings.token_budget, settings.model)

    def close(self) -> None:
        """Close what was opened when it was first needed."""
        for librarian in self.librarians:
            librarian.close()

    def role(self, name: str) -> Role | None:
        """Return the role of that name; None for a session without a role ('').

        A role that does not exist can do nothing but finish. Roles come from the main checkout: an edit
        in a task's own worktree gives no rights.
        """
        return self._load_roles().roles.get(name, NOBODY) if name else None

    def file_problems(self) -> tuple[str, ...]:
        """Return one sentence for each file of a task type or a role that is not used."""
        return (*self.type_problems, *self._load_roles().problems)

    def _load_roles(self) -> LoadedRoles:
        if not self.loaded_roles:
            self.loaded_roles.append(load_roles(self.place.home, self.settings.user_dir))
        return self.loaded_roles[0]


class WaveContext(Struct, frozen=True):
    """One wave of one session, as a phase sees it."""

    engine: Engine
    session: Session
    wave: Wave

    @property
    def store(self) -> Store:
        return self.engine.store

    @property
    def proposal_deadline_s(self) -> float | None:
        """Seconds until a proposal of this session expires; None while a user is at the screen."""
        if self.session.interactive:
            return None
        return float(self.session.limits.get("deadline_s", DEFAULT_DEADLINE_S))

    def journal(
        self,
        tx: Tx,
        event: Detail,
        *,
        actor: str = "engine",
        result: str = "ok",
        error_code: str = "",
        latency_ms: int | None = None,
        at: str = "",
    ) -> None:
        """Append a journal row that belongs to this wave."""
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
            at=at,
        )
