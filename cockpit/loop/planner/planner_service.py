"""What commands and the screen ask of the planner: the estimate of words, of a session, of a backlog.

Nothing is stored here. See ``docs/reference/planner.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from cockpit.decide.choose_model import model_named
from cockpit.decide.known_prices import find_token_prices
from cockpit.decide.planner.estimate import Estimate
from cockpit.loop.intake.first_message import opening
from cockpit.loop.intake.intent import resolve
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.planner.estimate_kinds import family_of
from cockpit.loop.planner.estimate_scope import EstimatedScope, estimate_scope
from cockpit.loop.planner.estimate_session import (
    OUTPUT_SHARE,
    estimate_kind,
    prepare_estimate,
)
from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.loop.skills.session_skills import list_commands
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog.queue_scope import Scope


class EstimatedWords(Struct, frozen=True):
    """The estimate of a session that has not begun."""

    task_type: str
    title: str
    model: str
    size: int
    estimate: Estimate


class PlannerService(Struct, frozen=True):
    """The planner of an open project. The methods raise ``CockpitError`` with text for the user."""

    engine: Engine

    async def estimate_words(self, words: str, model: str | None = None) -> EstimatedWords:
        """Estimate the session that ``words`` would start.

        What their task type declares is looked at as when it starts, so a change is sized by its diff. Raises
        ``IntentUnclear``, ``OpeningFailed`` and ``ModelError``.
        """
        engine = self.engine
        commands = await list_commands(engine, words)
        task = await resolve(words, engine.task_types, Repository(engine.place.root), commands)
        kind = engine.task_types[task.task_type]
        name = self._name_model(model)
        opened = await opening(task, kind, engine.place, engine.repo)
        given = await prepare_estimate(
            engine, name, opened.text, opened.scope_items, in_text=opened.in_message
        )
        estimate = await engine.store.read(
            lambda c: estimate_kind(c, "session", task.task_type, family_of(name), name, given)
        )
        return EstimatedWords(task.task_type, task.title, name, given.size, estimate)

    async def estimate_tasks(
        self, scope: Scope, model: str | None = None, *, named: Collection[str] = ()
    ) -> EstimatedScope:
        """Estimate the open tasks of a scope, or exactly the ``named`` ones, done by all of their roles."""
        engine = self.engine
        name = self._name_model(model)
        price = await asyncio.to_thread(self._price, name)
        return await engine.store.read(
            lambda c: estimate_scope(c, scope, engine.place.root, name, price, named=named)
        )

    async def session(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's estimate as JSON values; None where it has none."""
        return await self.engine.store.read(lambda c: read_session_estimate(c, session_id))

    def _name_model(self, model: str | None) -> str:
        """Return the model's full name; an estimate needs neither its key nor its SDK."""
        settings = self.engine.settings
        return model_named(model, settings.model, {**os.environ, **settings.environment})

    def _price(self, model: str) -> float | None:
        prices = find_token_prices(model, self.engine.settings.model.prices.get(model))
        return None if prices is None else prices.blend(cached_share=0.0, output_share=OUTPUT_SHARE)
