"""Every guard of cockpit's own, in the order in which they are asked: what it refuses and why.

Small ones are here, the others have modules of their own. See ``docs/reference/guards.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from cockpit.access.commands.judge_command import judge_command
from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused
from cockpit.act.guards.action_guard import ActionGuard, GuardState, Refusal, argv_digest
from cockpit.act.guards.redundant_read import RedundantReadGuard
from cockpit.act.model_tools import Call
from cockpit.act.preview_command import explain_read
from cockpit.act.reading_commands import refuse_revision
from cockpit.act.text_edits import WITHHELD, bytes_digest, digest_now
from cockpit.act.tool_payloads import EditFile, GitCommit, GitHub, Run, WriteFile
from cockpit.core.secrets import mask_value


class UnchangedFailureGuard(Struct, frozen=True):
    """Refuse a command that failed before while nothing has changed since, and its failure is in view.

    A failure that is not in the packet cannot be read there, so the command may run again.
    """

    name: str = "unchanged_failure"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        command = argv_digest(call.payload.argv)
        place = state.shown_failures.get(command)
        if place is None or state.failed_commands.get(command) != state.changes:
            return None
        return Refusal(
            self.name,
            "This command failed before, and nothing has changed since: it would fail again. Its "
            f"result is in your context as [exchange:{place}]; request_context with receipt:{place} "
            "shows all of it. Change what made it fail, or run a command that shows more.",
        )


class SecretGuard(Struct, frozen=True):
    """Refuse arguments that look like a secret: they would be stored and shown."""

    name: str = "secret"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        arguments = dict(call.arguments)
        masked = isinstance(call.payload, Run) and any("[masked:" in w for w in call.payload.argv)
        if not masked and mask_value(arguments) == arguments:
            return None
        return Refusal(
            self.name,
            f"{call.name}: the arguments contain text that looks like a key, a token or a password. "
            + WITHHELD,
        )


class PathGuard(Struct, frozen=True):
    """Refuse paths outside the project and in git's or cockpit's own files."""

    confined: Confined
    name: str = "path"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        match call.payload:
            case WriteFile(path=path) | EditFile(path=path):
                paths: tuple[str, ...] = (path,)
            case GitCommit(paths=paths):
                pass
            case _:
                return None
        try:
            for path in paths:
                self.confined.inside(path, write=True)
        except PathRefused as error:
            return Refusal(self.name, str(error))
        return None


class GitHubGuard(Struct, frozen=True):
    """Allow only known ``gh`` commands that write, to this project's repository."""

    name: str = "github"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, GitHub):
            return None
        try:
            command = parse_gh(call.payload.command, project_repo=state.project_repo)
        except GhRefused as error:
            return Refusal(self.name, str(error))
        return Refusal(self.name, explain_read(command)) if command.access == "read" else None


class CommandGuard(Struct, frozen=True):
    """Refuse commands that are never run, however they are wrapped."""

    name: str = "command"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        denied = judge_command(call.payload.argv).denied
        return Refusal(self.name, f"This command is not run. {denied}") if denied else None


class ReadingGuard(Struct, frozen=True):
    """Refuse to read a file of another revision, which the gateway shows as a diff.

    A plain command that reads became a context request before it came here.
    """

    name: str = "reading"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        if not (refusal := refuse_revision(call.payload.argv)):
            return None
        return Refusal(
            self.name, f"Reading is not an action, so this command is not run. {refusal}"
        )


class BlindWriteGuard(Struct, frozen=True):
    """Refuse to write an existing file of which nothing is in the packet.

    A write of the very content that the file has already passes.
    """

    confined: Confined
    name: str = "blind_write"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, WriteFile | EditFile):
            return None
        path = self.confined.relative(call.payload.path)
        if state.packet_files.get(path) or not self.confined.inside(path).exists():
            return None
        if isinstance(call.payload, WriteFile) and self._holds(path, call.payload.content):
            return None
        return Refusal(
            self.name,
            f"{path} exists, and nothing of it is in your context: you would write blind. Ask for it "
            f"first: request_context with file:{path}.",
        )

    def _holds(self, path: str, content: str) -> bool:
        """Whether the file already has the content to write: then no unseen text is lost."""
        return digest_now(self.confined, path) == bytes_digest(content.encode())


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
        lambda _: ReadingGuard(),
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
