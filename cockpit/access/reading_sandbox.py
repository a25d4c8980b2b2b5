"""The sandbox in which git reads a checkout, as :mod:`cockpit.access.run_program` asks for it.

What has a sandbox lies above this floor. A process names it once, when it opens its project; before that,
and where there is none, git reads as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from cockpit.access.git_overrides import ListedSettings


class GitStart(Struct, frozen=True):
    """How one git is started: its words, its environment, and open files that it inherits."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    files: tuple[int, ...] = ()
    confined: bool = False


class ReadingSandbox(Protocol):
    """Where git meets what a project's commands can have written."""

    def confine_reading(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        listed: ListedSettings,
    ) -> AbstractAsyncContextManager[GitStart]:
        """Yield the start of a git that only reads; ``environment`` is without the listed overrides."""

    async def confine_filters(self, cwd: Path, listed: ListedSettings) -> list[tuple[str, str]]:
        """Return settings by which a git that writes runs the user's filters in the sandbox."""


_named: list[ReadingSandbox] = []


def use_reading_sandbox(sandbox: ReadingSandbox | None) -> None:
    """Let every git of this process read checkouts in ``sandbox``; None: as it is."""
    _named[:] = [] if sandbox is None else [sandbox]


def reading_sandbox() -> ReadingSandbox | None:
    """Return what was named last."""
    return _named[0] if _named else None
