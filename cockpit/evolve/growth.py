"""The rules by which a tool grows: test first, red before green, no round without change. Pure.

See ``docs/reference/evolve.md``, rounds.
"""

from __future__ import annotations

import ast
import re
import sys
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.own_tools.find_tools import NAME
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.core.text import end_sentence

MAX_ROUNDS = 12
"""Answers of the model after which a growth ends."""
MAX_SOURCE = 64_000
"""Characters of a test or of the code."""
SAME_ROUNDS = 2
"""A growth ends when so many rounds in a row have changed nothing."""
STUB = "def __getattr__(name):\n    return lambda *arguments, **named: None\n"
"""Code without any ability: whatever a test calls answers None. A test that passes with it proves nothing."""

WITHHELD_FAILED = (
    "The test passes, and the withheld test fails: the code answers the sample of its test and not another"
    " input, or the withheld test is wrong."
)
"""What is said of it to the model: no value of the withheld test."""

_LOADED = frozenset(
    {"cockpit", "pydantic", "pydantic_core", "typing_extensions", "annotated_types"}
)
"""Modules beside Python's own that the sandbox's process needs: a tool of that name would stand for them."""

_ERROR = re.compile(r"\w*(?:Error|Exception)\b")

Step = Literal["test", "code"]


class SourceRefused(CockpitError):
    """A test or code cannot be used; the message is written for the model."""

    code = "evolve_source"


class SuiteRun(Struct, frozen=True):
    """One run of the tests, in a process of its own."""

    ran: int
    skipped: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    """By test: the end of its trace."""
    error: str = ""
    """Why the process ended without a result: the code cannot be loaded, or it passed a limit."""

    @property
    def is_green(self) -> bool:
        """Whether every test ran and passed; a skipped test proves nothing."""
        return self.ran > 0 and not (self.failed or self.skipped or self.error)

    @property
    def is_loaded(self) -> bool:
        """Whether the tests themselves could be loaded."""
        return not any(name == "(loading)" for name, _ in self.failed)

    def describe(self) -> str:
        """Return the run in words, for the model and the user."""
        if self.error:
            return self.error
        parts = [f"{self.ran} ran, {len(self.failed)} failed, {self.skipped} skipped"]
        parts += [f"{name}\n{trace}" for name, trace in self.failed]
        return "\n\n".join(parts)


def read_run(answer: dict[str, Any]) -> SuiteRun:
    """Return the run of a child's answer; what has another shape counts as an error."""
    try:
        failed = tuple((str(name), str(trace)) for name, trace in answer["failed"])
        return SuiteRun(int(answer["ran"]), int(answer["skipped"]), failed)
    except (KeyError, TypeError, ValueError):
        return SuiteRun(0, error="The tests ended without a result that can be read.")


class Growth(Struct, frozen=True):
    """Where a growth stands. Each round gives a new one."""

    want: str
    name: str = ""
    """The tool's name, once its test was written."""
    purpose: str = ""
    test: str = ""
    """The test that was red without code; it stands from then on."""
    withheld: str = ""
    """The test with another input, which whoever writes the code does not see."""
    code: str = ""
    """The code of the last round."""
    rounds: int = 0
    green: bool = False
    unchanged: int = 0
    """Rounds in a row that changed neither the code nor what failed."""
    last_failure: str = ""
    red: str = ""
    """How the test failed without code."""

    @property
    def stagnates(self) -> bool:
        """Whether another round would be no other than the last ones."""
        return self.unchanged >= SAME_ROUNDS

    @property
    def what_is_missing(self) -> str:
        """The reason why there is no tool yet, in words for the user."""
        step = "No code passed its test"
        if not self.test:
            step = "No test was accepted, so no code was written"
        elif not self.code:
            step = "No code was accepted"
        lines = self.last_failure.splitlines()
        # Of a run, the first error: its trace is in the conversation.
        fault = next((line for line in lines if _ERROR.match(line)), lines[0] if lines else "")
        return f"{step}. The last fault: {end_sentence(fault)}" if fault else f"{step}."


def check_test(growth: Growth, name: str, source: str, withheld: str) -> None:
    """Raise :class:`SourceRefused` for a test that cannot be the first step, or a withheld one like it."""
    if growth.code:
        raise SourceRefused(
            "The test stands: it was red before there was code. Change the code, with write_code."
        )
    if not NAME.fullmatch(name):
        raise SourceRefused(
            f"{name[:60]!r} is not a name of a tool: 2 to 48 lower-case letters, digits and _, such as"
            " parse_pcab."
        )
    if name in sys.stdlib_module_names or name in _LOADED:
        raise SourceRefused(
            f"{name!r} is the name of a module that Python loads itself. Give the tool another name."
        )
    test, other = _parse("The test", source), _parse("The withheld test", withheld)
    for what, tree in (("The test", test), ("The withheld test", other)):
        if name not in _list_imported(tree):
            raise SourceRefused(
                f"{what} does not import {name}. Begin with `from {name} import {name}`."
            )
    if _list_values(other) <= _list_values(test):
        raise SourceRefused(
            "The withheld test has no value that the test does not have. Give it another input."
        )


def _list_imported(tree: ast.Module) -> set[str]:
    imported = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
    return imported


def _list_values(tree: ast.Module) -> set[str]:
    return {repr(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def judge_test(with_stub: SuiteRun, without: SuiteRun, what: str = "The test") -> None:
    """Raise :class:`SourceRefused` for a test that passes at once, runs nothing, or is itself broken.

    ``with_stub`` ran with :data:`STUB`, ``without`` with an empty file.
    """
    if with_stub.error or not with_stub.is_loaded:
        raise SourceRefused(f"{what} itself cannot be run: {with_stub.describe()}")
    if with_stub.ran == 0:
        raise SourceRefused(f"{what} runs nothing. Write functions test_… or unittest cases.")
    if with_stub.is_green:
        raise SourceRefused(
            f"{what} passes although there is no code yet: with every function answering None it is"
            " green. A test that passes at once proves nothing. Assert what the tool returns for a sample"
            " that the test makes."
        )
    if without.is_green:
        raise SourceRefused(f"{what} passes without any code. Import the tool and call it.")


def check_code(growth: Growth, source: str) -> None:
    """Raise :class:`SourceRefused` for code before a test, and for code that is not Python."""
    if not growth.test:
        raise SourceRefused("Write the test first, with write_test; it must be red.")
    _parse("The code", source)


def judge_code(growth: Growth, source: str, run: SuiteRun) -> Growth:
    """Take a round of code with the run of the tests."""
    failure = "" if run.is_green else run.describe()
    is_same = source == growth.code or (bool(failure) and failure == growth.last_failure)
    return replace(
        growth,
        code=source,
        green=run.is_green,
        last_failure=failure,
        unchanged=growth.unchanged + 1 if is_same and not run.is_green else 0,
    )


def _parse(what: str, source: str) -> ast.Module:
    if not source.strip():
        raise SourceRefused(f"{what} is empty.")
    if len(source) > MAX_SOURCE:
        raise SourceRefused(f"{what} has {len(source):,} characters; {MAX_SOURCE:,} are the most.")
    if mask(source) != source:
        raise SourceRefused(
            f"{what} contains text that looks like a key, a token or a password. Use made-up samples that"
            " look like none."
        )
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise SourceRefused(f"{what} is not valid Python{where}: {error}") from error
