"""Options, option types and help texts that several commands share.

It imports click alone, so that help is printed without loading the rest of the program.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any

import click

_DURATION = re.compile(r"(\d++(?:\.\d++)?)\s*+([smhd]?)\Z")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def examples(*lines: str) -> str:
    """Return the end of a command's help: its examples, one shell line each."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class Duration(click.ParamType[float]):
    """A time in seconds, or a number with ``s``, ``m``, ``h`` or ``d``; converted to seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = _DURATION.match(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a duration. Write for example 90, 15m or 2h.", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class TimeOfDay(click.ParamType[datetime]):
    """A time of day on this machine, ``07:00``, as its next moment."""

    name = "HH:MM"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a time of day. Write for example 07:00.", param, ctx)
        now = datetime.now().astimezone()
        at = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0)
        return at if at > now else at + timedelta(days=1)


class Dollars(click.FloatRange):
    """A cost limit in US dollars, from 0 to 100,000. NaN, which would be no limit, is refused."""

    def __init__(self) -> None:
        super().__init__(0, 100_000)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        amount: float = super().convert(value, param, ctx)
        if math.isnan(amount):
            self.fail(f"{value!r} is not an amount in dollars. Write for example 2.50.", param, ctx)
        return amount


AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
SHOWN = click.option(
    "--shown",
    metavar="DIGEST",
    help="Decide only if the proposal still has this digest; its first 8 characters are enough.",
)
NO_SANDBOX = click.option(
    "--no-sandbox",
    is_flag=True,
    help="Start under the policies reads and all although no sandbox confines commands.",
)
MODEL = click.option(
    "--model",
    metavar="NAME",
    help="Use this model: anthropic:NAME, openai:NAME, openai-compatible:NAME or offline.",
)


def require_user_for_policy(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    """Refuse an approval policy that an agent gives itself; raises ``NotAllowed``."""
    if value in ("trusted", "reads", "all"):
        from cockpit.access.user_presence import require_no_agent

        require_no_agent(f"--approve {value}")
    return value


APPROVE = click.option(
    "--approve",
    type=click.Choice(["ask", "trusted", "reads", "all"]),
    callback=require_user_for_policy,
    help="Approve without asking you: nothing (ask), what your trust rules cover (trusted), context"
    " requests as well (reads), or everything that the guards allow except writes to GitHub and high risk"
    " (all). Default: ask.",
)
