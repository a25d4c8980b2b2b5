"""``cockpit projects``: the projects that cockpit knows on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import require_user_of_all
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say, show_json
from cockpit.core.clock import format_time
from cockpit.core.project import known_projects
from cockpit.loop.all_projects.follow_projects import read_all
from cockpit.loop.all_projects.project_reader import ProjectState


def _read() -> Sequence[ProjectState]:
    require_user_of_all()
    return list(read_all().values())


def _find(name: str) -> ProjectState:
    key = known_projects.find_known(name).key
    return next(state for state in _read() if state.project.key == key)


def _record(state: ProjectState) -> dict[str, Any]:
    project = state.project
    seen = datetime.fromtimestamp(project.seen_ns / 1e9, UTC)
    return {
        "project": project.name,
        "key": project.key,
        "home": str(project.home),
        "identity": str(project.identity),
        "store": str(project.database),
        "seen_at": format_time(seen),
        "branch": state.branch,
        "state": state.condition,
        "problem": state.problem,
        "sessions": state.running,
        "external_agents": state.agents,
        "chains": state.chains,
        "waiting": state.waiting,
    }


projects = Collection(
    "projects",
    short_help="List, add and forget known projects.",
    help="""List, add and forget the projects that cockpit knows on this machine, with what waits in each.

    A project is added when you first use cockpit in it. `cockpit --all` shows all of them. PROJECT is a path
    or a name.
    """,
    examples=("cockpit projects", "cockpit projects add ~/work/api"),
    row="PROJECT",
    columns={
        "PROJECT": lambda state: state.project.name,
        "BRANCH": lambda state: state.branch or "–",
        "STATE": lambda state: state.condition,
        "SESSIONS": lambda state: str(state.running),
        "CHAINS": lambda state: str(state.chains),
        "AGENTS": lambda state: str(state.agents),
        "WAITING": lambda state: str(state.waiting),
        "WHERE": lambda state: str(state.project.home),
    },
    read=_read,
    find=_find,
    body=_record,
    none="No projects yet. Use cockpit in one, or add one with `cockpit projects add PATH`.",
)


@projects.command("add", epilog=examples("cockpit projects add", "cockpit projects add ~/work/api"))
@click.argument("path", default=".")
@AS_JSON
def add(path: str, as_json: bool) -> None:
    """Add a project to the list.

    It is the one that contains PATH, by default this one. A forgotten project is listed again.
    """
    require_user_of_all()
    start = Path(os.path.realpath(Path(path).expanduser()))
    if not start.is_dir():
        raise WrongUse(f"{path} is not a folder. Name the folder of a project.")
    place = find_project(start)
    place.prepare()
    known_projects.recall(place.state)
    if as_json:
        show_json({"project": place.home.name, "home": str(place.home), "state": str(place.state)})
        return
    say(f"{place.home} is known now.")


@projects.command("forget", epilog=examples("cockpit projects forget ~/work/api"))
@click.argument("project")
@AS_JSON
def forget(project: str, as_json: bool) -> None:
    """Forget a project until you use it again.

    PROJECT is its path or its name. Its records stay; `cockpit debug state clean` removes those of
    projects that are gone.
    """
    require_user_of_all()
    chosen = known_projects.find_known(project)
    known_projects.forget(chosen)
    if as_json:
        show_json({"project": chosen.name, "home": str(chosen.home), "state": str(chosen.state)})
        return
    say(f"{chosen.home} is off the list until you use cockpit in it again. Its records stay.")
