"""``cockpit hook``: the command that hooks of external agents call, and its installation."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from cockpit.cli_options import examples
from cockpit.commands.confirm import confirm
from cockpit.commands.open_project import WrongUse, find_project, open_store
from cockpit.commands.terminal import format_table, is_terminal, say, show, show_json
from cockpit.core.project_paths import user_folder
from cockpit.core.text import pluralize
from cockpit.hook import install_hooks, spool
from cockpit.hook.event_payload import AGENTS
from cockpit.hook.install_hooks import Scope, Settings


@click.group(
    short_help="Manage hooks of external agents.",
    invoke_without_command=True,
    epilog=examples("cockpit hook install claude", "cockpit debug show hooks"),
)
@click.option(
    "--agent", default="", metavar="NAME", help="Name the calling agent: claude or codex."
)
@click.option(
    "--approve", is_flag=True, help="Let permissions wait for you while a cockpit is open."
)
@click.option(
    "--guard", is_flag=True, help="Refuse reads of text that the agent has in its context."
)
@click.option("--policy", default="", hidden=True, help="Apply this policy: of a run of cockpit's.")
@click.option("--config", default="", hidden=True, help="Read the user's settings in this folder.")
@click.pass_context
def hook(
    ctx: click.Context, agent: str, approve: bool, guard: bool, policy: str, config: str
) -> None:
    """Manage the hooks that external agents call.

    Claude Code and Codex call `cockpit hook` itself with an event on standard input; it always ends with 0.
    You call its subcommands.
    """
    if ctx.invoked_subcommand is not None:
        return
    if is_terminal(sys.stdin):
        raise WrongUse(
            "cockpit hook reads an event of an agent from standard input. To let an agent call it, run"
            " `cockpit hook install claude` or `cockpit hook install codex`."
        )
    from cockpit.hook.hook_call import serve

    options = [*(["--approve"] if approve else []), *(["--guard"] if guard else [])]
    options += ["--policy", policy] if policy else []
    options += ["--config", config] if config else []
    serve(["--agent", agent, *options])


@hook.command(
    "install",
    epilog=examples(
        "cockpit hook install claude --local",
        "cockpit hook install claude --approve",
        "cockpit hook install claude --guard",
        "cockpit hook install codex --yes",
        "cockpit hook install claude --remove",
    ),
)
@click.argument("agent", type=click.Choice(AGENTS))
@click.option(
    "--local",
    "scope",
    flag_value="local",
    help="Change your own settings of this project (claude only).",
)
@click.option(
    "--user",
    "scope",
    flag_value="user",
    help="Change your own settings of all projects. Default: the project's, for everyone.",
)
@click.option("--remove", is_flag=True, help="Remove cockpit's hooks instead.")
@click.option("--yes", is_flag=True, help="Write without asking. The diff is printed anyway.")
@click.option(
    "--approve",
    is_flag=True,
    help="Let the agent's permissions wait in the queue while a cockpit is open.",
)
@click.option(
    "--guard",
    is_flag=True,
    help="Refuse the agent's reads of unchanged text that it has in its context.",
)
def install(
    agent: str, scope: Scope | None, remove: bool, yes: bool, approve: bool, guard: bool
) -> None:
    """Install or remove hooks of an agent.

    It prints the diff and asks before it writes. Other hooks stay. It makes the project's store where there
    is none: hooks do nothing without. With --approve you answer the agent's permissions here or in its own
    dialog, whichever is first; without an open cockpit nothing waits. With --guard the agent's reads of
    unchanged text that it has in its context are refused, once each.
    """
    scope = scope or "project"
    settings = _settings(agent, scope)
    if remove:
        if install_hooks.list_installed(settings):
            _change(settings, install_hooks.without_ours(settings), yes)
        else:
            say(f"{settings.path} has no hooks of cockpit.")
        return
    # In settings that others share, the folder of this user has no place.
    config = "" if scope == "project" else str(user_folder(os.environ).absolute())
    text = install_hooks.with_ours(
        settings, _program(scope), approve=approve, guard=guard, config=config
    )
    _change(settings, text, yes)
    if scope != "user" and install_hooks.list_installed(_settings(agent, scope)):
        with open_store(find_project()):
            pass  # a hook never makes a store: it would make one in each folder that an agent visits
    if agent == "codex":
        say("Codex must trust new hooks: open /hooks in it once.")


def show_hooks(*, as_json: bool) -> None:
    """Print where hooks are installed, how many events wait to be absorbed, and the end of the log."""
    place = find_project()
    scopes: list[tuple[str, Scope]] = [("claude", "project"), ("claude", "local")]
    scopes += [("claude", "user"), ("codex", "project"), ("codex", "user")]
    records: list[dict[str, Any]] = []
    for agent, scope in scopes:
        path, events, wrong = install_hooks.place_of(agent, scope, place.root, os.environ), [], ""
        try:
            settings = _settings(agent, scope)
            path, events = settings.path, install_hooks.list_installed(settings)
        except install_hooks.SettingsInvalid as error:
            wrong = str(error)
        entry = {"agent": agent, "scope": scope, "path": str(path), "events": events}
        records.append({**entry, "error": wrong} if wrong else entry)
    waiting, stuck = _waiting()
    log = _log(place.state)
    if as_json:
        show_json({"installed": records, "waiting": waiting, "left_behind": stuck, "log": log})
        return
    rows = [
        (
            record["agent"],
            record["scope"],
            "?" if "error" in record else ", ".join(record["events"]) or "–",
            record["path"],
        )
        for record in records
    ]
    show(format_table(("AGENT", "SCOPE", "EVENTS", "FILE"), rows))
    for record in records:
        if "error" in record:
            say(record["error"])
    say(f"{pluralize(waiting, 'event')} pending, {stuck:,} failed.")
    for line in log:
        say(line)


def _settings(agent: str, scope: Scope) -> Settings:
    place = find_project()
    path = install_hooks.place_of(agent, scope, place.root, os.environ)
    return install_hooks.load(agent, path, inside=None if scope == "user" else place.root)


def _program(scope: Scope) -> str:
    """Return the command that starts cockpit: in a project's settings, which others share, its name; in
    the user's own, its absolute path where the name would not find this installation."""
    own = Path(sys.argv[0]).absolute()
    installed = Path(sys.executable).with_name("cockpit")
    this = own if own.name == "cockpit" and own.is_file() else installed
    named = shutil.which("cockpit")
    if scope == "project" or not this.is_file():
        return "cockpit"
    if named is not None and Path(named).resolve() == this.resolve():
        return "cockpit"
    return shlex.quote(str(this))


def _change(settings: Settings, after: str | None, yes: bool) -> None:
    if after == settings.before:
        say(f"{settings.path} is up to date.")
        return
    lines = difflib.unified_diff(
        (settings.before or "").splitlines(),
        (after or "").splitlines(),
        str(settings.path) if settings.before is not None else "/dev/null",
        str(settings.path) if after is not None else "/dev/null",
        lineterm="",
    )
    show("\n".join(lines))
    confirm("Write this change?", yes=yes, undone="nothing was written")
    backup = install_hooks.write(settings, after)
    note = f"; the old file is in {backup}" if backup is not None else ""
    say(f"{'written' if after is not None else 'removed'}  {settings.path}{note}")


def _waiting() -> tuple[int, int]:
    """Return the counts of pending and of failed events, without creating a store."""
    from cockpit.store.hooks import pending_events

    place = find_project()
    if not place.database.exists():
        return 0, 0
    files = len(spool.list_files(str(place.state)))
    with open_store(place) as store:
        return store.read_now(
            lambda connection: (
                pending_events.count_waiting(connection) + files,
                pending_events.count_failed(connection),
            )
        )


def _log(state: Path) -> list[str]:
    try:
        return (state / "hook.log").read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    except OSError:
        return []
