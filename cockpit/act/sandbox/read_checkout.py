"""Git in the sandbox: where it reads a checkout, and the user's filters where it writes one.

A command of a session can have written anything there: attributes that give the user's own filters any
content, with programs of the checkout's next to them, or links that are swapped while git reads. What of the
user's settings changes how a file is read is passed on; nothing of a home is seen.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from cockpit.access.git_folders import locate_git_folders
from cockpit.access.git_overrides import ListedSettings, Setting
from cockpit.access.reading_sandbox import GitStart
from cockpit.access.run_program import settings_environment
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox, detect
from cockpit.act.sandbox.git_view import list_object_folders
from cockpit.act.sandbox.visible_places import is_system_program
from cockpit.core.project.own_programs import find_program
from cockpit.core.state_folder import state_root

_PASSED = re.compile(
    r"core\.(autocrlf|eol|safecrlf|filemode|ignorecase|symlinks|precomposeunicode|sparsecheckout"
    r"|sparsecheckoutcone|checkstat|trustctime|bigfilethreshold|excludesfile|attributesfile|bare)"
    r"|(filter|lfs|index|feature|status|submodule|i18n)\..+",
    re.DOTALL,
)
"""Settings that change how a file is read."""
_VARIABLES = re.compile(
    r"GIT_.*|LC_.*|PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|PAGER|TZ|XDG_CONFIG_HOME"
)
_FILTER = re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL)
_MERGE = re.compile(r"merge\..*\.driver", re.DOTALL)
_REQUIRED = re.compile(r"filter\.(.*)\.(clean|smudge|process)", re.DOTALL)
_OWN_LISTS = (("core.excludesfile", "ignore"), ("core.attributesfile", "attributes"))
_LARGE_FILES = frozenset(
    {"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"}
    | {"git-lfs filter-process", "git-lfs filter-process --skip"}
)
"""Git LFS keeps contents in the repository, which nothing in the sandbox can. It runs nothing else."""


class CheckoutSandbox:
    """The sandbox of this machine, for git."""

    @asynccontextmanager
    async def confine_reading(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        listed: ListedSettings,
    ) -> AsyncIterator[GitStart]:
        """Yield ``argv`` in the sandbox, where there is one and ``cwd`` is in a checkout."""
        top = _find_top(cwd)
        sandbox = None if top is None else await detect(os.environ)
        if top is None or sandbox is None or not sandbox.works:
            variables = {**environment, **settings_environment(listed.overrides)}
            yield GitStart(tuple(argv), variables)
            return
        passed = list(_passed_settings(listed.settings))
        filters = any(_FILTER.fullmatch(name) and value for name, value in passed)
        if filters:
            # What a filter keeps has no place in a repository that cannot be written.
            passed.append(("lfs.storage", "/tmp/lfs"))  # noqa: S108 - it is private
        variables = {
            name: value for name, value in environment.items() if _VARIABLES.fullmatch(name)
        }
        variables |= settings_environment([*passed, *listed.overrides])
        extra = Extra(
            read=tuple(_readable(top, variables, dict(passed))),
            root="read",
            tools=filters or not _is_of_system(argv[0], variables.get("PATH", "")),
        )
        words = (argv[0], "-C", str(cwd), *argv[1:])
        with sandbox.launch(words, top, variables, extra=extra) as launch:
            yield GitStart(launch.argv, variables, launch.files, confined=True)

    async def confine_filters(self, cwd: Path, listed: ListedSettings) -> list[tuple[str, str]]:
        """Return the user's filters and drivers of merges with the sandbox in front of them."""
        undone = {name for name, _ in listed.overrides if not _is_own(name, listed.settings)}
        own = {
            setting.name: setting.value
            for setting in listed.settings
            if (_FILTER.fullmatch(setting.name) or _MERGE.fullmatch(setting.name))
            and setting.name not in undone
            and setting.value
            and setting.value not in _LARGE_FILES
            and setting.scope in ("global", "system")
        }
        top = _find_top(cwd) if own else None
        sandbox = None if top is None else await detect(os.environ)
        if top is None or sandbox is None or not sandbox.works:
            return []
        return [(name, _wrap(sandbox, top, name, value)) for name, value in own.items()]


@cache
def _is_of_system(program: str, path: str) -> bool:
    return is_system_program(os.path.realpath(find_program(program, path) or ""))


def _is_own(name: str, settings: Sequence[Setting]) -> bool:
    return any(each.name == name and each.scope in ("global", "system") for each in settings)


def _wrap(sandbox: Sandbox, top: Path, name: str, command: str) -> str:
    """Return a program of a setting with the sandbox in front of it; git fills in its ``%f``."""
    # Git passes no open file on, and a filter of system calls comes as one.
    plain = Sandbox(
        sandbox.bwrap, sandbox.prlimit, "", sandbox.options, sandbox.choices, filters=False
    )
    variables = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    git = top / ".git"
    extra = Extra(
        git="none",
        read=((git, git),),
        root="write" if _MERGE.fullmatch(name) else "read",  # a driver writes into a file there
    )
    with plain.launch(("/bin/sh", "-c"), top, variables, extra=extra) as launch:
        front = shlex.join(launch.argv)
    if name.endswith(".process"):
        return f"{front} {shlex.quote(command)}"
    # Percent signs of the words are none of git's.
    return f"{front.replace('%', '%%')} {_quote_command(command)}"


def _quote_command(command: str) -> str:
    """Quote a command for ``sh -c``, but for the letters that git fills in as words of their own."""
    filled = list(dict.fromkeys(re.findall(r"%[fOABLPSXY]", command)))
    for number, letter in enumerate(filled, start=1):
        command = command.replace(letter, f'"${{{number}}}"')
    return " ".join((shlex.quote(command), "sh", *filled))


def _find_top(cwd: Path) -> Path | None:
    """Return the folder of ``.git`` that ``cwd`` is in, as git finds it."""
    real = Path(os.path.realpath(cwd))
    for folder in (real, *real.parents):
        if os.path.lexists(f"{folder}/.git"):
            return folder
    return None


def _passed_settings(settings: Sequence[Setting]) -> Iterator[tuple[str, str]]:
    """Yield what git would use of these settings, with programs that may be missing made optional."""
    effective: dict[str, str] = {}
    for setting in settings:
        if setting.name == "safe.directory":
            yield setting.name, setting.value
        elif _PASSED.fullmatch(setting.name):
            effective[setting.name] = setting.value
    for name in list(effective):
        if match := _REQUIRED.fullmatch(name):
            effective[f"filter.{match[1]}.required"] = "false"
    yield from effective.items()


def _readable(
    top: Path, variables: Mapping[str, str], passed: Mapping[str, str]
) -> Iterator[tuple[Path, Path]]:
    """Yield what git reads of this checkout outside of it."""
    home = variables.get("HOME", "")
    base = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for name, own in _OWN_LISTS:
        file = Path(os.path.expanduser(passed.get(name) or f"{base}/git/{own}"))  # noqa: PTH111
        if file.is_absolute() and os.path.isfile(file) and not file.is_relative_to(top):  # noqa: PTH113
            yield file, file
    index = variables.get("GIT_INDEX_FILE", "")
    if index.startswith("/") and Path(index).is_file():
        yield Path(index), Path(index)
    folders = locate_git_folders(top)
    if folders is None:
        return
    state = state_root()
    for text in dict.fromkeys((folders.common, folders.own)):
        folder = Path(os.path.realpath(text))
        if not folder.is_relative_to(top) and str(folder) != state:
            yield folder, folder
    for folder in list_object_folders(Path(folders.common))[1:]:
        yield folder, folder
