"""One permission that an external agent asks for, whatever protocol it came over.

See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from cockpit.loop.permissions.question_form import Question

OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
"""What an option of the agent's own dialog does."""


MOST_EDITS = 500
"""Changes that one request shows; readers stop at the first beyond it."""


class PermissionOption(Struct, frozen=True):
    """One answer that the agent offers."""

    option_id: str
    """The agent's id; answers are chosen by ``kind``, never by id."""
    name: str
    """The label in the agent's own dialog."""
    kind: OptionKind


class FileEdit(Struct, frozen=True):
    """One change of a file, in the agent's words: a whole text or the part that is replaced."""

    path: str
    before: str | None
    """The text that is replaced; None for a whole new text."""
    after: str
    replace_all: bool = False
    """Whether each occurrence of ``before`` is replaced."""


class ToolRequest(Struct, frozen=True):
    """One permission that an agent asks for."""

    agent: str
    """The agent's name in the registry: ``claude``, ``codex``."""
    transport: str
    """How it asked: ``acp``, ``stdio`` or ``hook``."""
    call_id: str
    """The agent's id of the tool call; '' where it has none."""
    tool: str
    """The agent's own name of the tool."""
    kind: str
    """``edit``, ``delete``, ``move``, ``execute``, ``read``, ``search``, ``fetch``, ``mcp``, ``think``
    or ``other``."""
    title: str
    input: Mapping[str, Any]
    """The agent's own arguments, unmasked. They are never stored like this."""
    edits: tuple[FileEdit, ...] = ()
    command: str = ""
    """Shell text; '' where ``argv`` is given or nothing runs."""
    argv: tuple[str, ...] = ()
    confined: bool = False
    """Whether the agent runs in our sandbox."""
    cwd: str = ""
    """The folder that it works in, absolute; '' for the worktree's top."""
    server: str = ""
    """The MCP server of an ``mcp`` call."""
    paths: tuple[str, ...] = ()
    """Files and folders that it names."""
    why: str = ""
    """The agent's reason or description."""
    options: tuple[PermissionOption, ...] = ()
    editable: bool = False
    """Whether the protocol carries changed input back."""
    questions: tuple[Question, ...] = ()
    """What it asks its user, to be answered rather than allowed."""
    announced: str = ""
    """What it called this before it asked, where that differs in kind, command or files; '' otherwise."""
    form: str = ""
    """How the answers go back: ``claude``, ``form``; '' where the protocol takes none."""


def choose_option(
    options: tuple[PermissionOption, ...], *, allowed: bool
) -> PermissionOption | None:
    """Return the narrowest option for the answer: the one that counts once; None if there is none.

    An option of kind ``allow_always`` is never chosen: what cockpit allows from now on is its user's rule.
    """
    wanted = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return option
    return None
