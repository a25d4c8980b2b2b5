"""What of the machine is seen in the sandbox: the system's programs, and toolchains by exact need.

Nothing else is there: no home directories, no other disks, no sockets of services. Interpreters and
compilers often live in a home directory; only their own folders become visible, read-only, never those
beside them with keys or mail. A link in the project is never followed to a place that the user's own
PATH or home does not already name as a toolchain: who wrote the project could have laid it.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store",
    "/nix/var/nix/profiles", "/gnu/store", "/run/current-system", "/run/opengl-driver", "/snap",
    "/var/lib/gems", "/var/lib/ghc", "/var/lib/python", "/var/cache/fontconfig",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
)  # fmt: skip
_LOADER = (
    "/etc/ld.so.cache",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    "/etc/gitconfig",
)
"""Of ``/etc``, what a program of the system needs to start, and git's settings for all users."""
_PRIVATE_PARTS = ("/etc", "/usr/local/etc")
"""Parts of these are for the administrator's eyes, who may be running cockpit."""
_PROGRAMS = (*_SYSTEM[:7], "/nix/store", "/gnu/store")
"""Folders of programs and their libraries, without settings."""
_TOOLCHAINS = (
    ".asdf", ".bun/bin", ".bun/install", ".cache/pre-commit", ".cargo/bin", ".cargo/git",
    ".cargo/registry", ".deno/bin", ".gem/ruby", ".ghcup/bin", ".ghcup/ghc", ".goenv", ".linuxbrew",
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/mise/installs", ".local/share/mise/shims",
    ".local/share/pipx", ".local/share/pnpm", ".local/share/uv/python", ".local/share/uv/tools",
    ".m2/repository", ".nodenv", ".npm-global/bin", ".npm-global/lib", ".nvm", ".opam", ".pyenv", ".rbenv",
    ".rustup", ".sdkman/candidates", ".volta", "anaconda3", "go/bin", "go/pkg", "miniconda3",
    "miniforge3", "mambaforge",
)  # fmt: skip
"""Folders of a home that hold programs and libraries, and no keys of their tools."""
_INTERPRETERS = ("python", "python3", "node", "ruby", "perl")
_MOST_PRIVATE = 400


def system_options(*, late: bool = False) -> list[str]:
    """Return bubblewrap's options for the system's own programs, read-only.

    ``late`` are those in ``/run``, which itself begins empty.
    """
    options: list[str] = []
    for name in _SYSTEM:
        if name.startswith("/run/") != late:
            continue
        if os.path.islink(name):  # noqa: PTH114 - many of these, for each command
            options += ["--symlink", os.readlink(name), name]  # noqa: PTH115
        elif os.path.isdir(name):  # noqa: PTH112
            options += ["--ro-bind", name, name]
    for place, folder in _private_places() if os.geteuid() == 0 and not late else ():
        options += ["--tmpfs", place] if folder else ["--ro-bind", os.devnull, place]
    return options


@cache
def program_options(*, settings: bool = True) -> tuple[str, ...]:
    """Return bubblewrap's options for one program of the system that starts no other, read-only.

    Without ``settings`` git's for all users are not there, which can have credentials.
    """
    options = []
    for name in _PROGRAMS:
        if os.path.islink(name):  # noqa: PTH114 - as above
            options += ["--symlink", os.readlink(name), name]  # noqa: PTH115
        elif os.path.isdir(name):  # noqa: PTH112
            options += ["--ro-bind", name, name]
    for name in _LOADER if settings else _LOADER[:-1]:
        if os.path.isfile(name) and (os.stat(name).st_mode & stat.S_IROTH):  # noqa: PTH113, PTH116
            options += ["--ro-bind", name, name]
    return (*options, "--dev-bind", os.devnull, os.devnull)


def is_system_program(program: str) -> bool:
    """Whether a program, by its real path, is among the system's."""
    return program.startswith(("/usr/", "/bin/", "/sbin/", "/nix/store/", "/gnu/store/"))


@cache
def _private_places() -> tuple[tuple[str, bool], ...]:
    """List what only the administrator may read, outermost, each with whether it is a folder.

    Without rights over others' files, the administrator's own identity would still open these.
    """
    private: list[tuple[str, bool]] = []
    for top in _PRIVATE_PARTS:
        for folder, names, files in os.walk(top):
            for name in (*names, *files):
                path = os.path.join(folder, name)  # noqa: PTH118
                try:
                    mode = os.lstat(path).st_mode
                except OSError:
                    continue
                readable = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
                if not stat.S_ISLNK(mode) and mode & readable != readable:
                    private.append((path, stat.S_ISDIR(mode)))
            names[:] = [
                name
                for name in names
                if (os.path.join(folder, name), True) not in private  # noqa: PTH118
            ]
    if len(private) > _MOST_PRIVATE:
        return tuple((top, True) for top in _PRIVATE_PARTS if os.path.isdir(top))  # noqa: PTH112
    return tuple(private)


def homes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the user's home directories: by the variable, and by the system's list of users."""
    named = [environment.get("HOME", "")]
    try:
        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        pass  # a container may have no entry for its user
    return tuple(dict.fromkeys(Path(name) for name in named if name[:1] == "/" and name != "/"))


def readable_places(
    root: Path, environment: Mapping[str, str], named: Iterable[Path] = ()
) -> list[Path]:
    """List the folders of toolchains to show, outermost first, none inside another.

    ``named`` are places that the user's own configuration adds.
    """
    own = homes(environment)
    places = {Path(f"{home}/{name}") for home in own for name in _TOOLCHAINS}
    on_path = [Path(part) for part in environment.get("PATH", "").split(":") if part[:1] == "/"]
    for directory in on_path:
        if not os.path.isdir(directory):  # noqa: PTH112 - Path raises for one that may not be entered
            continue
        if directory.is_relative_to(root) or _in_venv(directory):
            # What is installed there, its maker decided: perhaps who wrote the project.
            if not directory.is_relative_to(root) and not directory.parent.is_symlink():
                places.add(directory.parent)
            places.update(_toolchains_behind(directory, own))
            continue
        places.add(directory)
        places.update(_toolchains_around(directory))
        places.update(_prefixes(directory))
    for name in (".venv", "venv"):
        places.update(_toolchains_behind(root / name / "bin", own))
    folders = [place for place in places if os.path.isdir(place)]  # noqa: PTH112
    shown = [place for place in folders if not _is_too_much(place, root, own)]
    return _outermost([*shown, *(place for place in named if os.path.exists(place))])  # noqa: PTH110


def _in_venv(directory: Path) -> bool:
    return os.path.isfile(directory.parent / "pyvenv.cfg")  # noqa: PTH113


def _is_too_much(place: Path, root: Path, own: Iterable[Path]) -> bool:
    """Whether this is a home, holds one or the project, or leads to such a place."""
    real = place.resolve()
    return any(kept.is_relative_to(each) for each in (place, real) for kept in (root, *own)) or any(
        real.is_relative_to(top) for top in ("/proc", "/sys", "/dev")
    )


def _toolchains_around(place: Path, own: Iterable[Path] | None = None) -> Iterator[Path]:
    """List the toolchain folders that ``place`` is in, of the homes ``own`` (None: of any folder)."""
    text = f"{place}/"
    for name in _TOOLCHAINS:
        at = text.find(f"/{name}/")
        if at > 0 and (own is None or Path(text[:at]) in own):
            yield Path(text[: at + 1 + len(name)])


def _toolchains_behind(directory: Path, own: Iterable[Path]) -> Iterator[Path]:
    """List the toolchains of the user that interpreters in ``directory`` lead to, and no other place."""
    for real in _interpreters(directory):
        yield from _toolchains_around(real, own)
        prefix = real.parent.parent
        if real.is_relative_to("/opt") and any(prefix.glob("lib/python3*/os.py")):
            yield prefix  # an installation of Python, as machines for tests have


def _prefixes(directory: Path) -> Iterator[Path]:
    """List where the interpreters in a ``directory`` of the user's PATH are really installed."""
    if directory.is_relative_to("/opt") and len(directory.parts) > 2:
        yield Path(*directory.parts[:3])
    for real in _interpreters(directory):
        if real.parent.name == "bin" and os.path.isdir(  # noqa: PTH112
            real.parent.parent / "lib"
        ):
            yield real.parent.parent


def _interpreters(directory: Path) -> Iterator[Path]:
    for name in _INTERPRETERS:
        program = directory / name
        real = program.resolve()
        if os.path.islink(program) and os.path.isfile(real):  # noqa: PTH113, PTH114
            yield real


def _outermost(places: Iterable[Path]) -> list[Path]:
    outermost: list[str] = []
    for place in sorted({str(place) for place in places}, key=lambda name: (name.count("/"), name)):
        if not place.startswith(tuple(f"{other}/" for other in (*outermost, *_SYSTEM))):
            outermost.append(place)
    return [Path(place) for place in outermost if place not in _SYSTEM]
