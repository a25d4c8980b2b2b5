"""``cockpit trust``: the files that a project's repository brings, and the group of trust rules."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.trust import COLLECTION
from cockpit.commands.ask_trust import describe_files
from cockpit.commands.collection import RowName
from cockpit.commands.collection_groups import make_group
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.project.project_trust import list_loadable, read_trusted_names, write_trust
from cockpit.core.project_paths import list_states, locate_project, read_project_record


class TrustGroup(click.Group):
    """The group ``trust``: words that name none of its commands are the project's path and options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in self.commands:
            ctx._protected_args, ctx.args = args[:1], args[1:]
            return ctx.args
        ctx.allow_interspersed_args, ctx.allow_extra_args = True, False
        return click.Command.parse_args(self, ctx, args)


@click.group(
    cls=TrustGroup,
    invoke_without_command=True,
    short_help="Trust a project's files; manage trust rules.",
    epilog=examples(
        "cockpit trust --show", "cockpit trust", "cockpit trust --list", "cockpit trust rules"
    ),
)
@click.argument("path", cls=RowName, required=False)
@click.option("--show", "only_show", is_flag=True, help="Show the files and their state only.")
@click.option("--revoke", is_flag=True, help="Forget the trust in all files of this project.")
@click.option("--list", "lists", is_flag=True, help="List the projects that are trusted.")
@YES
@AS_JSON
@click.pass_context
def trust(
    ctx: click.Context,
    /,
    path: str | None = None,
    only_show: bool = False,
    revoke: bool = False,
    lists: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Trust the files that a project brings, and manage the rules by which requests pass.

    PATH is the project, by default that of the working directory. Of its settings, task types and roles only
    contents that you have seen are loaded: any change of a file asks again. A folder that is called rules is
    written `./rules`.
    """
    if ctx.invoked_subcommand is not None:
        return
    if os.environ.get("COCKPIT_TOKEN") and not only_show:
        raise WrongUse(
            "Only you can trust a project, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    if not only_show:
        user_presence.require_no_agent("trusting a project")
    if lists:
        _list(as_json)
        return
    place = locate_project(Path(path)) if path else find_project()
    if not place.root.is_dir():
        raise WrongUse(
            f"There is no folder {path}. `cockpit trust --list` lists the trusted projects."
        )
    files = list_loadable(place.home)
    if only_show:
        if as_json:
            show_json(
                [{"file": file.name, "trusted": file.trusted, "text": file.text} for file in files]
            )
        else:
            show(describe_files(files) if files else "This project has nothing to load.")
            for file in files:
                say(f"{'trusted    ' if file.trusted else 'not trusted'}  {file.name}")
        return
    if revoke:
        write_trust(place, [])
        say(f"Nothing of {place.home} is trusted any more.")
        return
    untrusted = [file for file in files if not file.trusted]
    if not untrusted:
        say("All is trusted." if files else "This project has nothing to load.")
        return
    show(describe_files(untrusted))
    confirm("Trust exactly this content?", yes=yes, undone="nothing was trusted")
    write_trust(place, files)
    say(f"Trusted: {', '.join(file.name for file in files)}")


trust.add_command(make_group(COLLECTION))


def _list(as_json: bool) -> None:
    rows = []
    for state in list_states():
        record, names = read_project_record(state), read_trusted_names(state)
        if record is not None and names:
            rows.append({"project": str(record.home), "files": list(names)})
    show_list(
        as_json,
        rows,
        ("PROJECT", "FILES"),
        [(str(row["project"]), ", ".join(row["files"])) for row in rows],
        "No project is trusted yet.",
    )
