"""What the repository asks of a commit and cockpit's own commits do not do: hooks and signatures.

See ``docs/reference/chains.md``, the report.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from cockpit.act.commit_hooks import find_hooks
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.tasks.git import try_git

_HOOKS = ("pre-commit", "commit-msg", "pre-merge-commit")
_OF_CHAIN = "SELECT session_id, task_id FROM task_runs WHERE chain_id=?1 AND session_id IS NOT NULL"
# The built-in agent's commits, and those of commands and external agents.
_FAILED = f"""\
WITH of_chain AS ({_OF_CHAIN})
SELECT of_chain.task_id, coalesce(json_extract(detail_json, '$.message'),
                                  json_extract(detail_json, '$.summary'), '')
FROM journal JOIN of_chain USING (session_id)
WHERE (action='action.failed' AND (json_extract(detail_json, '$.type')='git_commit'
                                   OR json_extract(detail_json, '$.title') LIKE '%git commit%'))
   OR (action='runner.tool_ended' AND json_extract(detail_json, '$.failed')
       AND json_extract(detail_json, '$.title') LIKE '%git commit%')
ORDER BY seq
"""  # noqa: S608 - fixed text
_LONGEST = 300


async def describe_commit_checks(
    store: Store, place: ProjectPaths, chain: Chain
) -> tuple[str, ...]:
    """Return sentences for the report; none where the repository asks for nothing of the kind."""
    if not place.git:
        return ()
    hooks = (await find_hooks(place.home, _HOOKS)).names
    question = ("config", "--type=bool", "--show-scope", "--get-all", "commit.gpgSign")
    values = [line.split("\t") for line in (await try_git(place.home, *question)).text.splitlines()]
    own = [
        value for scope, value in values if scope != "command"
    ]  # cockpit's own git signs nothing
    signs = own[-1:] == ["true"]
    if not (hooks or signs):
        return ()
    failed = await store.read(lambda connection: _read_failed(connection, chain))
    return tuple(_describe(hooks, signs, failed))


def _read_failed(connection: sqlite3.Connection, chain: Chain) -> dict[str, str]:
    """Return the last refusal of a commit, by task."""
    return dict(connection.execute(_FAILED, (chain.chain_id,)).fetchall())


def _describe(hooks: tuple[str, ...], signs: bool, failed: dict[str, str]) -> Iterator[str]:
    if hooks:
        yield (
            f"The repository has hooks ({', '.join(hooks)}). cockpit's commits and merges run none: run them"
            " before you merge."
        )
    if signs:
        yield (
            "The repository signs commits (`commit.gpgSign`). cockpit's commits and merges are not signed: it"
            " has no key of yours."
        )
    for task_id, message in failed.items():
        words = " ".join(message.split())
        yield f"A commit of the agent of {task_id} failed: {words[:_LONGEST]}"
