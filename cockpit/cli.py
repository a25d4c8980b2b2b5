"""The command line: one table of commands, each loaded only when it is called.

Everything that goes wrong ends here as one sentence on stderr and an exit code
(:mod:`cockpit.commands.exit_codes`); ``COCKPIT_DEBUG=1`` shows the traceback as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

try:
    import click
except KeyboardInterrupt:  # Ctrl+C is no error, however early it comes
    raise SystemExit(130) from None

from cockpit import __version__
from cockpit.core.processes import interrupt_on_termination

COMMANDS = {
    "run": ("cockpit.commands.sessions.run:run", "Work on a task without the screen."),
    "review": (
        "cockpit.commands.sessions.run:review",
        "Review a pull request, a branch or a range.",
    ),
    "work": (
        "cockpit.commands.chains.work:work",
        "Do the backlog: implement, test, fix, review, merge, task after task.",
    ),
    "chain": (
        "cockpit.commands.chains.chain:chain",
        "Chains that `cockpit work` began: how they go, stop, go on.",
    ),
    "worktrees": ("cockpit.commands.chains.worktrees:worktrees", "Where tasks are worked on."),
    "proposals": ("cockpit.commands.sessions.proposals:proposals", "What waits for a decision."),
    "sessions": ("cockpit.commands.sessions.sessions:sessions", "What was worked on."),
    "tasks": ("cockpit.commands.backlog.tasks:tasks", "What is to be done, and how it stands."),
    "stories": ("cockpit.commands.backlog.epics_and_stories:stories", "Manage stories."),
    "epics": (
        "cockpit.commands.backlog.epics_and_stories:epics",
        "Manage epics and their priorities.",
    ),
    "plan": (
        "cockpit.commands.backlog.plan:plan",
        "Turn a written plan into epics, stories and tasks.",
    ),
    "wip": ("cockpit.commands.backlog.wip:work_in_progress", "What is under way on a task."),
    "handoff": (
        "cockpit.commands.backlog.handoff:handoff",
        "How a task ended, for whoever goes on.",
    ),
    "stats": (
        "cockpit.commands.chains.stats:stats",
        "How sessions of chains did: context, batches, reviews, restarts.",
    ),
    "packet": ("cockpit.commands.kernel.packet:packet", "What a wave knew, and why."),
    "profile": (
        "cockpit.commands.kernel.profile:profile",
        "The orientation profile and its versions.",
    ),
    "tokens": ("cockpit.commands.faces.tokens:tokens", "Capability tokens: who else may do what."),
    "feedback": ("cockpit.commands.kernel.feedback:feedback", "How good a wave's decision was."),
    "journal": (
        "cockpit.commands.records.journal:journal",
        "Every step, in order; checked and exported.",
    ),
    "prune": (
        "cockpit.commands.records.prune:prune",
        "Archive and delete what old sessions leave behind.",
    ),
    "metrics": (
        "cockpit.commands.records.metrics:metrics",
        "The numbers, in Prometheus' text format.",
    ),
    "replay": ("cockpit.commands.sessions.replay:replay", "Watch a past session again."),
    "mcp": (
        "cockpit.commands.faces.mcp:mcp",
        "Serve agents from outside over the Model Context Protocol.",
    ),
    "serve": (
        "cockpit.commands.faces.serve:serve",
        "Serve profiles, packets and feedback over HTTP.",
    ),
    "hook": ("cockpit.commands.faces.hook:hook", "Keep work in progress of agents from outside."),
    "init": ("cockpit.commands.setup.init:init", "Write commented templates into .cockpit."),
    "doctor": ("cockpit.commands.setup.doctor:doctor", "What is missing, and how to mend it."),
    "demo": (
        "cockpit.commands.demo.demo:demo",
        "A walk through the cockpit on a sample project, offline.",
    ),
}
"""Name, where it stands, and its line in the help: listing them loads none."""


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, short_form(args))


def short_form(args: Sequence[str]) -> list[str]:
    """``-p TASK …`` is ``run TASK …``: before any command's name, and with the same options."""
    for place, word in enumerate(args):
        if word == "-p":
            return ["run", *args[:place], *args[place + 1 :]]
        if word in COMMANDS or word == "--":
            break
    return list(args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="cockpit", message="%(prog)s %(version)s")
@click.option("-c", "--continue", "last", is_flag=True, help="Open the last session again.")
@click.option(
    "-r",
    "--resume",
    "session",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Open that session again, or pick one.",
)
@click.option("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, offline, …")
@click.option(
    "--approve",
    type=click.Choice(["ask", "trusted", "reads", "all"]),
    help="What is approved without you. Default: ask.",
)
@click.option("--theme", metavar="NAME", help="The screen's colours.")
@click.option("--log-json", metavar="FILE", help="Append every step to FILE as JSON lines.")
@click.pass_context
def root(
    ctx: click.Context,
    last: bool,
    session: str | None,
    model: str | None,
    approve: str | None,
    theme: str | None,
    log_json: str | None,
) -> None:
    """One person in command of LLM coding agents: Enter approves, Escape discusses.

    Without a command it opens the screen in this project. `cockpit -p TASK` is `cockpit run TASK`.
    """
    if ctx.invoked_subcommand is not None:
        if last or session is not None or model or approve or theme or log_json:
            raise click.UsageError(
                f"These options open the screen; write them after {ctx.invoked_subcommand!r}."
            )
        return
    from cockpit.commands.sessions.screen import open_screen

    if last and session:
        raise click.UsageError("-c opens the last session and -r a named one; choose one of them.")
    flags = {
        "[model] name": model,
        "[approval] policy": approve,
        "[screen] theme": theme,
        "[log] json": log_json,
    }
    ctx.exit(open_screen("last" if last else session, flags))


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, and raises nothing."""
    interrupt_on_termination()
    try:
        ended: Any = root.main(
            args=None if args is None else list(args), prog_name="cockpit", standalone_mode=False
        )
        return int(ended or 0)
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
