"""``cockpit skills``: the group of the collection, installing, and loading into a session by its id."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cockpit.access import user_presence
from cockpit.cli_options import examples
from cockpit.collections.choose_session import choose_session
from cockpit.collections.skills import COLLECTION, find_problems
from cockpit.commands.collection_groups import make_group, read_view
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import WrongUse, find_project, open_store
from cockpit.commands.terminal import say, show
from cockpit.core.project_paths import user_folder
from cockpit.core.skills.skill import SKILL_FILE
from cockpit.core.text import pluralize
from cockpit.loop.skills.project_skills import shorten_for_packet

skills = make_group(COLLECTION)


@skills.command(
    epilog=examples("cockpit skills install ~/skills/deploy", "cockpit skills install all.zip")
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--project",
    is_flag=True,
    help="Write to the project's .cockpit/skills. Default: for you alone.",
)
@click.option("--replace", is_flag=True, help="Put it in the place of one of the same name.")
@YES
def install(path: Path, project: bool, replace: bool, yes: bool) -> None:
    """Install skills of a folder or a ZIP file.

    PATH is a skill, or a folder or checkout with several. They are copied and never run. It shows what they
    are, and what is wrong with them, before it writes.
    """
    from cockpit.core.project.project_trust import trust_file
    from cockpit.core.skills.install_skill import install_skill, read_source

    if os.environ.get("COCKPIT_TOKEN"):
        raise WrongUse(
            "Only you can install a skill, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    user_presence.require_no_agent("installing a skill")
    installables = read_source(path.expanduser())
    place = find_project() if project else None
    folder = place.folder / "skills" if place is not None else user_folder(os.environ) / "skills"
    for each in installables:
        names = ", ".join(str(file.path) for file in each.files)
        show(f"{each.skill.name}: {each.skill.description}")
        for kind, text in find_problems(each.skill):
            show(f"  {kind}: {text}")
        count = pluralize(len(each.files), "file")
        show(f"  {count}: {names}\n\n{shorten_for_packet(each.skill)}\n")
    confirm(f"Copy to {folder}?", yes=yes, undone="nothing was written")
    for each in installables:
        target = install_skill(each, folder, replaces=replace)
        if place is not None:
            trust_file(place, target / SKILL_FILE, (target / SKILL_FILE).read_bytes())
        say(f"Installed {target}.")


@skills.command(epilog=examples("cockpit skills load git", "cockpit skills load git --off"))
@click.argument("name")
@click.option("--session", metavar="ID", help="Use this session. Default: the last one.")
@click.option("--off", is_flag=True, help="Remove it; it comes back only when you mention it.")
def load(name: str, session: str | None, off: bool) -> None:
    """Set a skill to be loaded into a session.

    It is loaded from the next wave on, and stays until you remove it with --off.
    """
    from cockpit.loop.skills.session_skills import want_skill

    if not off:
        read_view(COLLECTION, lambda view: COLLECTION.find_row(view, name))
    user_presence.require_no_agent("loading or unloading a skill")
    with open_store(find_project()) as store:
        session_id = store.read_now(lambda connection: choose_session(connection, session))
        store.write_now(lambda tx: want_skill(tx, session_id, name, load=not off))
    how = "is out of" if off else "is in"
    say(f"{name} {how} the context of {session_id} from its next wave on.")
