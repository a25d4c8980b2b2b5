"""The sandbox of commands: bubblewrap where it works; elsewhere commands run plainly and say so.

Inside, the file system is read-only except the project and a private ``/tmp``. Home directories,
``/run`` (its sockets lead to other services) and cockpit's own state are hidden; the network is off;
git's hooks and configuration cannot be written, and ``.git`` cannot be moved away (it is a mount point
of its own). Toolchains in a home directory stay readable, or no interpreter would start. Memory and
core size are limited with ``prlimit``, whose limits the sandbox inherits: a program in front costs a
millisecond, while limits set between fork and exec are not safe in a process with threads.

A command can still plant files in ``.git`` that redirect git; the caller looks for them afterwards
(:func:`cockpit.act.sandbox_toolchains.redirects`). See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.act.sandbox_toolchains import git_places, readable_places

MEMORY_BYTES = 4 * 1024**3
"""The most private memory that one process of a command may have."""

FILE_BYTES = 2 * 1024**3
"""The largest file that a command may write."""

_FIRST = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
# The sandbox's first process. When it ends, the kernel ends all others before anybody is told:
# bubblewrap's own first process would be killed a moment after. The words are fixed; the command
# comes as arguments and is not read by this shell.

_NAMESPACES = ("--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox programs of this machine. ``bwrap`` and ``prlimit`` are paths of programs, or None.

    ``missing`` says why there is no bubblewrap ('' when there is).
    """

    bwrap: str | None
    prlimit: str | None
    missing: str = ""

    @property
    def works(self) -> bool:
        """Whether commands are confined."""
        return self.bwrap is not None

    def words(self, *, network: bool = False) -> str:
        """Return the sandbox as a field of the preview."""
        if self.bwrap is None:
            return "none"
        net = "on" if network else "off"
        return f"bubblewrap: project writable, home hidden, network {net}"

    def notes(self) -> tuple[str, ...]:
        """Return what is missing, for the user who decides."""
        notes = []
        if self.bwrap is None:
            notes.append(
                f"No sandbox: {self.missing}. The command runs with all of your rights, and can "
                "reach your files and the network."
            )
        if self.prlimit is None:
            notes.append("No memory limit: the program prlimit is not installed.")
        return tuple(notes)

    def wrapped(
        self,
        argv: Sequence[str],
        root: Path,
        environment: Mapping[str, str],
        *,
        network: bool = False,
    ) -> tuple[str, ...]:
        """Return ``argv`` with the sandbox and the limits in front of it."""
        if self.bwrap is None:
            return self.limited(argv)
        options = _options(root, environment, network)
        return self.limited((self.bwrap, *options, "--", *_FIRST, *argv))

    def limited(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return ``argv`` with only the limits of memory, file size and core dumps in front of it."""
        if self.prlimit is None:
            return tuple(argv)
        return (
            self.prlimit,
            f"--data={MEMORY_BYTES}:{MEMORY_BYTES}",
            f"--fsize={FILE_BYTES}:{FILE_BYTES}",
            "--core=0:0",
            *argv,
        )


async def detect(environment: Mapping[str, str]) -> Sandbox:
    """Test once which sandbox programs work on this machine; the caller keeps the result."""
    path = environment.get("PATH")
    prlimit = shutil.which("prlimit", path=path)
    bwrap = shutil.which("bwrap", path=path)
    if bwrap is None:
        return Sandbox(None, prlimit, "bubblewrap (bwrap) is not installed")
    trial = (bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_NAMESPACES)
    try:
        finished = await run_program((*trial, "--", "true"), cwd=Path("/"), timeout_s=10)
    except ProgramMissing as error:
        return Sandbox(None, prlimit, str(error))
    if not finished.ok:
        why = finished.error_text.splitlines()[-1:] or ["it did not start"]
        return Sandbox(None, prlimit, f"bubblewrap does not work here ({why[0][:120]})")
    return Sandbox(bwrap, prlimit)


def _options(root: Path, environment: Mapping[str, str], network: bool) -> list[str]:
    options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_NAMESPACES]
    if network:
        options.append("--share-net")
    home = Path(environment.get("HOME", "/root"))
    hidden = _hidden(root, home)
    for place in hidden:
        options += ["--tmpfs", str(place)]
    system = Path("/run/current-system")
    if system.exists():
        options += ["--ro-bind", str(system), str(system)]
    for place in readable_places(root, environment, hidden):
        options += ["--ro-bind", str(place), str(place)]
    git = git_places(root)
    # A task's worktree is inside the state directory: hiding that must not hide the worktree.
    around = [place for place in git.states if root.is_relative_to(place)]
    for place in around:
        options += ["--tmpfs", str(place)]
    options += ["--bind", str(root), str(root)]
    for place, writable in git.mounts:
        options += ["--bind" if writable else "--ro-bind", str(place), str(place)]
    for place in git.states:
        if place not in around:
            options += ["--tmpfs", str(place)]
    options += ["--chdir", str(root), "--setenv", "TMPDIR", "/tmp"]  # noqa: S108 - it is private
    if home.is_dir():
        options += ["--setenv", "HOME", str(home)]
    return options


def _hidden(root: Path, home: Path) -> list[Path]:
    """List the directories to empty, outermost first; never the project or a part of it."""
    places = {Path("/tmp"), Path("/run"), Path("/root"), Path("/home"), home}  # noqa: S108 - as above
    real = {place.resolve() for place in places if place.is_dir()}
    return sorted(
        (place for place in real if not place.is_relative_to(root) and place != Path("/")),
        key=lambda place: (len(place.parts), str(place)),
    )
