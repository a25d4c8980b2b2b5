"""``/work`` in the prompt: start or resume a chain, in a process that outlives the screen.

The words after it are those of ``cockpit work``; an id alone names the scope: ``/work E-2 -n 3``.
Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cockpit.app.commands.command_record import PromptCommand
from cockpit.chains.chain_process import run_chain_command
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.host import Host

_SCOPES = {"E": "--epic", "S": "--story", "T": "--task"}
_ID = re.compile(r"([EST])-?(\d+)", re.IGNORECASE)
_CHAIN = re.compile(r"ch-?(\d+)", re.IGNORECASE)
_SCOPE_OPTIONS = frozenset(("--all", "--epic", "--story", "--task", "--continue"))
_FLAGS = frozenset(("--all", "--continue", "--no-sandbox"))
_OPTIONS = _SCOPE_OPTIONS | frozenset(
    [
        *("-n", "--parallel", "--max-chains", "--approve", "--max-cost"),
        *("--max-wall", "--runner", "--model", "--no-sandbox"),
    ]
)


class WorkInvalid(CockpitError):
    """The words after ``/work`` are not those of a chain."""

    code = "usage"


def build_arguments(words: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments of ``cockpit`` for the words after ``/work``.

    Without a scope it is the whole backlog. ``options`` are the screen's; ``words`` override them, and a
    resumed chain keeps its own. Raises :class:`WorkInvalid`.
    """
    try:
        tokens = shlex.split(words)
    except ValueError as error:
        raise WorkInvalid(f"Cannot read {words!r}: {error}. Close the quotation.") from error
    if tokens and (match := _CHAIN.fullmatch(tokens[0])):
        return ("work", "--continue", f"ch-{match[1]}", *_checked(tokens[1:]))
    arguments = _checked(_expand_all(tokens))
    names = {argument.partition("=")[0] for argument in arguments}
    if not names & _SCOPE_OPTIONS:
        arguments = ("--all", *arguments)
    if "--continue" not in names:
        for name, value in options.items():
            arguments = arguments if name in names else (*arguments, name, value)
    return ("work", *arguments)


def _expand_all(tokens: Sequence[str]) -> list[str]:
    """Expand the words that name a scope; the value of an option stays (``--approve all``)."""
    arguments: list[str] = []
    before = ""
    for token in tokens:
        takes_value = before in _OPTIONS and before not in _FLAGS
        arguments += [token] if takes_value else _expand(token)
        before = "" if takes_value else token
    return arguments


def _expand(token: str) -> Sequence[str]:
    if match := _ID.fullmatch(token):
        kind = match[1].upper()
        return _SCOPES[kind], f"{kind}-{match[2]}"
    return (f"--{token}",) if token in ("all", "continue") else (token,)


def _checked(arguments: Sequence[str]) -> tuple[str, ...]:
    for argument in arguments:
        if argument.startswith("-") and argument.partition("=")[0] not in _OPTIONS:
            raise WorkInvalid(
                f"/work has no option {argument}. Write all, an id such as E-2, S-3 or T-4, or continue;"
                f" options: {', '.join(sorted(_OPTIONS - _SCOPE_OPTIONS))}."
            )
    return tuple(arguments)


async def start_work(host: Host, words: str) -> None:
    """Start or resume the chain that ``words`` name, and wait for its process.

    Raises :class:`WorkInvalid`, and ``ChainCommandFailed`` with what the process said.
    """
    arguments = build_arguments(words, await host.engine.chain_options())
    host.show_notice(f"Starting `cockpit {shlex.join(arguments)}`")
    await run_chain_command(host.engine.place, arguments)


COMMANDS = (
    PromptCommand(
        "work",
        "all, E-2, S-3, T-4, ch-1 or continue, and options of `cockpit work`",
        start_work,
    ),
)
