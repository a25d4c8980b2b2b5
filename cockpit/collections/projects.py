"""The projects that cockpit knows on this machine, with what waits in each. They are for the user alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cockpit.access.user_presence import require_no_agent
from cockpit.collections.collection import Collection, View
from cockpit.core.clock import format_time

if TYPE_CHECKING:
    from cockpit.loop.all_projects.project_reader import ProjectState


def _read(view: View) -> Sequence[ProjectState]:
    from cockpit.loop.all_projects.follow_projects import read_all

    require_no_agent("a look at all projects")
    return list(read_all().values())


def _find(view: View, name: str) -> ProjectState:
    from cockpit.core.project import known_projects

    key = known_projects.find_known(name).key
    return next(row for row in _read(view) if row.project.key == key)


def _body(row: ProjectState) -> dict[str, Any]:
    project = row.project
    seen = datetime.fromtimestamp(project.seen_ns / 1e9, UTC)
    return {
        "project": project.name,
        "key": project.key,
        "home": str(project.home),
        "identity": str(project.identity),
        "store": str(project.database),
        "seen_at": format_time(seen),
        "branch": row.branch,
        "state": row.condition,
        "problem": row.problem,
        "sessions": row.running,
        "external_agents": row.agents,
        "chains": row.chains,
        "waiting": row.waiting,
    }


COLLECTION: Collection[ProjectState] = Collection(
    name="projects",
    command="projects",
    title="Projects",
    key="alt+a",
    summary="List, add and forget known projects.",
    help="""List, add and forget the projects that cockpit knows on this machine, with what waits in each.

    A project is added when you first use cockpit in it. `cockpit --all` shows all of them. PROJECT is a path
    or a name.
    """,
    examples=("cockpit projects", "cockpit projects add ~/work/api"),
    row="PROJECT",
    sample="~/work/api",
    columns={
        "PROJECT": lambda row: row.project.name,
        "BRANCH": lambda row: row.branch or "–",
        "STATE": lambda row: row.condition,
        "SESSIONS": lambda row: str(row.running),
        "CHAINS": lambda row: str(row.chains),
        "AGENTS": lambda row: str(row.agents),
        "WAITING": lambda row: str(row.waiting),
        "WHERE": lambda row: str(row.project.home),
    },
    read=_read,
    find=_find,
    none="No projects yet. Use cockpit in a repository, or `cockpit projects add PATH`.",
    body=_body,
    scope="",
    source="files",
    reads_files=True,
)
