"""The record of one command of the prompt. Specified in ``docs/reference/screen.md``, commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.host import Host


class CommandRefused(CockpitError):
    """A command of the prompt cannot do what its words ask."""

    code = "usage"


class PromptCommand(Struct, frozen=True):
    """One command of the screen in the prompt."""

    name: str
    """The command without its slash."""
    hint: str
    """What may follow it and what it does, for the completion."""
    run: Callable[[Host, str], Awaitable[None]]
    """What it does with the words behind it. Raises ``CockpitError`` with text for the user."""
    takes_words: bool = True
    """Whether words may follow."""
