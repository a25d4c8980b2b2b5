"""The door to the sandbox in which git reads checkouts, for whoever opens a project.

Named by :func:`cockpit.access.reading_sandbox.use_reading_sandbox`. See ``docs/reference/security.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.access.git_overrides import ListedSettings
    from cockpit.access.reading_sandbox import GitStart


class CheckoutReader:
    """The sandbox of checkouts; what it consists of is loaded when git first reads one."""

    def confine_reading(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        listed: ListedSettings,
    ) -> AbstractAsyncContextManager[GitStart]:
        from cockpit.act.sandbox.read_checkout import CheckoutSandbox

        return CheckoutSandbox().confine_reading(argv, cwd, environment, listed)

    async def confine_filters(self, cwd: Path, listed: ListedSettings) -> list[tuple[str, str]]:
        from cockpit.act.sandbox.read_checkout import CheckoutSandbox

        return await CheckoutSandbox().confine_filters(cwd, listed)
