"""Every guard of cockpit's own: its name, what it refuses and why, in the order in which they are asked.

See ``docs/reference/guards.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.act.guards.action_guard import ActionGuard
from cockpit.act.guards.blind_write import BlindWriteGuard
from cockpit.act.guards.command_guard import CommandGuard, ReadingGuard
from cockpit.act.guards.github_guard import GitHubGuard
from cockpit.act.guards.path_guard import PathGuard
from cockpit.act.guards.redundant_read import RedundantReadGuard
from cockpit.act.guards.secret_guard import SecretGuard
from cockpit.act.guards.unchanged_failure import UnchangedFailureGuard


class RegisteredGuard(Struct, frozen=True):
    """One guard of the registry."""

    name: str
    refuses: str
    """What it refuses, as a phrase."""
    why: str
    make: Callable[[Confined], ActionGuard]


GUARDS: tuple[RegisteredGuard, ...] = (
    RegisteredGuard(
        "path",
        "paths outside the project, cockpit's state, Git's hooks and configuration",
        "no action may reach them",
        PathGuard,
    ),
    RegisteredGuard(
        "secret",
        "arguments that contain a key, a token or a password",
        "they would be stored and shown",
        lambda _: SecretGuard(),
    ),
    RegisteredGuard(
        "github",
        "`gh` commands that are not known, that read, or that name another repository",
        "reads are context requests; writes go to this project",
        lambda _: GitHubGuard(),
    ),
    RegisteredGuard(
        "command",
        "privilege escalation, formatting disks, stopping the machine, cockpit's own approving commands",
        "they are never run",
        lambda _: CommandGuard(),
    ),
    RegisteredGuard(
        "reading",
        "a file of another revision (`git show REVISION:PATH`)",
        "the gateway reads the project as it is now",
        ReadingGuard,
    ),
    RegisteredGuard(
        "unchanged_failure",
        "a command that failed before, if nothing has changed since and its failure is in the packet",
        "it would fail again",
        lambda _: UnchangedFailureGuard(),
    ),
    RegisteredGuard(
        "blind_write",
        "a write to an existing file of which the packet has nothing",
        "the agent would overwrite what it has not seen",
        BlindWriteGuard,
    ),
    RegisteredGuard(
        "redundant_read",
        "a request for text that is in the packet",
        "it would be in the prompt twice",
        RedundantReadGuard,
    ),
)
"""In the order in which they are asked; the first refusal counts."""


def standard_guards(confined: Confined) -> tuple[ActionGuard, ...]:
    """Return every guard of the registry, in its order."""
    return tuple(guard.make(confined) for guard in GUARDS)
