"""``cockpit trust``: the files that a project's repository brings, and the group of trust rules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.ask_trust import describe_files
from cockpit.commands.knowledge.trust_rules import rules, show_state
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import is_terminal, say, show, show_json, show_list
from cockpit.core.project.project_trust import list_loadable, read_trusted_names, write_trust
from cockpit.core.project_paths import list_states, locate_project, read_project_record


class TrustGroup(click.Group):
    """The group ``trust``: words that name none of its commands are those of ``trust files``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else ["files", *args])


@click.group(
    cls=TrustGroup,
    short_help="Trust a project's files; manage trust rules.",
    epilog=examples("cockpit trust --show", "cockpit trust", "cockpit trust rules list"),
)
def trust() -> None:
    """Trust the files that a project brings, and manage the rules by which requests pass.

    `cockpit trust [PATH]` is short for `cockpit trust files`. A folder named like a command is written
    `./rules`.
    """


trust.add_command(rules)
trust.add_command(show_state)


@trust.command(
    "files",
    short_help="Trust a project's settings and roles.",
    epilog=examples(
        "cockpit trust files --show", "cockpit trust files", "cockpit trust files list"
    ),
)
@click.argument("path", required=False)
@click.option("--show", "only_show", is_flag=True, help="Show the files and their state only.")
@click.option("--revoke", is_flag=True, help="Forget the trust in all files of this project.")
@click.option("--yes", is_flag=True, help="Do not ask, as in a script that you wrote.")
@AS_JSON
def trust_files(path: str | None, only_show: bool, revoke: bool, yes: bool, as_json: bool) -> None:
    """Trust the settings, task types and roles of a project.

    PATH is the project, by default that of the working directory; `cockpit trust list` lists all that are
    trusted. Only contents that you have seen are loaded: any change of a file asks again.
    """
    if os.environ.get("COCKPIT_TOKEN") and not only_show:
        raise WrongUse(
            "Only you can trust a project, not the holder of a token. Run it without COCKPIT_TOKEN."
        )
    if not only_show:
        user_presence.require_no_agent("trusting a project")
    if path == "list" and not Path(path).is_dir():
        _list(as_json)
        return
    place = locate_project(Path(path)) if path else find_project(settled=False)
    if not place.root.is_dir():
        raise WrongUse(
            f"There is no folder {path}. `cockpit trust list` lists the trusted projects."
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
    if not yes:
        if not is_terminal(sys.stdin):
            raise WrongUse("No terminal to confirm on; nothing was trusted. Pass --yes.")
        if not click.confirm("Trust exactly this content?", default=False, err=True):
            say("Nothing was trusted.")
            return
    write_trust(place, files)
    say(f"Trusted: {', '.join(file.name for file in files)}")


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
