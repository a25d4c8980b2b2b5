"""``cockpit run`` and ``cockpit review``: a session without the screen."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from cockpit.commands.open_project import WrongUse

FORMATS = ("text", "json", "stream-json")
_SESSION_ID = re.compile(r"s-[a-z0-9]+\Z|last\Z")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)\Z")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Duration(click.ParamType[float]):
    """Seconds, or a number with ``s``, ``m``, ``h`` or ``d``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = _DURATION.match(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no duration; write for example 90, 15m or 2h.", param, ctx)
        return float(found[1]) * _SECONDS[found[2]]


class Dollars(click.FloatRange):
    """A limit of cost, in US dollars. What is no number is no limit, and is refused."""

    def __init__(self) -> None:
        super().__init__(0, 100_000)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is no amount of dollars.", param, ctx)
        return found


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every headless session."""
    for option in (
        click.option(
            "--continue",
            "session",
            is_flag=False,
            flag_value="last",
            metavar="[ID]",
            help="Go on with that session, or with the last one.",
        ),
        click.option(
            "--deadline",
            type=Duration(),
            metavar="TIME",
            help="How long a proposal waits for a person: 90, 15m, 2h. Default: 1h.",
        ),
        click.option(
            "--approve",
            type=click.Choice(["ask", "trusted", "reads", "all"]),
            help="What is approved without a person. Default: ask.",
        ),
        click.option("--max-cost", type=float, metavar="USD", help="Stop before spending more."),
        click.option("--max-waves", type=int, metavar="N", help="Stop after so many waves."),
        click.option("--log-json", metavar="FILE", help="Append every step to FILE as JSON lines."),
        click.option("--model", metavar="NAME", help="anthropic:NAME, openai:NAME, offline, …"),
        click.option(
            "--output-format",
            "output",
            type=click.Choice(FORMATS),
            default="text",
            help="A story, one JSON document at the end, or the journal as it grows.",
        ),
    ):
        command = option(command)
    return command


@click.command(short_help="Work on a task without the screen.")
@click.argument("task", required=False)
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    help="Work on that task of the backlog (T-42): it is begun, and what is done is kept there.",
)
@session_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    task: str | None,
    task_id: str | None,
    session: str | None,
    **options: Any,
) -> None:
    """Work on TASK without the screen: plain words, or a command such as "/review-pr 24".

    Proposals that no policy decides wait for a person in any cockpit of this project, or for
    `cockpit proposals approve`, until the deadline. "-" reads the task from standard input.
    """
    if session is not None and task is None and not _SESSION_ID.match(session):
        session, task = "last", session  # `--continue WORDS`: the words were meant as the task
    if task == "-":
        task = sys.stdin.read()
    words = str(task or "").strip()
    if task_id is not None and session is not None:
        raise WrongUse("A session keeps the task that it began with; leave --task out.")
    if not words and session is None and task_id is None:
        raise WrongUse('Say what to do, for example: cockpit run "review main..HEAD".')
    ctx.exit(_drive(words, session, task_id, **options))


@click.command(short_help="Review a pull request, a branch or a range.")
@click.argument("target")
@session_options
@click.pass_context
def review(ctx: click.Context, /, target: str, session: str | None, **options: Any) -> None:
    """Review TARGET: a pull request's number or address, a branch, or a range such as main..HEAD."""
    if session is not None:
        raise WrongUse("A review begins a session; go on with one by `cockpit run --continue ID`.")
    ctx.exit(_drive(f"/review-pr {target}", None, None, **options))


def _drive(
    words: str,
    session: str | None,
    task_id: str | None,
    *,
    output: str,
    model: str | None,
    max_waves: int | None,
    max_cost: float | None,
    approve: str | None,
    deadline: float | None,
    log_json: str | None,
) -> int:
    from cockpit.commands.sessions.headless import drive

    return drive(
        words,
        session,
        task_id=task_id,
        output=output,
        flags={
            "[model] name": model,
            "[limits] max_waves": max_waves,
            "[limits] max_cost": max_cost,
            "[approval] policy": approve,
            "[approval] deadline_s": deadline,
            "[log] json": log_json,
        },
    )
