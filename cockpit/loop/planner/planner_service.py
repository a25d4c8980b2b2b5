"""What commands and the screen ask of the planner: the estimate of words, of a session, of a backlog.

Nothing is stored here. See ``docs/reference/planner.md``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from cockpit.decide.choose_model import model_named
from cockpit.loop.intake.intent import resolve
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.planner.estimate_scope import EstimatedScope, estimate_scope
from cockpit.loop.planner.estimate_session import estimate_kind, find_price
from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.loop.skills.session_skills import list_commands
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.journal.details.estimates import Expected


class EstimatedWords(Struct, frozen=True):
    """The estimate of a session that has not begun."""

    task_type: str
    title: str
    model: str
    estimate: Expected


class PlannerService(Struct, frozen=True):
    """The planner of an open project. The methods raise ``CockpitError`` with text for the user."""

    engine: Engine

    async def estimate_words(self, words: str, model: str | None = None) -> EstimatedWords:
        """Estimate the session that ``words`` would start. Raises ``IntentUnclear`` and ``ModelError``."""
        engine = self.engine
        commands = await list_commands(engine, words)
        task = await resolve(words, engine.task_types, Repository(engine.place.root), commands)
        name = self._name_model(model)
        price = await find_price(engine.settings, name)
        estimate = await engine.store.read(
            lambda c: estimate_kind(c, "session", task.task_type, name, price)
        )
        return EstimatedWords(task.task_type, task.title, name, estimate)

    async def estimate_tasks(
        self, scope: Scope, model: str | None = None, *, named: Collection[str] = ()
    ) -> EstimatedScope:
        """Estimate the open tasks of a scope, or exactly the ``named`` ones, done by all of their roles."""
        engine = self.engine
        name = self._name_model(model)
        price = await find_price(engine.settings, name)
        return await engine.store.read(lambda c: estimate_scope(c, scope, name, price, named=named))

    async def session(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's estimate as JSON values; None where it has none."""
        return await self.engine.store.read(lambda c: read_session_estimate(c, session_id))

    def _name_model(self, model: str | None) -> str:
        """Return the model's full name; an estimate needs neither its key nor its SDK."""
        settings = self.engine.settings
        return model_named(model, settings.model, {**os.environ, **settings.environment})
