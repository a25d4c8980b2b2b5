"""The sandbox of commands: bubblewrap where it works; elsewhere commands run plainly and say so.

Inside there are the system's programs and the user's toolchains, read-only, the project, and empty
places for the home and temporary files. The network is off, no capability is left, no new namespace can
be made, and a filter refuses system calls that no build needs (:mod:`cockpit.act.sandbox.seccomp_filter`).
Of git only a view is there, which cannot be written. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.act.sandbox.git_places import GitPlaces, find_git_places
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.act.sandbox.seccomp_filter import filter_program, open_filter
from cockpit.act.sandbox.visible_places import (
    homes,
    program_options,
    readable_places,
    system_options,
)
from cockpit.core.project.own_programs import find_program
from cockpit.core.state_folder import state_root

MOST_ENTRIES = 10_000
"""Files and folders that are looked at: a command must not wait for longer than a few milliseconds."""
MOST_COVERED = 200
_FOLDER = "__pycache__"
_APART = frozenset({".git", "node_modules", "site-packages", "dist-packages"})
"""Not installed packages: who can change their bytecode can change their sources, which nothing shows."""


def find_bytecode(root: Path) -> tuple[str, ...] | None:
    """Return the folders of bytecode in the project at ``root``; None where they cannot all be covered.

    That is a project that is too large, has too many of them, a link or a file in place of one, or a folder
    that cannot be read.
    """
    caches: list[str] = []
    waiting = [str(root)]
    left = MOST_ENTRIES
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0 or len(caches) > MOST_COVERED:
                        return None
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if entry.name == _FOLDER:
                        if not is_folder:
                            return None
                        caches.append(entry.path)
                    elif is_folder and entry.name not in _APART:
                        waiting.append(entry.path)
    except OSError:
        return None
    return tuple(caches)


FILE_BYTES = 2 * 1024**3
"""The largest file that a command may write."""

_FIRST = (
    "/bin/sh",
    "-c",
    # Bash counts processes by -u, dash by -p, which of bash is the size of pipes.
    'most=$1; shift; [ "$most" = 0 ] || { ulimit -u "$most" || ulimit -p "$most"; } 2>/dev/null; '
    '"$@"; exit $?',
    "sh",
)
# The sandbox's first process. When it ends, the kernel ends all others before anybody is told:
# bubblewrap's own first process would be killed a moment after. The words are fixed; the command
# comes as arguments and is not read by this shell.

_NAMESPACES = (
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
)
NO_RIGHTS = ("--cap-drop", "ALL")
_COUNTS_BY_NAMESPACE = (5, 14)
"""The Linux that counts a user's processes by namespace: before it, those outside would count as well."""


class Launch(Struct, frozen=True):
    """A command with the sandbox in front of it, and the open files that it must inherit."""

    argv: tuple[str, ...]
    files: tuple[int, ...] = ()


class Extra(Struct, frozen=True):
    """What one run sees beyond the project. Places are (outside, inside)."""

    read: tuple[tuple[Path, Path], ...] = ()
    write: tuple[tuple[Path, Path], ...] = ()
    git: Literal["read", "none"] | tuple[Path, Path] = "read"
    """``read``: the repository, which cannot be written. A pair: a view of it, and where it is mounted."""
    root: Literal["write", "read"] = "write"
    variables: Mapping[str, str] = field(default_factory=dict)
    tools: bool = True
    """Whether toolchains are seen. Without them the run is one program of the system, and starts no other."""
    home: Path | None = None
    """What is in the place of the home directory; None for an empty one."""


class Sandbox(Struct, frozen=True):
    """The sandbox programs of this machine. ``bwrap`` and ``prlimit`` are paths of programs, or None.

    ``missing`` says why there is no bubblewrap ('' when there is).
    """

    bwrap: str | None
    prlimit: str | None
    missing: str = ""
    options: frozenset[str] = frozenset()
    """Options that not every bubblewrap has, and this one has."""
    choices: SandboxChoices = field(default_factory=SandboxChoices)
    filters: bool = True
    """Whether the kernel takes a filter of system calls."""

    @property
    def works(self) -> bool:
        """Whether commands are confined."""
        return self.bwrap is not None

    def words(self) -> str:
        """Return the sandbox as a field of the preview."""
        if self.bwrap is None:
            return "none"
        return "bubblewrap: project writable, .git read-only, home hidden, network off"

    def notes(self) -> tuple[str, ...]:
        """Return what is missing, for the user who decides."""
        notes = []
        if self.bwrap is None:
            notes.append(
                f"No sandbox: {self.missing}. The command runs with all of your rights, and can "
                "reach your files and the network."
            )
        elif not self.filters:
            notes.append("The sandbox does not filter system calls: this kernel takes no filter.")
        if self.prlimit is None:
            notes.append("No memory limit for a process: the program prlimit is not installed.")
        return tuple(notes)

    @contextmanager
    def launch(
        self,
        argv: Sequence[str],
        root: Path,
        environment: Mapping[str, str],
        *,
        network: bool = False,
        extra: Extra | None = None,
    ) -> Iterator[Launch]:
        """Yield ``argv`` with sandbox and limits in front of it; the files are closed afterwards.

        Without bubblewrap only the limits are there.
        """
        if self.bwrap is None:
            yield Launch(self.limited(argv))
            return
        files: list[int] = []
        try:
            seen = extra or Extra()
            options = self._options(root, environment, network, seen, files)
            if not seen.tools:
                yield Launch((self.bwrap, *options, "--", *argv), tuple(files))
                return
            first = limit_processes(argv, self.choices.limits.processes)
            yield Launch(self.limited((self.bwrap, *options, "--", *first)), tuple(files))
        finally:
            for each in files:
                os.close(each)

    def limited(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return ``argv`` with only the limits of memory, file size and core dumps in front of it."""
        if self.prlimit is None:
            return tuple(argv)
        most = self.choices.limits.process_bytes
        return (
            self.prlimit,
            f"--data={most}:{most}",
            f"--fsize={FILE_BYTES}:{FILE_BYTES}",
            "--core=0:0",
            *argv,
        )

    def _options(
        self,
        root: Path,
        environment: Mapping[str, str],
        network: bool,
        extra: Extra,
        files: list[int],
    ) -> list[str]:
        options = [*system_options()] if extra.tools else [*program_options()]
        options += [*_NAMESPACES, *NO_RIGHTS]
        if "--disable-userns" in self.options:
            options.append("--disable-userns")
        if network:
            options += ["--share-net"]
        if extra.tools:
            options += self._surroundings(root, environment, extra)
        options += ["--bind" if extra.root == "write" else "--ro-bind", str(root), str(root)]
        places = None if extra.git == "none" else find_git_places(root)
        if places is not None:
            options += _git_options(places, root, extra, files)
        for state in (root / ".cockpit" / "state", Path(state_root())):
            # The state is in the project only where that is a home directory under version control.
            if state.is_relative_to(root) and state.is_dir() and not state.is_symlink():
                options += ["--tmpfs", str(state), "--remount-ro", str(state)]
        shown = places.directories if places is not None and extra.git == "read" else ()
        for outside, inside in extra.read:
            # Of the repository, what hides the secrets of its settings stays on top.
            if outside != inside or not any(outside.is_relative_to(place) for place in shown):
                options += ["--ro-bind", str(outside), str(inside)]
        for outside, inside in extra.write:
            options += ["--bind", str(outside), str(inside)]
        program = filter_program() if self.filters else None
        if program is not None:
            files.append(open_filter(program))
            options += ["--seccomp", str(files[-1])]
        options += ["--chdir", str(root), "--setenv", "TMPDIR", "/tmp"]  # noqa: S108 - it is private
        if extra.tools:
            options += _bytecode_options(root)
        for name, value in extra.variables.items():
            options += ["--setenv", name, value]
        # Last: nothing can be mounted below it afterwards.
        return [*options, "--remount-ro", "/"]

    def _surroundings(self, root: Path, environment: Mapping[str, str], extra: Extra) -> list[str]:
        """Return the mounts of what programs find beside the project: empty places and toolchains."""
        options: list[str] = []
        # Read-only: the kernel's settings belong to the administrator, whose number a sandbox started
        # by the administrator keeps. One of them names a program that the kernel runs.
        options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        for place in self._empty_places(root, environment):
            if extra.home is not None and place == Path(environment.get("HOME", "")):
                options += ["--bind", str(extra.home), str(place)]
            else:
                options += [*self._size(), "--tmpfs", str(place)]
        options += system_options(late=True)
        options += ["--perms", "1777"] if "--perms" in self.options else []
        options += [*self._size(), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        for place in readable_places(root, environment, self.choices.read):
            options += ["--ro-bind", str(place), str(place)]
        return options

    def _empty_places(self, root: Path, environment: Mapping[str, str]) -> list[Path]:
        """List the directories that begin empty, outermost first; never the project or a part of it."""
        places = {Path("/tmp"), Path("/var/tmp"), Path("/run"), *homes(environment)}  # noqa: S108
        return sorted(
            (place for place in places if not place.is_relative_to(root)),
            key=lambda place: (len(place.parts), str(place)),
        )

    def _size(self) -> list[str]:
        limit = str(self.choices.limits.temporary_bytes)
        return ["--size", limit] if "--size" in self.options else []


def _bytecode_options(root: Path) -> list[str]:
    """Return what keeps Python from running bytecode of the project: what is shown is what runs."""
    caches = find_bytecode(root)
    if caches is None:
        return ["--setenv", "PYTHONPYCACHEPREFIX", "/tmp/pycache"]  # noqa: S108 - it is private
    options = ["--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
    for cache in caches:
        options += ["--tmpfs", cache, "--remount-ro", cache]
    return options


async def detect(environment: Mapping[str, str], choices: SandboxChoices | None = None) -> Sandbox:
    """Test once which sandbox programs work on this machine; the caller keeps the result."""
    chosen = choices or SandboxChoices()
    path = environment.get("PATH")
    prlimit = find_program("prlimit", path)
    bwrap = find_program("bwrap", path)
    if bwrap is None:
        missing = "bubblewrap (bwrap) is not installed"
        return Sandbox(None, prlimit, missing, choices=chosen)
    key = (bwrap, prlimit)
    if key not in _tried:
        _tried[key] = await _try(bwrap, prlimit)
    tried = _tried[key]
    return Sandbox(tried.bwrap, prlimit, tried.missing, tried.options, chosen, tried.filters)


_tried: dict[tuple[str, str | None], Sandbox] = {}
_TRIAL_S = 60.0
"""A trial that runs out of time counts as failed, and a busy machine is not one without a sandbox."""


async def _try(bwrap: str, prlimit: str | None) -> Sandbox:
    """Run nothing in the sandbox: as it should be, then without what this machine may not have."""
    try:
        listed = await run_program((bwrap, "--help"), cwd=Path("/"), timeout_s=_TRIAL_S)
    except ProgramMissing as error:
        return Sandbox(None, prlimit, str(error))
    text = listed.text + listed.error_text
    options = frozenset(name for name in ("--disable-userns", "--size", "--perms") if name in text)
    why = ""
    # A kernel without filters, and one that lets nobody close the namespaces, are both worth a sandbox.
    for given, filters in (
        (options, True),
        (options - {"--disable-userns"}, True),
        (options, False),
        (options - {"--disable-userns"}, False),
    ):
        sandbox = Sandbox(bwrap, prlimit, "", given, filters=filters)
        with sandbox.launch(
            ("true",), Path("/usr"), {}, extra=Extra(git="none", root="read")
        ) as trial:
            finished = await run_program(
                trial.argv, cwd=Path("/"), timeout_s=_TRIAL_S, env=_BARE, files=trial.files
            )
        if finished.ok:
            return sandbox
        why = why or next(iter(finished.error_text.splitlines()[-1:]), "it did not start")
    return Sandbox(None, prlimit, f"bubblewrap does not work here ({why[:120]})")


_BARE = {"PATH": "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"}


def limit_processes(argv: Sequence[str], most: int) -> tuple[str, ...]:
    """Return ``argv`` behind the sandbox's first process, which limits the number of processes."""
    return (*_FIRST, str(most if _counts_by_namespace() else 0), *argv)


def _counts_by_namespace() -> bool:
    release = os.uname().release.split(".")
    return tuple(int(part) for part in release[:2] if part.isdigit()) >= _COUNTS_BY_NAMESPACE


def _git_options(places: GitPlaces, root: Path, extra: Extra, files: list[int]) -> list[str]:
    """Return the mounts of the repository: never writable, and its settings without what is private."""
    options: list[str] = []
    is_writable = extra.root == "write"
    if is_writable:
        for place in places.fixed:
            options += ["--bind", str(place), str(place)]
        for place in places.frozen:
            options += ["--ro-bind", str(place), str(place)]
    if isinstance(extra.git, tuple):
        view, inside = extra.git
        options += ["--bind", str(view), str(inside)]
        return options
    for place in places.directories:
        if is_writable or not place.is_relative_to(root):
            options += ["--ro-bind", str(place), str(place)]
    for place, text in places.settings:
        descriptor = os.memfd_create("settings", os.MFD_CLOEXEC)
        files.append(descriptor)
        os.write(descriptor, text)
        os.lseek(descriptor, 0, os.SEEK_SET)
        options += ["--ro-bind-data", str(descriptor), str(place)]
    return options
