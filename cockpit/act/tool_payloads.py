"""What a tool call asks for, once it has been read: one frozen record per tool.

Source: design of Act ("Actions"), RFC-003 §6.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_TIMEOUT_S = 600
"""The longest that a command may run, in seconds."""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Put ``content`` into the file ``path`` (from the project's root), new or not."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class EditFile:
    """Replace ``old`` by ``new`` in ``path``: the one place where it stands, or all of them."""

    path: str
    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Run ``argv`` (a program and its arguments; no shell) in the project's root.

    ``reason`` is for the person who decides; ``timeout_s`` is 1 to :data:`MAX_TIMEOUT_S` seconds.
    """

    argv: tuple[str, ...]
    reason: str
    timeout_s: int = 120


@dataclass(frozen=True, slots=True)
class GitHub:
    """One ``gh`` command line that writes."""

    command: str


@dataclass(frozen=True, slots=True)
class GitCommit:
    """Commit exactly ``paths`` as they are in the working tree; nothing else that is staged."""

    message: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Ask to read. ``scope`` holds scope items as text; the gateway parses them."""

    purpose: str
    question: str
    scope: tuple[str, ...]
    escalation: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The agent holds its task to be over."""

    status: Literal["done", "blocked"]
    summary: str


@dataclass(frozen=True, slots=True)
class ProposeProfileChange:
    """Ask to shift attention for some waves. What the parts mean is read and judged in Orient."""

    base_profile_version: int
    effective_waves: int
    reason: str
    bands: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Any, ...] = ()
    total_token_budget: Any = None
    namespace: Any = None
    requested_by: Any = None


Action = WriteFile | EditFile | Run | GitHub | GitCommit
Payload = Action | RequestContext | ProposeProfileChange | Finish
