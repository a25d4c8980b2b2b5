"""The workspace of actions: the project, its sandbox, its repository and a clean environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.confined_paths import Confined
from cockpit.act.sandbox import Sandbox, detect

_SECRET = re.compile(
    r"(?i)(?:^|_)(?:api_?key|access_?key|private_?key|key|token|secret|passw(?:or)?d|passphrase|"
    r"credentials?|auth|cookie|dsn)(?:_|$)|^(?:COCKPIT_|AWS_|SSH_|GPG_|KUBECONFIG$|DOCKER_)"
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The place where actions happen.

    ``repo`` is ``owner/name`` on GitHub, or None. ``environment`` is what commands receive: this process's
    variables without those that look like secrets.
    """

    confined: Confined
    sandbox: Sandbox
    repo: str | None
    environment: Mapping[str, str]

    @property
    def root(self) -> Path:
        """The project's real root directory."""
        return self.confined.root


async def open_workspace(
    root: Path, *, repo: str | None = None, environment: Mapping[str, str] | None = None
) -> Workspace:
    """Open the workspace of the project at ``root``; tries once whether the sandbox works here.

    ``environment`` is the process's own when left out. Raises ``PathRefused``.
    """
    variables = dict(os.environ if environment is None else environment)
    return Workspace(Confined(root), await detect(variables), repo, clean_environment(variables))


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command may see: no secrets, and none that steer git."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and not name.startswith("GIT_")
    }
