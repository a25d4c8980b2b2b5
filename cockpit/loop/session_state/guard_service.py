"""What the screen asks of guards of the user and of projects: a list, and the user's approvals.

See ``docs/reference/guards.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.decisions.decide_proposal import find_decider
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.session_state.list_own_guards import (
    OwnGuardRow,
    approve_shown,
    list_own_guards,
)
from cockpit.loop.tools.approve_tools import require_person
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.guards import approved_guards


class GuardService(Struct, frozen=True):
    """The guards of an open project. The methods raise ``CockpitError`` with text for the user."""

    store: Store
    settings: RuntimeSettings
    place: ProjectPaths

    async def list_own(self) -> tuple[OwnGuardRow, ...]:
        """Return the guards of the user and the project; nothing of their files is run."""
        user_dir = self.settings.user_dir
        return await self.store.read(
            lambda connection: list_own_guards(connection, self.place, user_dir)
        )

    async def approve(self, row: OwnGuardRow) -> None:
        """Approve a guard as it was shown, as the user."""
        user_dir = self.settings.user_dir
        await self._write(lambda tx: approve_shown(tx, self.place, user_dir, row))

    async def forget(self, row: OwnGuardRow) -> None:
        """Withdraw the approval of a guard, as the user."""
        await self._write(lambda tx: approved_guards.forget(tx, row.guard_id, by="person"))

    async def _write(self, step: Callable[[Tx], object]) -> None:
        def write(tx: Tx) -> None:
            require_person(find_decider(tx, self.settings))
            step(tx)

        await self.store.write(write)
