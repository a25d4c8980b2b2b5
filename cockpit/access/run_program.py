"""Run other programs: argv lists, limited time and output, no process left behind.

Every program runs in its own process group (:mod:`cockpit.access.process_group`), which is ended as a
whole when its time is over, its output exceeds the limit, or the caller is cancelled.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.git_folders import (
    find_refused_redirect,
    locate_git_folders,
    read_git_folders,
)
from cockpit.access.git_overrides import ListedSettings, RepositorySettings, Setting, parse_listing
from cockpit.access.process_group import Overflow, end_group, ended, feed, start
from cockpit.access.reading_sandbox import reading_sandbox
from cockpit.core.errors import PASSING, CockpitError, MachineFault
from cockpit.core.project.own_programs import find_program
from cockpit.core.project.safe_git import (
    NO_HOOKS,
    PINNED_SETTINGS,
    git_argv,
    git_environment,
    reads_tree,
)

_CHUNK = 65_536
MAX_BYTES = 4 * 1024 * 1024
"""Default limit of a program's output, standard output and error together, in bytes."""


class ProgramMissing(CockpitError):
    """The program is not installed, or may not be executed."""

    code = "program_missing"

    def __init__(self, program: str, reason: str = "not found on PATH outside projects") -> None:
        super().__init__(f"{program!r} could not be started: {reason}")
        self.program = program


class ProgramNotStarted(MachineFault):
    """The system could not start a program now, for a reason that passes; nothing of it ran."""

    code = "program_not_started"

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(
            f"{program!r} could not be started now: {reason}. Nothing of it ran; try again when the machine "
            "has room."
        )


_PASSING = PASSING | {errno.EBUSY, errno.ETXTBSY, errno.EINTR}
"""Errors of a start that say nothing about the program."""


class Finished(Struct, frozen=True):
    """The result of a program. ``code`` is its exit status, negative when a signal ended it.

    ``truncated``: the output exceeded the limit, the program was ended, and the output so far is kept.
    ``duration_ms`` is for receipts only; no digest includes it.
    """

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration_ms: int

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with status 0 and its whole output."""
        return self.code == 0 and not self.timed_out and not self.truncated

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """Standard error as text, trimmed; bytes that are not UTF-8 are replaced."""
        return self.stderr.decode("utf-8", "replace").strip()

    @property
    def reason(self) -> str:
        """Why it failed, in one line of at most 400 characters: the last three lines that it wrote.

        A program that another one starts (a filter, a hook, a remote helper) says its cause first, and the
        last line is the other's alone.
        """
        if self.timed_out:
            return "it took too long"
        if self.truncated:
            return "its output is too large"
        lines = [line.strip() for line in (self.error_text or self.text.strip()).splitlines()]
        causes = [
            line.removeprefix("fatal: ").removeprefix("error: ")
            for line in lines
            if line and not line.startswith("hint:")
        ]
        return "; ".join(causes[-3:])[-400:] or f"exit code {self.code}"


async def run_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    max_bytes: int = MAX_BYTES,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    files: Sequence[int] = (),
    on_start: Callable[[int], object] | None = None,
    on_output: Callable[[bytes], object] | None = None,
) -> Finished:
    """Run ``argv`` in ``cwd`` and wait for its end.

    ``env`` is the whole environment (None: this process's). Standard input is empty unless ``stdin`` is
    given. ``files`` are open files that it inherits, ``on_start`` receives its process id,
    ``on_output`` what it writes, piece by piece, as it came. Raises
    :class:`ProgramMissing`, :class:`ProgramNotStarted`, and :class:`CockpitError` for arguments with a NUL
    character and for missing directories.
    """
    words = tuple(argv)
    if not words or any("\0" in word for word in words):
        raise CockpitError("a command needs a program and no NUL characters", code="bad_command")
    if not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240 - one stat, and never on a network path
        raise CockpitError(f"cannot run {words[0]!r} in {cwd.name!r}: no such directory")
    started = time.monotonic()
    try:
        process = await start(words, cwd, env, piped=stdin is not None, files=files)
    except FileNotFoundError as error:
        if not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240 - as above; it went since
            gone = f"cannot run {words[0]!r} in {cwd.name!r}: no such directory"
            raise CockpitError(gone) from error
        raise ProgramMissing(words[0]) from error
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _PASSING:
            raise ProgramNotStarted(words[0], reason) from error
        raise ProgramMissing(words[0], reason) from error
    output = _Output(max_bytes, on_output)
    drains = [
        asyncio.ensure_future(output.drain(process.stdout, output.out)),
        asyncio.ensure_future(output.drain(process.stderr, output.err)),
    ]
    feeding = asyncio.ensure_future(feed(process, stdin))
    timed_out = truncated = False
    try:
        if on_start is not None:
            on_start(process.pid)
        # Not wait_for: on 3.11 it can swallow a cancellation that meets the program's end.
        async with asyncio.timeout(timeout_s):
            await ended(process, drains)
    except TimeoutError:
        timed_out = True
    except Overflow:
        truncated = True
    finally:
        # Children that outlive the program itself are part of what was started, and go with it.
        await asyncio.shield(end_group(process))
        for reading in (*drains, feeding):
            reading.cancel()
        await asyncio.gather(*drains, feeding, return_exceptions=True)
    code = process.returncode
    return Finished(
        argv=words,
        code=-signal.SIGKILL if code is None else code,
        stdout=bytes(output.out),
        stderr=bytes(output.err),
        timed_out=timed_out,
        truncated=truncated,
        duration_ms=int((time.monotonic() - started) * 1000),
    )


class _Output:
    """What a program writes, up to a limit for both of its streams together."""

    def __init__(self, max_bytes: int, on_output: Callable[[bytes], object] | None) -> None:
        self.out, self.err = bytearray(), bytearray()
        self._left = max_bytes
        self._on_output = on_output

    async def drain(self, stream: asyncio.StreamReader | None, into: bytearray) -> None:
        """Read a stream to its end. Raises ``Overflow``, and what ``on_output`` raises."""
        while stream is not None and (chunk := await stream.read(_CHUNK)):
            kept = chunk[: self._left]
            into += kept
            self._left -= len(kept)
            if self._on_output is not None and kept:
                self._on_output(kept)
            if len(kept) < len(chunk):
                raise Overflow


_SETTINGS = RepositorySettings()
_FOLDER_ITSELF = ("--git-dir=.",)
_GH_SET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_SPINNER_DISABLED": "1",
    "GH_PAGER": "cat",
    "GH_BROWSER": "false",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
}
_GH_DROPPED = frozenset(
    {"GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GH_REPO", "GH_EDITOR"}
)


async def prepare_git(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, hooks: bool = False
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return argv and environment of ``git ARGS`` in ``cwd``, the repository's own programs switched off.

    ``env`` adds to :func:`git_environment`. ``hooks`` leaves the repository's hooks on, for what shows or
    runs them with the user's approval. Raises :class:`ProgramMissing`, and :class:`CockpitError` when the
    repository's settings cannot be listed.
    """
    listed, argv, environment = await _prepare(args, cwd, env, hooks)
    own: list[tuple[str, str]] = []
    if (sandbox := reading_sandbox()) is not None:
        own = await sandbox.confine_filters(cwd, listed)
    return argv, {**environment, **settings_environment([*listed.overrides, *own])}


async def _prepare(
    args: tuple[str, ...], cwd: Path, env: Mapping[str, str] | None, hooks: bool
) -> tuple[ListedSettings, tuple[str, ...], dict[str, str]]:
    """Return the settings in ``cwd``, git's words, and its environment without overrides of settings."""
    place = args[:1] if args[:1] and args[0].startswith("--git-dir=") else ()
    listed = await _list_settings(cwd, *place)
    argv = git_argv(*args)
    environment = git_environment(env)
    if hooks:
        off = argv.index(NO_HOOKS)
        argv = (*argv[: off - 1], *argv[off + 1 :])
        # The user approved these programs of the project; they find theirs where a shell would.
        environment["PATH"] = os.environ.get("PATH", os.defpath)
    return listed, argv, environment


def settings_environment(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the variables that give git these settings; unlike ``-c`` they take any name."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


async def read_git_settings(cwd: Path) -> tuple[Setting, ...]:
    """Return every setting that git uses in ``cwd``, those of the user and the system included.

    Raises what :func:`prepare_git` raises.
    """
    return (await _list_settings(cwd)).settings


async def _list_settings(cwd: Path, *place: str) -> ListedSettings:
    async def list_settings() -> bytes:
        listed = await run_program(
            git_argv(*place, "config", "--null", "--list", "--show-scope", "--show-origin"),
            cwd=cwd, timeout_s=30.0, env=git_environment(),
        )  # fmt: skip
        if listed.truncated or listed.timed_out:
            raise CockpitError(
                f"The settings of git in {cwd} are too many to check, so git was not run. Look at them with "
                "`git config --list --local` and remove what does not belong there."
            )
        # Settings that git itself cannot read stop the next git as well.
        return listed.stdout if listed.ok else b""

    checkout = locate_git_folders(cwd)
    if redirect := find_refused_redirect(cwd, checkout):
        raise CockpitError(
            f"git was not started in {cwd}: {redirect.file} of its repository leads to {redirect.target}, and"
            f" {redirect.refused}. Remove that file, after `git repack -a -d` where it lists objects.",
            code="git_redirect",
        )
    if place not in ((), _FOLDER_ITSELF):  # another repository than the folder's
        return parse_listing(await list_settings())
    folders = read_git_folders(str(cwd)) if place else checkout
    return await _SETTINGS.load(cwd, folders, list_settings)


async def run_git(
    *args: str,
    cwd: Path,
    timeout_s: float = 30.0,
    max_bytes: int = MAX_BYTES,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    hooks: bool = False,
) -> Finished:
    """Run ``git ARGS``; ``env`` adds to :func:`git_environment`, ``hooks`` is as for :func:`prepare_git`.

    What reads the files of a checkout is run in the sandbox that the process uses (see
    :mod:`cockpit.access.reading_sandbox`). Raises what :func:`prepare_git` raises, and
    :class:`CockpitError` where the sandbox cannot show the checkout.
    """
    options: dict[str, Any] = {"timeout_s": timeout_s, "max_bytes": max_bytes, "stdin": stdin}
    sandbox = reading_sandbox()
    if sandbox is None or not reads_tree(args):
        argv, environment = await prepare_git(*args, cwd=cwd, env=env, hooks=hooks)
        return await run_program(argv, cwd=cwd, env=environment, **options)
    listed, argv, environment = await _prepare(args, cwd, env, hooks)
    async with sandbox.confine_reading(argv, cwd, environment, listed) as start_of_git:
        words, files = start_of_git.argv, start_of_git.files
        done = await run_program(
            words, cwd=cwd, env=start_of_git.environment, files=files, **options
        )
    if start_of_git.confined and not done.ok and done.stderr.startswith(b"bwrap: "):
        raise CockpitError(
            f"git {args[0]} was not run: the sandbox cannot show {cwd} ({done.error_text[:200]}). Look at"
            " what is mounted there; `cockpit doctor` tries the sandbox.",
            code="git_reading",
        )
    return replace(done, argv=argv)


async def run_gh(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float = 60.0,
    max_bytes: int = MAX_BYTES,
    stdin: bytes | None = None,
) -> Finished:
    """Run a ``gh`` command (a leading ``gh`` is optional) that never prompts, pages or colours.

    The git that gh starts runs none of the repository's own programs either. Raises
    :class:`ProgramMissing` when gh is not installed.
    """
    program = find_program("gh")
    if program is None:
        raise ProgramMissing("gh")
    args = argv[1:] if list(argv[:1]) == ["gh"] else argv
    env = {name: value for name, value in git_environment().items() if name not in _GH_DROPPED}
    pinned = [(name, value) for name, _, value in (each.partition("=") for each in PINNED_SETTINGS)]
    env |= settings_environment([*pinned, *(await _list_settings(cwd)).overrides])
    return await run_program(
        (program, *args),
        cwd=cwd,
        timeout_s=timeout_s,
        max_bytes=max_bytes,
        stdin=stdin,
        env={**env, **_GH_SET},
    )
