"""Ask the user once whether to load a project's own settings, task types and roles."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cockpit.commands.terminal import is_terminal, say
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.core.project.project_trust import LoadableFile
    from cockpit.core.project_paths import ProjectPaths

Ask = Callable[[str, str], bool]
"""Shows a question with a text, and returns whether the user agrees."""

_announced: set[str] = set()


def settle_trust(place: ProjectPaths, ask: Ask | None = None) -> list[str]:
    """Ask about files that the user has not agreed to; return the names of those that are not loaded.

    Without ``ask`` and without a terminal nothing is asked: cockpit says once on stderr that it goes on
    without them. Projects without such files are never asked about.
    """
    from cockpit.access.user_presence import find_agent
    from cockpit.core.project.project_trust import list_loadable, list_untrusted, write_trust

    untrusted = list_untrusted(place.home)
    if not untrusted:
        return []
    if ask is None and is_terminal(sys.stdin) and is_terminal(sys.stderr):
        ask = _ask_on_terminal
    # Neither the holder of a token nor an agent's shell is the user.
    is_user = not os.environ.get("COCKPIT_TOKEN") and not find_agent(counts_cockpit=False)
    if ask is not None and is_user:
        title = f"Load {pluralize(len(untrusted), 'file')} of this project? {place.home}"
        if ask(title, describe_files(untrusted)):
            agreed = {file.name: file.digest for file in untrusted}
            now = list_loadable(place.home)
            # What changed while the user read is not what they agreed to.
            write_trust(
                place,
                [file for file in now if file.trusted or agreed.get(file.name) == file.digest],
            )
            return [file.name for file in list_untrusted(place.home)]
    names = [file.name for file in untrusted]
    if str(place.home) not in _announced:
        _announced.add(str(place.home))
        say(
            f"cockpit: .cockpit of this project is not loaded, because you have not trusted it:"
            f" {', '.join(names)}. `cockpit trust` shows and trusts it."
        )
    return names


def describe_files(files: Sequence[LoadableFile]) -> str:
    """Return the files with their content; for one that was trusted before, the difference."""
    parts = [
        "cockpit loads these files from the repository: settings, which can only tighten yours, and task"
        " types and roles, which are part of prompts and can name what is read without asking."
    ]
    for file in files:
        if file.before is None:
            parts.append(f"── .cockpit/{file.name} (new)\n{_indent(file.text)}")
            continue
        lines = difflib.unified_diff(
            file.before.splitlines(), file.text.splitlines(), "trusted", "now", lineterm="", n=2
        )
        shown = "\n".join(lines) or "(only characters that are not shown differ)"
        parts.append(f"── .cockpit/{file.name} (changed)\n{_indent(shown)}")
    return "\n\n".join(parts)


def _indent(text: str) -> str:
    # In front of every line, so that no content can pass for words of cockpit.
    return "\n".join(f"│ {line}" for line in text.splitlines())


def _ask_on_terminal(title: str, text: str) -> bool:
    import click

    say(f"{text}\n\n{title}")
    return click.confirm("Trust exactly this content?", default=False, err=True)
