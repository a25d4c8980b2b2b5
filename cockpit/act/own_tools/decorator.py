"""The decorator that marks a function as a tool: ``from cockpit import tool``.

It changes nothing about the function, so that tests call it as before. cockpit finds it by the syntax of the
file and imports the file only in the sandbox. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., object])

MARK = "__cockpit_tool__"
"""The attribute of a function that is a tool."""


class MissingInput(Exception):
    """What a tool raises that needs something read before it can answer.

    ``items`` are scope items, such as ``file:config.toml``. The session reads them, with approval as usual,
    and its agent calls the tool again.
    """

    def __init__(self, why: str, *items: str) -> None:
        super().__init__(why)
        self.items = items


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    aliases: Sequence[str] = (),
    effects: Literal["reads", "writes"] = "writes",
    timeout_s: int = 60,
) -> Callable[[Function], Function]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    aliases: Sequence[str] = (),
    effects: Literal["reads", "writes"] = "writes",
    timeout_s: int = 60,
) -> Function | Callable[[Function], Function]:
    """Mark a function as a tool of cockpit's agents.

    ``name`` and ``description`` default to the function's name and its docstring. ``effects="reads"`` runs it
    without the right to write. ``timeout_s`` is 1 to 600 seconds. ``name`` is a literal: cockpit reads it
    without running the file.
    """

    def mark(marked: Function) -> Function:
        setattr(marked, MARK, (name, description, tuple(aliases), effects, timeout_s))
        return marked

    return mark if function is None else mark(function)
