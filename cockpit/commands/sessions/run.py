"""``cockpit run`` and ``cockpit review``: run a session without the screen."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from cockpit.cli_options import APPROVE, MODEL, Duration, examples
from cockpit.commands.open_project import WrongUse

FORMATS = ("text", "json", "stream-json")
_SESSION_ID = re.compile(r"s-[a-z0-9]+\Z|last\Z")


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every headless session to ``command``."""
    for option in (
        click.option(
            "--deadline",
            type=Duration(),
            metavar="TIME",
            help="Wait this long for your decision on a proposal, for example 90, 15m or 2h."
            " Default: 1h.",
        ),
        APPROVE,
        click.option(
            "--max-cost",
            type=float,
            metavar="USD",
            help="Stop after the wave that brings the session to this many US dollars. Default: no limit.",
        ),
        click.option(
            "--max-tokens",
            type=int,
            metavar="N",
            help="Stop after the wave that brings the session to this many tokens. Default: no limit.",
        ),
        click.option(
            "--max-waves",
            type=int,
            metavar="N",
            help="Stop after this many waves, from 1 to 1000. Default: 50.",
        ),
        MODEL,
        click.option(
            "--output-format",
            "output",
            type=click.Choice(FORMATS),
            default="text",
            help="Print a story (text), one JSON document at the end (json), or journal rows as they"
            " are written (stream-json). Default: text.",
        ),
    ):
        command = option(command)
    return command


@click.command(
    short_help="Run a task without the screen.",
    epilog=examples(
        'cockpit run "review topic"',
        "cockpit run --task T-42 --approve reads --max-cost 2.50",
        'cockpit run --continue last "Look at the tests once more."',
        'cockpit run --agent claude --worktree "Fix the failing test."',
    ),
)
@click.argument("task", required=False)
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    help="Start this task of the backlog, for example T-42, and record the work on it. Without TASK"
    " its title says what to do.",
)
@click.option(
    "--agent",
    metavar="NAME",
    help="Let this external agent do it, for example claude. `cockpit agents` shows them.",
)
@click.option(
    "--worktree/--checkout",
    "apart",
    default=None,
    help="With --agent: work in a worktree and branch of its own, or in the checkout. Default: in a"
    " worktree where another agent works in the checkout.",
)
@session_options
@click.option(
    "--continue",
    "session",
    is_flag=False,
    flag_value="last",
    metavar="[ID]",
    help="Resume this session, or the last one without an ID. A TASK becomes its next message.",
)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    task: str | None,
    task_id: str | None,
    agent: str | None,
    apart: bool | None,
    session: str | None,
    **options: Any,
) -> None:
    """Run TASK without the screen: a description, or a command such as "/review-pr 24".

    "-" reads the task from standard input, and `cockpit -p TASK` is the short form. A proposal that no
    policy decides waits until its deadline for you, in any cockpit of this project or for `cockpit
    proposals approve`. Ctrl+C stops within the wave and loses nothing.
    """
    if session is not None and task is None and not _SESSION_ID.match(session):
        session, task = "last", session  # `--continue TEXT`: the text was meant as the task
    is_typed = task != "-"
    if task == "-":
        task = sys.stdin.read()
    text = str(task or "").strip()
    if task_id is not None and session is not None:
        raise WrongUse("A session keeps the task that it started with. Leave --task out.")
    if not text and session is None and task_id is None:
        raise WrongUse('No task. Say what to do, for example: cockpit run "review topic".')
    where = "" if apart is None else "worktree" if apart else "checkout"
    if where and agent is None:
        raise WrongUse(f"--{where} is for external agents. Name one with --agent.")
    if agent is not None:
        _refuse_options_of_built_in(options)
    if where and session is not None:
        raise WrongUse("A session stays where it began. Leave --worktree and --checkout out.")
    ctx.exit(
        _drive(
            text,
            options,
            session=session,
            task_id=task_id,
            agent=agent,
            where=where,
            is_typed=is_typed,
        )
    )


@click.command(
    short_help="Review a pull request, branch or range.",
    epilog=examples(
        "cockpit review",
        "cockpit review 24",
        "cockpit review topic --model offline",
        "cockpit review feature --output-format json",
    ),
)
@click.argument("target", required=False)
@session_options
@click.pass_context
def review(ctx: click.Context, /, target: str | None, **options: Any) -> None:
    """Review TARGET: a pull request's number or address, a branch, or a range such as v1.0..v1.1.

    Without TARGET it reviews this branch against its base, or the last commit where nothing is ahead of it.
    The review goes to standard output, its story to standard error. Approved, the review is also written to
    .cockpit/reviews, or posted to the pull request.
    """
    target = target or asyncio.run(_choose_target())
    ctx.exit(_drive(f"/review-pr {target}", options, prints_review=True))


async def _choose_target() -> str:
    """Return the range from the base of this branch, or that of the last commit."""
    from cockpit.commands.open_project import find_project
    from cockpit.loop.intake.review_target import Repository

    git = Repository(find_project().root)
    base = await git.default_branch()
    is_ahead = base is not None and await git.merge_base(base, "HEAD") != await git.commit("HEAD")
    return f"{base}...HEAD" if is_ahead else "HEAD~1..HEAD"


def _refuse_options_of_built_in(options: Mapping[str, Any]) -> None:
    if options["model"] is not None:
        raise WrongUse(
            "--model is for the built-in agent. Choose an external agent's model on the screen with /model,"
            " or in its own settings."
        )
    if options["max_waves"] is not None:
        raise WrongUse(
            "--max-waves is for the built-in agent: an external one has turns, one for each message."
        )


_FLAGS = {
    "[model] name": "model",
    "[limits] max_waves": "max_waves",
    "[limits] max_cost": "max_cost",
    "[limits] max_tokens": "max_tokens",
    "[approval] policy": "approve",
    "[approval] deadline_s": "deadline",
}
"""By setting: the option that sets it."""


def _drive(text: str, options: Mapping[str, Any], **given: Any) -> int:
    from cockpit.commands.sessions.headless import Order, drive

    flags = {setting: options[option] for setting, option in _FLAGS.items()}
    return asyncio.run(drive(Order(text, options["output"], flags, **given)))
