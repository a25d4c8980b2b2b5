"""``cockpit projects``: the projects that cockpit knows on this machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import require_user_of_all
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say, show_json, show_list
from cockpit.core.clock import format_time
from cockpit.core.project import known_projects
from cockpit.loop.all_projects.follow_projects import read_all
from cockpit.loop.all_projects.project_reader import ProjectState


@click.group(
    short_help="List, add and forget known projects.",
    epilog=examples("cockpit projects list", "cockpit projects add ~/work/api"),
)
def projects() -> None:
    """List, add and forget the projects that cockpit knows on this machine.

    A project is added when you first use cockpit in it. `cockpit --all` shows all of them.
    """


@projects.command("list", epilog=examples("cockpit projects list --json"))
@AS_JSON
def list_projects(as_json: bool) -> None:
    """List all projects and what waits in each."""
    require_user_of_all()
    states = list(read_all().values())
    show_list(
        as_json,
        [_record(state) for state in states],
        ("PROJECT", "BRANCH", "STATE", "SESSIONS", "CHAINS", "AGENTS", "WAITING", "WHERE"),
        [
            (
                state.project.name,
                state.branch or "–",
                state.condition,
                str(state.running),
                str(state.chains),
                str(state.agents),
                str(state.waiting),
                str(state.project.home),
            )
            for state in states
        ],
        "No projects yet. Use cockpit in one, or add one with `cockpit projects add PATH`.",
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
    place = find_project(start=start)
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

    PROJECT is its path or its name. Its records stay; `cockpit state clean` removes those of projects that
    are gone.
    """
    require_user_of_all()
    chosen = known_projects.find_known(project)
    known_projects.forget(chosen)
    if as_json:
        show_json({"project": chosen.name, "home": str(chosen.home), "state": str(chosen.state)})
        return
    say(f"{chosen.home} is off the list until you use cockpit in it again. Its records stay.")


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
