"""The reading sandbox: a command in it can change nothing, reach nobody, and see no secret.

It is the judge of the policy ``reads``: here a command cannot do what it said that it does not. The project
is read-only and as :mod:`cockpit.act.sandbox.project_view` shows it, ``/etc`` has what a loader needs, home
and ``/tmp`` are empty and private, and the environment is PATH, HOME and LANG. There is no network, and the
kernel refuses unix sockets, device nodes and named pipes. As administrator the command runs as another user.
See ``docs/reference/security.md``, the reading sandbox.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from cockpit.access.run_program import run_program
from cockpit.act.sandbox.bubblewrap import NO_RIGHTS, Launch, Sandbox, limit_processes
from cockpit.act.sandbox.git_places import find_git_places
from cockpit.act.sandbox.project_view import Covers, find_covers, names_only
from cockpit.act.sandbox.run_confined import ConfinedRun, Watch
from cockpit.act.sandbox.seccomp_filter import filter_program, open_filter
from cockpit.act.sandbox.visible_places import program_options, readable_places
from cockpit.core.project.own_programs import find_program
from cockpit.core.state_folder import state_root

MAX_OUTPUT = 1024 * 1024
"""A command whose output passes this many bytes is ended."""
PROCESSES = 512
_TEMPORARY = 256 * 1024**2
_NOBODY = "65534"
_NAMESPACES = ("--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1")
_AS_ROOT = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--as-pid-1"),
)
"""Without a namespace of users: in one, the administrator could only be the administrator."""
_LINKS = "/etc/alternatives"
"""Debian's links from names of programs to programs."""
_HOME = "/home/reader"
_BYTECODE = "/tmp/pycache"  # noqa: S108 - it is private
_SETTINGS = b"[safe]\n\tdirectory = *\n[core]\n\tfsmonitor = false\n\thooksPath = /dev/null\n"
"""Git's settings there: as administrator the checkout is another user's."""
_TRIAL_S = 60.0
_BARE = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"

_REFUSED = re.compile(
    rb"[^\n]*(?:read-only file system|EROFS|Errno 30\b|permission denied|EACCES|operation not permitted"
    rb"|EPERM|network is unreachable|ENETUNREACH|could not resolve|couldn't resolve|name resolution"
    rb"|name or service not known|nodename nor servname|EAI_AGAIN|ENOTFOUND|getaddrinfo|no such host"
    rb"|connection refused|ECONNREFUSED|(?:failed to|couldn't|cannot|could not) connect"
    rb"|address family not supported|EAFNOSUPPORT"
    rb"|not a git repository)[^\n]*",
    re.IGNORECASE,
)
"""What programs say of a write, a connection or a place that was refused them."""


async def why_no_reading(sandbox: Sandbox, root: Path | None = None) -> str:
    """Say why there is no reading sandbox on this machine, or for the project at ``root``; '' where there is.

    It is tried once; as administrator the project must be readable for others.
    """
    if sandbox.bwrap is None:
        return sandbox.missing
    if not sandbox.filters or filter_program() is None:
        return "the kernel takes no filter of system calls"
    if os.geteuid() == 0:
        if "--perms" not in sandbox.options or find_program("setpriv") is None:
            return "cockpit runs as administrator, without setpriv (util-linux) or with an old bubblewrap"
        if root is not None and os.stat(root).st_mode & 0o005 != 0o005:  # noqa: PTH116
            return "cockpit runs as administrator, and the project is closed to other users"
    if sandbox.bwrap not in _tried:
        _tried[sandbox.bwrap] = await _try(sandbox)
    return _tried[sandbox.bwrap]


_tried: dict[str, str] = {}


async def _try(sandbox: Sandbox) -> str:
    with launch_reading(sandbox, ("true",), Path("/usr"), {"PATH": _BARE}, Covers()) as trial:
        ended = await run_program(
            trial.argv, cwd=Path("/"), timeout_s=_TRIAL_S, env={"PATH": _BARE}, files=trial.files
        )
    why = next(iter(ended.error_text.splitlines()[-1:]), "it did not start")
    return "" if ended.ok else f"the reading sandbox does not work here ({why[:120]})"


async def run_reading(
    sandbox: Sandbox,
    argv: Sequence[str],
    root: Path,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    on_output: Callable[[bytes], object] | None = None,
) -> ConfinedRun:
    """Run ``argv`` in the reading sandbox. Raises ``TooLarge``, and what ``run_program`` raises."""
    covers = await asyncio.to_thread(find_covers, root, git=names_only(argv))
    most = sandbox.choices.limits
    limits = replace(
        most,
        processes=min(most.processes, PROCESSES),
        temporary_bytes=min(most.temporary_bytes, _TEMPORARY),
    )
    bounded = replace(sandbox, choices=replace(sandbox.choices, limits=limits))
    watched = Watch(limits, root)
    with launch_reading(bounded, argv, root, environment, covers) as launch:
        try:
            finished = await run_program(
                launch.argv,
                cwd=root,
                timeout_s=timeout_s,
                max_bytes=MAX_OUTPUT,
                env={"PATH": _BARE},
                files=launch.files,
                on_start=watched.begin,
                on_output=on_output,
            )
        finally:
            await watched.end()
    return ConfinedRun(finished, watched.reason)


def find_refusal(ended: ConfinedRun) -> str:
    """Return the line that says what the reading sandbox refused to a command that failed; '' without one."""
    finished = ended.finished
    if finished.ok or ended.passed or finished.timed_out or finished.truncated:
        return ""
    for output in (finished.stderr, finished.stdout):
        if match := _REFUSED.search(output):
            return match[0].decode("utf-8", "replace").strip()[:200]
    return ""


@contextmanager
def launch_reading(
    sandbox: Sandbox,
    argv: Sequence[str],
    root: Path,
    environment: Mapping[str, str],
    covers: Covers,
) -> Iterator[Launch]:
    """Yield ``argv`` with the reading sandbox in front of it; the files are closed afterwards.

    Call it only where :func:`why_no_reading` says nothing.
    """
    files: list[int] = []
    try:
        options = _options(sandbox, root, environment, covers, files)
        words = limit_processes(argv, sandbox.choices.limits.processes)
        if os.geteuid() == 0:
            words = (str(find_program("setpriv")), *_drop_words(), *words)
        yield Launch(sandbox.limited((str(sandbox.bwrap), *options, "--", *words)), tuple(files))
    finally:
        for each in files:
            os.close(each)


def _drop_words() -> tuple[str, ...]:
    names = ("--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups", "--bounding-set=-all")
    return (*names, "--inh-caps=-all", "--no-new-privs", "--")


def _options(
    sandbox: Sandbox,
    root: Path,
    environment: Mapping[str, str],
    covers: Covers,
    files: list[int],
) -> list[str]:
    is_root = os.geteuid() == 0
    seen = [Path(_LINKS)] if os.path.isdir(_LINKS) else []  # noqa: PTH112
    toolchains = [*readable_places(root, environment), root]
    options = [*_open_folders(sandbox, seen), *program_options(settings=False)]
    for links in seen:
        options += ["--ro-bind", str(links), str(links)]
    options += _AS_ROOT if is_root else _NAMESPACES
    options += NO_RIGHTS
    if is_root:
        # For setpriv alone, which gives them up with the rest.
        for right in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            options += ["--cap-add", right]
    elif "--disable-userns" in sandbox.options:
        options += ["--unshare-user", "--disable-userns"]
    options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    size = ["--size", str(sandbox.choices.limits.temporary_bytes)]
    options += _open_folders(sandbox, [Path(_HOME)])
    for empty in ("/tmp", _HOME, "/dev/shm"):  # noqa: S108 - they are private
        options += ["--perms", "1777"] if "--perms" in sandbox.options else []
        options += [*(size if "--size" in sandbox.options else []), "--tmpfs", empty]
    options += ["--remount-ro", "/dev"]
    options += _open_folders(sandbox, toolchains)
    for place in toolchains:
        options += ["--ro-bind", str(place), str(place)]
    options += _git_options(sandbox, root, covers, files)
    options += _covering_options(root, covers)
    files.append(_in_memory("settings", _SETTINGS))
    options += [*_readable(sandbox), "--ro-bind-data", str(files[-1]), f"{_HOME}/.gitconfig"]
    files.append(open_filter(filter_program(reading=True) or b""))
    options += ["--seccomp", str(files[-1]), "--chdir", str(root), "--clearenv"]
    variables = {
        "PATH": environment.get("PATH", _BARE),
        "HOME": _HOME,
        "LANG": environment.get("LANG", "C.UTF-8"),
        # What is shown is what runs: bytecode next to a file need not be of that file.
        "PYTHONPYCACHEPREFIX": _BYTECODE,
    }
    for name, value in variables.items():
        options += ["--setenv", name, value]
    return [*options, "--remount-ro", "/"]


def _open_folders(sandbox: Sandbox, places: Sequence[Path]) -> list[str]:
    """Return the folders above ``places``, open to the user that the administrator becomes."""
    if os.geteuid() != 0 or "--perms" not in sandbox.options:
        return []
    above = dict.fromkeys(str(each) for place in places for each in reversed(place.parents[:-1]))
    return [word for folder in above for word in ("--perms", "0755", "--dir", folder)]


def _readable(sandbox: Sandbox) -> tuple[str, ...]:
    return ("--perms", "0444") if "--perms" in sandbox.options else ()


def _git_options(sandbox: Sandbox, root: Path, covers: Covers, files: list[int]) -> list[str]:
    """Return the mounts of the repository where it is not covered: its settings without what is private."""
    dot = str(root / ".git")
    places = None if dot in (*covers.files, *covers.folders) else find_git_places(root)
    options: list[str] = []
    for place in places.directories if places is not None else ():
        if not place.is_relative_to(root):
            options += ["--ro-bind", str(place), str(place)]
    for setting, text in places.settings if places is not None else ():
        files.append(_in_memory("settings", text))
        options += [*_readable(sandbox), "--ro-bind-data", str(files[-1]), str(setting)]
    return options


def _covering_options(root: Path, covers: Covers) -> list[str]:
    options: list[str] = []
    for folder in covers.folders:
        options += ["--tmpfs", folder, "--remount-ro", folder]
    for file in covers.files:
        options += ["--ro-bind", os.devnull, file]
    state = Path(state_root())
    if state.is_relative_to(root) and state.is_dir():
        options += ["--tmpfs", str(state), "--remount-ro", str(state)]
    return options


def _in_memory(name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
