"""The shape of what an external agent asks permission for, read from its request while that is at hand.

It is stored with the proposal, so learning and coverage read the same. Nothing that may not become an exact
rule has a shape. See ``docs/reference/trust.md``, shapes.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.act.command_line import CommandRefused, split_command
from cockpit.learn.trust.command_shape import command_shape
from cockpit.learn.trust.path_shape import folder_pattern
from cockpit.loop.permissions.judge_tool import ToolRisk, locate_path
from cockpit.loop.permissions.tool_names import join_words
from cockpit.loop.permissions.tool_request import ToolRequest

Described = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a shape, and the paths that it has folders for."""


def describe_shape(request: ToolRequest, judged: ToolRisk, root: Path) -> Described | None:
    """Return the shape's words and paths; None for what no rule may cover."""
    if judged.denied or judged.waits or (judged.sensitive and not judged.reads):
        return None
    match request.kind:
        case "execute":
            return _command(request, root)
        case "edit" | "read" if len(set(request.paths)) == 1:
            try:
                path = locate_path(request.paths[0], root=str(root), cwd=request.cwd)
            except ValueError:
                return None
            pattern = folder_pattern(path)
            return ((request.tool, pattern), (path,)) if pattern else None
        case _:
            return None


def _command(request: ToolRequest, root: Path) -> Described | None:
    if request.cwd and Path(request.cwd) != root:
        return None  # in another folder the same words are another command
    line = request.command or join_words(list(request.argv))
    try:
        words = split_command(line)
    except CommandRefused:
        return None
    # What a shell would read in another way than it looks is left to the user.
    if line != " ".join(words):
        return None
    return command_shape(words)
