"""``cockpit projects``: the projects that cockpit knows on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cockpit.cli_options import examples
from cockpit.collections.projects import COLLECTION
from cockpit.commands.caller_rights import require_user_of_all
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say
from cockpit.core.project import known_projects

projects = make_group(COLLECTION, before=require_user_of_all)


@projects.command(
    "add",
    epilog=examples("cockpit projects add ~/work/api", "cockpit projects add --remove ~/work/api"),
)
@click.argument("path", default=".")
@click.option("--remove", is_flag=True, help="Forget it, until you use it again.")
def add(path: str, remove: bool) -> None:
    """Add a project to the list, or remove it.

    It is the one that contains PATH, by default this one; of one to remove PATH may be its name. A removed
    project is listed again once it is added or used. Its records stay; `cockpit debug state --clean` removes
    those of projects that are gone.
    """
    require_user_of_all()
    if remove:
        chosen = known_projects.find_known(path)
        known_projects.forget(chosen)
        say(f"{chosen.home} is off the list until you use cockpit in it again. Its records stay.")
        return
    start = Path(os.path.realpath(Path(path).expanduser()))
    if not start.is_dir():
        raise WrongUse(f"{path} is not a folder. Name the folder of a project.")
    place = find_project(start)
    place.prepare()
    known_projects.recall(place.state)
    say(f"{place.home} is known now.")
