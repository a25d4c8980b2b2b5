"""Tests that an agent may not change while it fixes a failure: a green run must mean correct code.

A file is a test by its name, in any of the usual layouts; files that select which tests run are
protected with them. See ``docs/reference/plans.md``.
"""

from __future__ import annotations

import posixpath
import re

from msgspec import Struct

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.act.guards.action_guard import GuardState, Refusal
from cockpit.act.model_tools import Call
from cockpit.act.tool_payloads import EditFile, GitCommit, Run, WriteFile

_FOLDERS = frozenset(
    ["test", "tests", "testing", "__tests__", "__snapshots__", "spec", "specs", "testdata", "e2e"]
)
_NAMES = re.compile(
    r"(?:test|tests|conftest)\.[a-z]+$|test[-_][^/]*\.[a-z]+$"
    r"|[^/]*[-_.](?:test|tests|spec|specs)\.[a-z]+$|[^/]*(?:Test|Tests|Spec|IT)\.[a-zA-Z]+$",
)
_DECIDING = frozenset(
    [
        *("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "noxfile.py", "sitecustomize.py"),
        *("package.json", "makefile", "gnumakefile", "justfile", "cargo.toml", "go.mod"),
        *("karma.conf.js", ".mocharc.json", ".mocharc.js", ".mocharc.yml", ".coveragerc"),
        *(".pytest.ini", "pytest.toml", ".pytest.toml", "usercustomize.py"),
        # What git ignores is in no commit: a conftest.py behind it would go unnoticed.
        ".gitignore",
    ]
)
_RUNNERS = frozenset(["unittest", "pytest", "_pytest"])
"""Modules at the project's top that Python would take for those that run its tests."""
_CONFIGURATION = re.compile(r"(?:jest|vitest|vite|playwright|cypress|babel)\.config\.[a-z]+$")
_REMOVING = frozenset(
    [
        *("rm", "rmdir", "unlink", "shred", "truncate", "mv", "cp", "install", "ln", "dd", "tee"),
        *("sed", "perl", "patch", "rsync", "chmod", "touch", "find", "git"),
    ]
)
"""Programs that delete or change the files that stand among their words."""


def is_test(path: str) -> bool:
    """Whether ``path`` (from the project's root) is a test, or selects which tests run."""
    clean = posixpath.normpath(path.replace("\\", "/"))
    *folders, name = clean.split("/")
    return (
        any(folder.lower() in _FOLDERS for folder in folders)
        or _NAMES.match(name) is not None
        or name.lower() in _DECIDING
        or _CONFIGURATION.match(name.lower()) is not None
        or clean.removeprefix("src/").partition("/")[0].removesuffix(".py") in _RUNNERS
    )


class TestsGuard(Struct, frozen=True):
    """Refuse to write tests, and commands that name one and remove or rewrite files.

    Changes that cannot be seen in a command's words are undone afterwards
    (:mod:`cockpit.tasks.test_protection`).
    """

    __test__ = False

    confined: Confined
    name: str = "protected_test"

    def check(self, call: Call, state: GuardState) -> Refusal | None:
        match call.payload:
            case WriteFile(path=path) | EditFile(path=path):
                named = [path]
            case GitCommit(paths=paths):
                named = list(paths)
            case Run(argv=argv) if posixpath.basename(argv[0]) in _REMOVING or "-i" in argv:
                named = [word for word in argv[1:] if not word.startswith("-")]
            case _:
                return None
        protected = [path for path in named if self._protected(path)]
        if not protected:
            return None
        return Refusal(
            self.name,
            f"{protected[0]} is a test, or selects which tests run: you may not change it to fix a "
            "failure. Change the code under test. If the test itself is wrong, finish as "
            "blocked and say why.",
        )

    def _protected(self, path: str) -> bool:
        """By its spelling, or by the file that a link leads to."""
        try:
            real = str(self.confined.inside(path).relative_to(self.confined.root))
        except (PathRefused, ValueError):
            real = path
        return is_test(path) or is_test(real) or posixpath.basename(path).lower() in _FOLDERS
