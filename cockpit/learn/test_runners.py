"""Test runners: which commands are test runs, and which runner's format their output has.

An unknown runner still gives pass or fail; a script that is named like a test counts as one.
See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from cockpit.access.shell_commands import RanCommand

KNOWN = ("pytest", "unittest", "jest", "vitest", "go", "cargo", "node", "mocha")
"""The runners whose counts are read."""
SCRIPT = "script"
"""A program of the project's own that is named as tests are."""

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*$|py$")
RUNS_PROGRAMS = re.compile(r"(?:(?:python|pypy)[0-9.]*|bash|sh|make|docker|ssh|.*\.(?:py|sh))$")
"""Programs that run others, of which only the output tells whether they were tests."""
_TEST_FILE = re.compile(
    r"(?:test|tests|run[-_]?[a-z0-9_-]*tests?|runtests)\.(?:py|sh|js|mjs|cjs|ts|rb|pl)$"
    r"|(?:test[-_][^/]*|[^/]*[-_.](?:test|tests|spec))\.(?:py|sh|js|mjs|cjs|ts|rb|pl)$",
    re.IGNORECASE,
)
_MODULES = {"pytest": "pytest", "py.test": "pytest", "unittest": "unittest", "tox": "tox"}
_MODULES |= {"nose": "unittest", "nose2": "unittest", "django.test": "unittest", "nox": "nox"}
_PROGRAMS = {
    "pytest": "pytest",
    "py.test": "pytest",
    "nosetests": "unittest",
    "nose2": "unittest",
    "jest": "jest",
    "vitest": "vitest",
    **{
        name: name
        for name in ("mocha", "ava", "tap", "tape", "jasmine", "karma", "tox", "nox", "ctest")
    },
    **{name: name for name in ("rspec", "phpunit", "minitest", "gotestsum", "prove", "bats")},
}
_SUBCOMMANDS: Mapping[str, Mapping[str, str]] = {
    "go": {"test": "go"},
    "cargo": {"test": "cargo", "t": "cargo", "nextest": "nextest"},
    "npm": {"test": "npm", "t": "npm", "tst": "npm"},
    "yarn": {"test": "yarn"},
    "pnpm": {"test": "pnpm", "t": "pnpm"},
    "bun": {"test": "bun"},
    "deno": {"test": "deno"},
    "make": {"test": "make", "tests": "make", "check": "make"},
    "just": {"test": "just", "tests": "just"},
    "mvn": {"test": "mvn", "verify": "mvn"},
    "gradle": {"test": "gradle", "check": "gradle"},
    "gradlew": {"test": "gradle", "check": "gradle"},
    "dotnet": {"test": "dotnet"},
    "mix": {"test": "mix"},
    "swift": {"test": "swift"},
    "rake": {"test": "rake", "spec": "rake"},
    "django-admin": {"test": "unittest"},
}
_LAUNCHERS = frozenset(["npx", "pnpx", "bunx"])
_ASK_ONLY = frozenset(
    ["--version", "--help", "-h", "--collect-only", "--co", "--fixtures", "--list"]
)
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "source", "."])


def test_commands(simple: Sequence[RanCommand]) -> list[tuple[RanCommand, str]]:
    """Return the commands that run tests, each with its runner, of :data:`KNOWN` or another."""
    return [(command, runner) for command in simple if (runner := _runner(command.argv))]


def _runner(argv: Sequence[str]) -> str | None:
    if not argv or _ASK_ONLY.intersection(argv):
        return None
    name, rest = posixpath.basename(argv[0]), list(argv[1:])
    if _PYTHON.match(name):
        return _python(rest)
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    if name == "coverage":
        return _python(rest[1:]) if rest[:1] == ["run"] else None
    if name in _LAUNCHERS or (name in ("npm", "pnpm", "yarn") and rest[:1] in (["exec"], ["dlx"])):
        return _runner([word for word in rest if not word.startswith("-") and word != "exec"])
    if name in ("npm", "pnpm", "yarn", "bun") and rest[:1] in (["run"], ["run-script"]):
        return name if any(word.startswith("test") for word in rest[1:2]) else None
    if name == "yarn" and rest and rest[0] in _PROGRAMS:
        return _PROGRAMS[rest[0]]
    if name == "bundle" and rest[:1] == ["exec"]:
        return _runner(rest[1:])
    if name in ("node", "tsx", "ts-node"):
        return _node(rest)
    if name in _SUBCOMMANDS:
        words = [word for word in rest if not word.startswith(("-", "+"))]
        return next(
            (_SUBCOMMANDS[name][word] for word in words if word in _SUBCOMMANDS[name]), None
        )
    script = next((word for word in rest if not word.startswith("-")), "")
    path = script if name in _SHELLS else argv[0] if "/" in argv[0] or "." in name else ""
    return _script(path, rest)


def _python(rest: list[str]) -> str | None:
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    if rest[:1] == ["-m"]:
        module, words = rest[1] if len(rest) > 1 else "", rest[2:]
        if module in ("django", "coverage"):
            if module == "coverage" and words[:1] == ["run"]:
                return _python(words[1:])
            return "unittest" if words[:1] == ["test"] else None
        if module in _MODULES:
            return _MODULES[module]
        return SCRIPT if _TEST_FILE.search(f"{module.rpartition('.')[2]}.py") else None
    if not rest or rest[0] in ("-c", "-"):
        return None
    return _script(rest[0], rest[1:])


def _node(rest: list[str]) -> str | None:
    if "--test" in rest:
        return "node"
    return _script(next((word for word in rest if not word.startswith("-")), ""), rest)


def _script(path: str, rest: Sequence[str]) -> str | None:
    name = posixpath.basename(path)
    if name in ("manage.py", "setup.py"):
        return "unittest" if "test" in rest[:2] else None
    if name == "runtests.py":
        return "unittest"
    return SCRIPT if _TEST_FILE.match(name) else None
