"""Whether a rule's words cover a request, derived anew from the words alone, without cockpit's own shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = r"\w[\w.-]*"
"""Letters of every language: a name as people give it, no option and not hidden."""


def covers_item(words: Sequence[str], item: str, *, pull_request: int = 24) -> bool:
    """Whether a rule with these words lets ``item`` pass."""
    source, place = words[0], words[1] if len(words) > 1 else ""
    if source in ("file", "lines of"):
        folder, _, name = place.rpartition("/")
        head = f"{re.escape(folder)}/" if folder else ""
        tail = re.escape(name[1:]) if name.startswith("*.") else re.escape(name)
        body = f"{head}{_PLAIN}?{tail}" if name.startswith("*.") else f"{head}{tail}"
        lines = r":\d+(-\d+)?" if source == "lines of" else ""
        if not re.fullmatch(f"file:{body}{lines}", item):
            return False
        path = re.sub(r":\d+(-\d+)?$", "", item.removeprefix("file:"))
        return (
            path.rpartition("/")[0] == folder and path.rpartition(".")[2] == name.rpartition(".")[2]
        )
    if source == "pr":
        return item == f"pr:{pull_request}" and place == "(the task's own)"
    if source == "search in":
        return item.startswith("search:") and item.endswith(f" in {place}")
    if source == "files":
        return item == f"file:{place}"
    return item == ":".join((source, place))


def covers_command(words: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a rule with these words lets a command pass: each word, or a file of a folder in its place."""
    place = 0
    for number, pattern in enumerate(words):
        if "*" not in pattern:
            if place >= len(argv) or argv[place] != pattern:
                return False
            place += 1
            continue
        folder, _, name = pattern.partition("::")[0].rpartition("/")
        head = f"{re.escape(folder)}/" if folder else ""
        node = r"::.+" if "::" in pattern else ""
        regex = f"{head}{_PLAIN}?{re.escape(name[1:])}{node}"
        taken = 0
        while place < len(argv) and re.fullmatch(regex, argv[place]):
            place += 1
            taken += 1
        if not taken or number == 0:
            return False
    return place == len(argv)
