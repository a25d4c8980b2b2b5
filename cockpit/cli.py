"""The command line: one table of commands, each imported when it is called.

Every error ends here as one sentence on stderr and an exit code (:mod:`cockpit.commands.exit_codes`);
``COCKPIT_DEBUG=1`` prints the traceback as well. Specified in ``docs/reference/commands.md``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

try:
    import click
except KeyboardInterrupt:  # Ctrl+C during the import prints no traceback
    raise SystemExit(130) from None

from cockpit import __version__
from cockpit.cli_options import APPROVE, MODEL, examples
from cockpit.core.processes import interrupt_on_termination

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "run": ("cockpit.commands.sessions.run:run", "Run a task without the screen."),
    "review": ("cockpit.commands.sessions.run:review", "Review a pull request, branch or range."),
    "work": ("cockpit.commands.chains.work:work", "Work through the backlog with agents."),
    "chain": ("cockpit.commands.chains.chain:chain", "Manage chains of workers."),
    "worker": (
        "cockpit.commands.chains.remote_worker:worker",
        "Work on tasks of another machine's chain.",
    ),
    "proposals": (
        "cockpit.commands.sessions.proposals:proposals",
        "List, show and decide proposals.",
    ),
    "sessions": ("cockpit.commands.sessions.sessions:sessions", "List, show and export sessions."),
    "tasks": ("cockpit.commands.backlog.tasks:tasks", "Manage tasks, stories and epics."),
    "plan": ("cockpit.commands.backlog.plan:plan", "Turn a text or a written plan into tasks."),
    "estimate": (
        "cockpit.commands.knowledge.estimate:estimate",
        "Estimate waves, tokens and cost.",
    ),
    "evolve": (
        "cockpit.commands.knowledge.evolve:evolve",
        "Grow a tool that is missing, test first.",
    ),
    "notes": ("cockpit.commands.knowledge.notes:notes", "Keep and forget what sessions taught."),
    "stats": ("cockpit.commands.chains.stats:stats", "Measure the workers of chains."),
    "packet": (
        "cockpit.commands.packets.packet:packet",
        "Inspect orientation packets, pin facts.",
    ),
    "skills": ("cockpit.commands.knowledge.skills:skills", "Manage skills of agents."),
    "profile": ("cockpit.commands.packets.profile:profile", "Manage orientation profiles."),
    "tokens": ("cockpit.commands.servers.tokens:tokens", "Manage capability tokens."),
    "feedback": ("cockpit.commands.packets.feedback:feedback", "Judge the decisions of waves."),
    "journal": (
        "cockpit.commands.records.journal:journal",
        "Show the newest rows of the journal.",
    ),
    "prune": ("cockpit.commands.records.prune:prune", "Archive and delete data of old sessions."),
    "backup": (
        "cockpit.commands.records.backup:backup",
        "Write or restore this project's state.",
    ),
    "replay": ("cockpit.commands.sessions.sessions:replay", "Replay a past session on the screen."),
    "knowledge": (
        "cockpit.commands.knowledge.knowledge:knowledge",
        "Index and search what a project says.",
    ),
    "tools": ("cockpit.commands.knowledge.tools:tools", "Manage tools of yours and of projects."),
    "guards": (
        "cockpit.commands.collection_groups:guards",
        "Manage guards of yours and of projects.",
    ),
    "agents": ("cockpit.commands.setup.agents:agents", "Manage external agents."),
    "mcp": ("cockpit.commands.servers.mcp:mcp", "Serve external agents over MCP."),
    "acp": ("cockpit.commands.servers.acp:acp", "Serve editors over ACP."),
    "serve": ("cockpit.commands.servers.serve:serve", "Serve programs over HTTP."),
    "web": ("cockpit.commands.servers.web:web", "Show the screen in a browser."),
    "hook": ("cockpit.commands.servers.hook:hook", "Manage hooks of external agents."),
    "task-types": (
        "cockpit.commands.knowledge.task_types:task_types",
        "List and write task types.",
    ),
    "projects": (
        "cockpit.commands.setup.projects:projects",
        "List, add and forget known projects.",
    ),
    "trust": ("cockpit.commands.setup.trust:trust", "Trust a project's files; manage trust rules."),
    "init": ("cockpit.commands.setup.init:init", "Write configuration templates to .cockpit."),
    "settings": ("cockpit.commands.setup.settings:settings", "List and change settings."),
    "doctor": ("cockpit.commands.setup.doctor:doctor", "Check the setup and suggest fixes."),
    "completions": (
        "cockpit.commands.setup.completions:completions",
        "Print a completion script for a shell.",
    ),
    "debug": (
        "cockpit.commands.records.debug:debug",
        "Explain, verify and count what is recorded.",
    ),
    "demo": ("cockpit.commands.demo.demo:demo", "Try cockpit on a sample project, offline."),
}
"""By name: the module and function of a command, and its summary. Listing them imports none."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # It looks for what was meant among the commands that are imported.
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, summary) for name, (_, summary) in COMMANDS.items() if name != "debug"]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table, because a user waits for it and an import takes time."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, expand_short_form(args))


def expand_short_form(args: Sequence[str]) -> list[str]:
    """Turn ``-p TASK …`` into ``run TASK …``, where it is written before the name of a command."""
    for index, argument in enumerate(args):
        if argument == "-p":
            return ["run", *args[:index], *args[index + 1 :]]
        if argument in COMMANDS or argument == "--":
            break
    return list(args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "cockpit",
        "cockpit --all",
        "cockpit demo",
        'cockpit -p "review topic"',
        "cockpit work --all",
    ),
)
@click.version_option(__version__, prog_name="cockpit", message="%(prog)s %(version)s")
@click.option("-c", "--continue", "last", is_flag=True, help="Resume the last session.")
@click.option(
    "-r",
    "--resume",
    "session",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Resume this session, or pick one from a list.",
)
@click.option(
    "--agent",
    metavar="NAME",
    help="Let this external agent have new sessions, for example claude. Default: the built-in agent.",
)
@click.option(
    "--all", "every", is_flag=True, help="Show all projects, and what waits in each of them."
)
@MODEL
@APPROVE
@click.option(
    "--linear", is_flag=True, help="Print line by line, for screen readers: no full screen."
)
@click.pass_context
def root(
    ctx: click.Context,
    last: bool,
    session: str | None,
    agent: str | None,
    every: bool,
    model: str | None,
    approve: str | None,
    linear: bool,
) -> None:
    """Direct coding agents from your terminal: Enter approves, Escape discusses.

    Without a command, cockpit opens the screen in this project. `cockpit -p TASK` is short for
    `cockpit run TASK`. `cockpit debug` explains, verifies and counts what is recorded.
    """
    if ctx.invoked_subcommand is not None:
        options = (last, session is not None, agent, every, model, approve, linear)
        if any(options):
            raise click.UsageError(
                f"Options before {ctx.invoked_subcommand!r} open the screen. Write them after the command."
            )
        return
    from cockpit.commands.sessions.switch_projects import open_screen

    if every:
        if last or session is not None or agent or model or approve or linear:
            raise click.UsageError("--all shows every project; it takes no other option.")
        from cockpit.commands.sessions.switch_projects import open_all_projects

        ctx.exit(open_all_projects())
    if last and session:
        raise click.UsageError("-c and -r exclude each other. Use -r ID to name a session.")
    if agent and model:
        raise click.UsageError(
            "--model is for the built-in agent. An external agent offers its models, with /model, as soon as"
            " it has a session."
        )
    flags = {"[model] name": model, "[approval] policy": approve}
    if linear:
        from cockpit.commands.sessions.linear import open_linear

        ctx.exit(open_linear("last" if last else session, flags, agent=agent or ""))
    ctx.exit(open_screen("last" if last else session, flags, agent=agent or ""))


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code and raise nothing."""
    interrupt_on_termination()
    try:
        code: Any = root.main(
            args=None if args is None else list(args), prog_name="cockpit", standalone_mode=False
        )
        return int(code or 0)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from cockpit.commands.report_error import report_error

        return report_error(error)
