"""``gh:COMMAND``: the output of a ``gh`` command that only reads, such as ``gh:issue list``.

The command is parsed against the closed table of :mod:`cockpit.access.gh_table` and runs in this project's
repository. See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import shlex

from msgspec import Struct

from cockpit.access.gh_command import parse_gh
from cockpit.core.canonical_json import text_digest
from cockpit.core.text import pluralize
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.preview_cost import Preview, estimate_remote
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.github import check_gh_read, run_gh_read
from cockpit.store.context.facts import Fact

MAX_OUTPUT = 2_000_000
"""Bytes of output; a command with more cannot be read."""

_AREAS_OF_A_REPOSITORY = frozenset({"pr", "issue", "run", "workflow", "release", "label"})
_OUTLINED_LINES = 20


class GhReadSource(Struct, frozen=True):
    """Reads the output of one ``gh`` command."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """Ask nothing of GitHub."""
        check_gh_read(ground, f"gh:{item.ref}", shlex.split(item.ref))
        return await estimate_remote(item, ground)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact with the whole output; its outline has the first lines."""
        text = await _output(item, ground)
        lines = text.splitlines()
        more = len(lines) - _OUTLINED_LINES
        head = lines[:_OUTLINED_LINES] + ([f"… {pluralize(more, 'more line')}"] if more > 0 else [])
        return [
            make_fact(
                item,
                text,
                outline="\n".join(head),
                reference=f"gh {item.ref}: {_count_lines(text)}",
                provenance={"gh": item.ref, "repo": ground.repo, "sha256": text_digest(text)},
                key=item.ref,
            )
        ]


async def _output(item: ScopeItem, ground: ProjectSnapshot) -> str:
    words = shlex.split(item.ref)
    command = parse_gh(words, project_repo=ground.repo)
    if ground.repo and command.area in _AREAS_OF_A_REPOSITORY and "--repo" not in command.argv:
        words += ["--repo", ground.repo]
    done = await run_gh_read(ground, f"gh:{item.ref}", words, MAX_OUTPUT)
    return done.text.replace("\r\n", "\n").rstrip("\n") or "(gh printed nothing)"


def _count_lines(text: str) -> str:
    return pluralize(len(text.splitlines()), "line")
