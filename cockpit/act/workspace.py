"""The workspace of actions: the project, its sandbox, its repository and a clean environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.sandbox.bubblewrap import Sandbox, detect
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.act.sandbox.variables import clean_environment


class Workspace(Struct, frozen=True):
    """The place where actions happen.

    ``repo`` is ``owner/name`` on GitHub, or None. ``environment`` is what commands receive: those of this
    process's variables that are known to be harmless, and those that the user names.
    """

    confined: Confined
    sandbox: Sandbox
    repo: str | None
    environment: Mapping[str, str]
    on_output: Callable[[bytes], object] | None = None
    """Receives what a running command writes, as it came."""

    @property
    def root(self) -> Path:
        """The project's real root directory."""
        return self.confined.root


async def open_workspace(
    root: Path,
    *,
    repo: str | None = None,
    environment: Mapping[str, str] | None = None,
    choices: SandboxChoices | None = None,
) -> Workspace:
    """Open the workspace of the project at ``root``; tries once whether the sandbox works here.

    ``environment`` is the process's own when left out; ``choices`` are the user's about the sandbox. Raises
    ``PathRefused``.
    """
    variables = dict(os.environ if environment is None else environment)
    sandbox = await detect(variables, choices)
    cleaned = clean_environment(variables, sandbox.choices.variables)
    return Workspace(Confined(root), sandbox, repo, cleaned)
