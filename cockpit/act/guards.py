"""Guards: refuse a model's call before the user is asked.

A guard looks at a call and at what the session knows. It lets the call pass, or tells the model why not
and what to do instead. The first refusal counts. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.gh_command import parse_gh
from cockpit.access.gh_flags import GhRefused
from cockpit.act.command_risk import judge
from cockpit.act.preview_command import explain_read
from cockpit.act.reading.reading_commands import find_reading
from cockpit.act.text_edits import WITHHELD, bytes_digest, digest_now
from cockpit.act.tool_payloads import EditFile, GitCommit, GitHub, RequestContext, Run, WriteFile
from cockpit.act.tools import Call
from cockpit.core.canonical_json import digest
from cockpit.core.secrets import mask_value


@dataclass(frozen=True, slots=True)
class PacketLines:
    """Lines of a file that are in the current packet, at full detail.

    ``start`` and ``end`` are 1-based and inclusive; ``content_sha`` is the sha256 of the whole file that
    they were taken from; ``where`` names their place in the packet ('situational, f-12ab…');
    ``total_lines`` is the number of lines of that file, 0 when it is not known.
    """

    start: int
    end: int
    content_sha: str
    where: str = ""
    total_lines: int = 0


@dataclass(frozen=True, slots=True)
class GuardState:
    """What a session knows when its model's calls are checked.

    ``packet_files``: by path from the root, the lines that are in the current packet. ``failed_commands``:
    by :func:`argv_digest`, the value of ``changes`` when that command last failed. ``changes`` counts
    changes of the project since the session began (confirmed writes and commits, the user's messages).
    ``pinned_rev``: files are read from a revision, not from the worktree.
    """

    packet_files: Mapping[str, tuple[PacketLines, ...]] = field(default_factory=dict)
    failed_commands: Mapping[str, int] = field(default_factory=dict)
    shown_failures: Mapping[str, str] = field(default_factory=dict)
    changes: int = 0
    project_repo: str | None = None
    pinned_rev: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call: the guard's name and the message for the model."""

    guard: str
    message: str


class ActionGuard(Protocol):
    """One rule. ``name`` is its name in the journal."""

    @property
    def name(self) -> str: ...

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        """Return a refusal, or None when this rule does not object to the call."""
        ...


def argv_digest(argv: Sequence[str]) -> str:
    """Return the digest by which two commands are the same."""
    return digest(list(argv))


def first_refusal(guards: Sequence[ActionGuard], call: Call, state: GuardState) -> Refusal | None:
    """Return the first refusal of ``guards``, in their order."""
    return next((refusal for guard in guards if (refusal := guard.check(call, state))), None)


def standard_guards(confined: Confined) -> tuple[ActionGuard, ...]:
    """Return every guard, in the order in which they are asked."""
    return (
        PathGuard(confined),
        SecretGuard(),
        GitHubGuard(),
        CommandGuard(),
        ReadingGuard(confined),
        UnchangedFailureGuard(),
        BlindWriteGuard(confined),
        RedundantReadGuard(confined),
    )


@dataclass(frozen=True, slots=True)
class PathGuard:
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


@dataclass(frozen=True, slots=True)
class SecretGuard:
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


@dataclass(frozen=True, slots=True)
class GitHubGuard:
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


@dataclass(frozen=True, slots=True)
class CommandGuard:
    """Refuse commands that are never run, however they are wrapped."""

    name: str = "command"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        denied = judge(call.payload.argv).denied
        return Refusal(self.name, f"This command is not run. {denied}") if denied else None


@dataclass(frozen=True, slots=True)
class ReadingGuard:
    """Refuse a command that only reads and that no scope item replaces.

    One that scope items do replace became a context request before it came here.
    """

    confined: Confined
    name: str = "reading"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, Run):
            return None
        reading = find_reading(call.payload.argv, self.confined, pinned_rev=state.pinned_rev)
        if reading is None:
            return None
        why = reading.refusal or f"Ask with request_context for {', '.join(reading.items)}."
        return Refusal(self.name, f"Reading is not an action, so this command is not run. {why}")


@dataclass(frozen=True, slots=True)
class UnchangedFailureGuard:
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


@dataclass(frozen=True, slots=True)
class BlindWriteGuard:
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


_FILE_ITEM = re.compile(r"^file:(?P<path>.+?)(?::(?P<first>\d+)-(?P<last>\d+))?(?: @full)?$")


@dataclass(frozen=True, slots=True)
class RedundantReadGuard:
    """Refuse a context request whose lines are all in the current packet, in the same version."""

    confined: Confined
    name: str = "redundant_read"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        if not isinstance(call.payload, RequestContext) or not call.payload.scope:
            return None
        refusal = [self._standing(item.strip(), state) for item in call.payload.scope]
        if not all(refusal):
            return None
        listed = "; ".join(
            f"{item} is in your context already ({where})"
            for item, where in zip(call.payload.scope, refusal, strict=True)
        )
        return Refusal(
            self.name,
            f"Nothing was read: {listed}, unchanged. Work from what you have, or ask for what is "
            "missing.",
        )

    def _standing(self, item: str, state: GuardState) -> str:
        """Return where all of ``item`` is in the packet; '' when it is not there."""
        match = _FILE_ITEM.match(item)
        if match is None:
            return ""
        try:
            path = self.confined.relative(match["path"])
        except PathRefused:
            return ""
        parts_shown = state.packet_files.get(path, ())
        if parts_shown and not state.pinned_rev:
            now = digest_now(self.confined, path)
            parts_shown = tuple(part for part in parts_shown if part.content_sha == now)
        versions = dict.fromkeys(part.content_sha for part in parts_shown)
        for version in versions:
            parts = [part for part in parts_shown if part.content_sha == version]
            first, last = self._wanted(match, path, parts, state)
            if last >= first and _covered(first, last, parts):
                places = dict.fromkeys(part.where for part in parts if part.where)
                return f"lines {first}-{last}" + (f", {', '.join(places)}" if places else "")
        return ""

    def _wanted(
        self, match: re.Match[str], path: str, parts: Sequence[PacketLines], state: GuardState
    ) -> tuple[int, int]:
        """Return the requested lines; (1, 0) when their number is not known."""
        if match["first"] is not None:
            return int(match["first"]), int(match["last"])
        total = max((part.total_lines for part in parts), default=0)
        if total or state.pinned_rev:
            return 1, total
        with self.confined.open_read(path) as file:
            data = file.read()
        return 1, data.count(b"\n") + (not data.endswith(b"\n"))


def _covered(first: int, last: int, parts: Sequence[PacketLines]) -> bool:
    at = first
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > at:
            return False
        at = max(at, part.end + 1)
    return at > last
