"""``cockpit trust``: the files that a project brings, its tools and guards by name, and trust rules."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cockpit.access import user_presence
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.trust import COLLECTION, REVOKE, SUSPEND
from cockpit.commands.ask_trust import describe_files
from cockpit.commands.collection import RowName
from cockpit.commands.collection_groups import REASON, do_verb, make_group, read_view
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import WrongUse, find_project
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.core.project.project_trust import list_loadable, read_trusted_names, write_trust
from cockpit.core.project_paths import list_states, locate_project, read_project_record


class TrustGroup(click.Group):
    """The group ``trust``: words that name none of its commands are its arguments and options."""

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
        "cockpit trust --show",
        "cockpit trust",
        "cockpit trust count_words",
        "cockpit trust --revoke no_migrations",
        "cockpit trust rules",
    ),
)
@click.argument("names", cls=RowName, nargs=-1, metavar="[NAME|PATH]…")
@click.option("--show", "only_show", is_flag=True, help="Show the files and their state only.")
@click.option("--revoke", is_flag=True, help="Withdraw the trust in NAME, or in all files.")
@click.option("--list", "lists", is_flag=True, help="List the projects that are trusted.")
@YES
@AS_JSON
@click.pass_context
def trust(
    ctx: click.Context,
    /,
    names: tuple[str, ...] = (),
    only_show: bool = False,
    revoke: bool = False,
    lists: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Trust the files that a project brings, tools and guards, and manage trust rules.

    NAME is a guard, a tool, an alias, a file of tools, or an MCP server for all of its tools. cockpit shows
    it and asks; then agents may call, or are asked by, exactly what you saw. A file is loaded only after you
    agree, and only in the sandbox. Without NAME the project's settings, task types and roles are shown and
    trusted; PATH names another project, and has a `/` or is `.`. Any change of a file asks again.
    """
    if ctx.invoked_subcommand is not None:
        return
    path = names[0] if len(names) == 1 and _is_path(names[0]) else None
    if names and path is None:
        if only_show or lists or as_json:
            raise WrongUse(
                "--show, --list and --json are for the files of a project, not for NAME."
            )
        if wrong := next(filter(_is_path, names), None):
            raise WrongUse(f"{wrong} is the path of a project. Name it alone.")
        for name in names:
            _decide_named(name, revoke=revoke, yes=yes)
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


rules = make_group(COLLECTION)
trust.add_command(rules)


@rules.command(
    "revoke",
    epilog=examples(
        "cockpit trust rules revoke t-1a2b3c4d5e",
        "cockpit trust rules revoke t-1a2b3c4d5e --suspend",
    ),
)
@click.argument("rule")
@click.option("--suspend", is_flag=True, help="Only until you accept it again.")
@REASON
def revoke_rule(rule: str, suspend: bool, text: str) -> None:
    """Revoke a rule, or decline its offer.

    A rule of permissions.toml is removed from there. Your earlier approvals no longer count for it. One that
    is suspended covers nothing until you accept it again.
    """
    do_verb(COLLECTION, SUSPEND if suspend else REVOKE, rule, text)


def _is_path(word: str) -> bool:
    return "/" in word or word in (".", "..", "~")


def _decide_named(name: str, *, revoke: bool, yes: bool) -> None:
    """Approve a guard or a tool as it is shown, or withdraw that. Each refuses all but the user."""
    from cockpit.collections import guards
    from cockpit.commands.knowledge.tools import approve_tool, forget_tool, is_tool

    try:
        guard = read_view(guards.COLLECTION, lambda view: guards.COLLECTION.find_row(view, name))
    except NotFound:
        guard = None
    if guard is not None:
        if is_tool(name):
            raise WrongUse(
                f"{name} is a guard and a tool. Name the guard as {guard.name}, or the tool by its file."
            )
        verb = guards.FORGET if revoke else guards.APPROVE
        do_verb(guards.COLLECTION, verb, guard.name, yes=yes)
        return
    try:
        if revoke:
            forget_tool(name)
        else:
            approve_tool(name, yes=yes)
    except NotFound as error:
        raise NotFound(
            f"{error} No guard is called so either; a project's folder is written ./{name}."
        ) from error


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
