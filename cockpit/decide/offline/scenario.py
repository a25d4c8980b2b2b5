"""The file a scripted model plays: TOML, checked in full before the first word is spoken.

::

    title = "a review with one discussion"      # optional
    pace = 0.02                                 # optional: seconds between fragments, default 0

    [[turn]]                                    # no conditions: what is played if nothing else fits
    text = "I need two files."
    [[turn.call]]
    name = "request_context"
    arguments = { purpose = "…", question = "…", scope = ["file:a.py"] }

    [[turn]]
    when = { called = ["request_context"] }     # the prompt has that call by now
    text = "Here is my review."
    [[turn.call]]
    name = "github"
    raw_arguments = '{"argv": ['                # instead of arguments: sent unchecked, as it is

    [[turn]]
    when = { contains = ["please keep the old name"] }
    text = "I keep it."
    cut = true                                  # the stream breaks after the text; calls are lost
    error = { code = "rate_limit", times = 2 }  # fails twice first, then plays

**Which turn is played.** The *last* turn of the file whose conditions all hold for the prompt.
Nothing is used up and nothing is remembered: the same prompt gets the same turn in any process, so
a killed session that re-enters plays on where it was. Write turns in the order in which they
should happen, each with what distinguishes it from those before it. If no turn fits, the call
fails and says so.

**Conditions** (``when``; all given ones must hold): ``wave`` (the wave's ordinal, exactly),
``wave_from`` (that ordinal or a later one), ``task_type``, ``called`` and ``not_called`` (names of
tools that do, or do not, stand among the calls of earlier answers), ``contains`` and
``not_contains`` (regular expressions, searched in the text of every message, fact and earlier
call's arguments; case is ignored), ``facts`` (regular expressions over ``SOURCE_TYPE:SOURCE_REF``
of the packet's facts; each must be found).

**Errors**: ``code`` is one of :class:`~cockpit.decide.model.ModelError`'s. With ``times = n`` the
first n attempts of the call fail, ``wait_s`` apart; without ``times`` the call fails permanently.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from cockpit.core.read_record import convert
from cockpit.decide.model import ModelError, Prompt

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
_Ordinal = Annotated[int, msgspec.Meta(ge=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Code = Literal["auth", "not_found", "rate_limit", "network", "bad_request", "config"]


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must hold for a turn to be played; an empty one always holds."""

    wave: _Ordinal | None = None
    wave_from: _Ordinal | None = None
    task_type: str | None = None
    called: tuple[_Name, ...] = ()
    not_called: tuple[_Name, ...] = ()
    contains: tuple[_Name, ...] = ()
    not_contains: tuple[_Name, ...] = ()
    facts: tuple[_Name, ...] = ()

    def holds(self, view: Seen) -> bool:
        """Whether every condition given holds for what the prompt shows."""
        return (
            self.wave in (None, view.wave)
            and (self.wave_from is None or self.wave_from <= view.wave)
            and self.task_type in (None, view.task_type)
            and all(name in view.calls for name in self.called)
            and not any(name in view.calls for name in self.not_called)
            and all(_matches(pattern, view.texts) for pattern in self.contains)
            and not any(_matches(pattern, view.texts) for pattern in self.not_contains)
            and all(_matches(pattern, view.facts) for pattern in self.facts)
        )


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call: ``arguments`` as a table, or ``raw_arguments`` as any text."""

    name: _Name
    arguments: dict[str, Any] | None = None
    raw_arguments: str | None = None

    @property
    def text(self) -> str:
        """The arguments as the model would have written them."""
        if self.raw_arguments is not None:
            return self.raw_arguments
        return json.dumps(self.arguments or {}, ensure_ascii=False)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A failure before the turn: ``times`` attempts long, or permanent when ``times`` is absent."""

    code: _Code
    times: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    wait_s: _Seconds = 1.0
    message: str = "the scenario says so"


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer: text, then calls."""

    when: When = When()
    text: str = ""
    pace: _Seconds | None = None
    call: tuple[Call, ...] = ()
    error: Fault | None = None
    cut: bool = False


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file. Turns keep the file's order."""

    turn: Annotated[tuple[Turn, ...], msgspec.Meta(min_length=1)]
    title: str = ""
    pace: _Seconds = 0.0

    def turn_for(self, prompt: Prompt) -> Turn | None:
        """The last turn whose conditions hold; None if there is none. Depends on nothing else."""
        seen = Seen(prompt)
        return next((turn for turn in reversed(self.turn) if turn.when.holds(seen)), None)


class Seen:
    """What conditions look at, taken from the prompt once, when a condition asks for it."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self.wave = prompt.wave
        self.task_type = prompt.task_type

    @cached_property
    def calls(self) -> frozenset[str]:
        return frozenset(call.name for message in self._prompt.messages for call in message.calls)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        messages = self._prompt.messages
        return (
            *(message.text for message in messages),
            *(fact.text for fact in self._prompt.facts),
            *(call.arguments for message in messages for call in message.calls),
        )

    @cached_property
    def facts(self) -> tuple[str, ...]:
        return tuple(f"{fact.source_type}:{fact.source_ref}" for fact in self._prompt.facts)


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario. Raises :class:`ModelError` (``script``) naming file and place."""
    try:
        return _parse(path, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be read") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"byte {error.start} is not UTF-8") from error


@lru_cache(maxsize=4)  # a chain opens a model for each task
def _parse(path: Path, text: str) -> Scenario:
    try:
        scenario = convert(tomllib.loads(text), Scenario)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _unreadable(path, str(error)) from error
    for number, turn in enumerate(scenario.turn, start=1):
        _check(path, number, turn)
    return scenario


def _check(path: Path, number: int, turn: Turn) -> None:
    for field in ("contains", "not_contains", "facts"):
        for index, pattern in enumerate(getattr(turn.when, field)):
            try:
                re.compile(pattern)
            except re.error as error:
                place = f"turn {number}, when.{field}[{index}]"
                raise _unreadable(
                    path, f"{place} is not a regular expression: {error}: {pattern!r}"
                ) from error
    for index, call in enumerate(turn.call):
        place = f"turn {number}, call {index + 1} ({call.name})"
        if call.arguments is not None and call.raw_arguments is not None:
            raise _unreadable(path, f"{place} has both arguments and raw_arguments; keep one")
        try:
            json.dumps(call.arguments, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _unreadable(path, f"{place}: the arguments are not JSON: {error}") from error


def _unreadable(path: Path, why: str) -> ModelError:
    return ModelError("script", f"The scenario {path} cannot be played: {why}.")


def _matches(pattern: str, texts: tuple[str, ...]) -> bool:
    expression = re.compile(pattern, re.IGNORECASE)
    return any(expression.search(text) for text in texts)
