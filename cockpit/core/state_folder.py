"""The user's state folder: where cockpit keeps the store, tokens, logs and worktrees of every project.

It is never inside a checkout, so nothing in it can come with a repository. Each project has one folder,
``projects/NAME-DIGEST``; the digest is that of its identity, which is the real path of the common git
directory, or of the folder where there is no git. Every folder is the user's own and closed to others.

Hook calls import this module while an agent waits, so it imports nothing slow. Specified in
``docs/reference/configuration.md``.
"""

from __future__ import annotations

import os
import stat
import sys

PROJECTS = "projects"
"""The folder of the projects' folders."""
DATABASE = "cockpit.db"
VARIABLE = "COCKPIT_STATE_DIR"
STATE_VARIABLES = (VARIABLE, "XDG_STATE_HOME", "HOME")
"""Where the state folder is depends on these."""
PLACE_VARIABLES = (VARIABLE, "COCKPIT_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
"""Where the state folder and the user's configuration are, beside ``HOME``: a program of cockpit's that an
agent starts needs them, and an agent need not pass its own variables on."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST_NAME = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def home_folder() -> str:
    """Return the user's home: ``HOME`` where it is an absolute path, else what the system says, else ``/``.

    Never a relative path: in the working directory it would be a folder of the repository, whose files
    would be the user's configuration and state.
    """
    named = os.environ.get("HOME", "")
    if not os.path.isabs(named):
        import pwd

        try:
            named = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            named = ""  # a user without an entry, as in containers
    return named if os.path.isabs(named) else "/"


def settle_home() -> None:
    """Give this process and the programs that it starts a ``HOME``, where there is none that can be used."""
    if sys.platform != "win32" and not os.path.isabs(os.environ.get("HOME", "")):
        os.environ["HOME"] = home_folder()


def state_root() -> str:
    """Return the real path of the user's state folder, which need not exist.

    ``COCKPIT_STATE_DIR`` names another one; a relative path counts from the home directory.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        # Never from the working directory: that would be a folder of the repository.
        return os.path.realpath(os.path.join(home_folder(), os.path.expanduser(named)))
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_state_dir

        return os.path.realpath(user_state_dir("cockpit", appauthor=False))
    # As platformdirs does, whose import takes as long as a hook call.
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home_folder(), ".local", "state")
    return os.path.realpath(os.path.join(base, "cockpit"))


def config_root() -> str:
    """Return the path of the folder of the user's own configuration, which need not exist.

    ``COCKPIT_CONFIG_DIR`` is the caller's to read.
    """
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_config_dir

        return user_config_dir("cockpit", appauthor=False)
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # from the working directory it would be the repository's
        base = os.path.join(home_folder(), ".config")
    return os.path.join(base, "cockpit")


def project_folder(identity: str) -> str:
    """Return the folder of the project with this identity; it need not exist."""
    return os.path.join(state_root(), PROJECTS, _folder_name(identity))


_PROJECT_FILES = frozenset(
    ("config.toml", "context.md", "task-types", "roles", "skills", "tools", "guards", "reviews")
)
"""What makes a folder ``.cockpit`` one of a project."""


def names_state(text: str) -> bool:
    """Whether ``text``, an argument or a path, names cockpit's state."""
    return ".cockpit/state" in text or state_root() in text


def describe_problem(folder: str) -> str:
    """Return why the state folder ``folder`` of a project must not be used; '' if nothing is wrong.

    Each folder below the user's state folder must be a directory, not a link, belong to this user, and be
    closed to writers other than them. Folders that do not exist are not a problem.
    """
    projects = os.path.dirname(folder)
    for path in (os.path.dirname(projects), projects, folder):
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{path} cannot be looked at: {error.strerror}. Check the folders above it."
        if stat.S_ISLNK(info.st_mode):
            return (
                f"{path} is a link to {os.path.realpath(path)}; cockpit follows no link to its state."
                " Move it away and start again."
            )
        if not stat.S_ISDIR(info.st_mode):
            return f"{path} is not a folder and blocks the path of cockpit's state. Move it away."
        if info.st_uid != os.geteuid():
            return (
                f"{path} belongs to another user (id {info.st_uid}); cockpit keeps its state in folders"
                f" of your own. Set {VARIABLE} to a folder of yours."
            )
        if info.st_mode & _OTHERS_WRITE:
            return (
                f"Other users can write to {path} (mode {stat.S_IMODE(info.st_mode):04o}), so its content"
                " may not be cockpit's. Look at what is in it, then `chmod 700` it."
            )
    return ""


def is_plain_project(folder: str, start: str) -> bool:
    """Whether the project of ``start`` without git begins at ``folder``, the same or one above it.

    It has state, or a ``.cockpit`` of this user's with something that cockpit reads. The home folder and
    those above it are a project only for who starts there: a ``~/.cockpit`` makes none of all that is below.
    """
    home = os.path.realpath(home_folder())
    if folder != start and f"{home}/".startswith(f"{folder.rstrip('/')}/"):
        return False
    if os.path.isdir(project_folder(folder)):
        return True
    own = os.path.join(folder, ".cockpit")
    try:
        info = os.lstat(own)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            return False
        return not _PROJECT_FILES.isdisjoint(os.listdir(own))
    except OSError:
        return False


def create_folder(folder: str) -> None:
    """Create the state folder ``folder`` of a project, and the folders above it, closed to others.

    Call :func:`describe_problem` before and after. Raises ``OSError``.
    """
    projects = os.path.dirname(folder)
    root = os.path.dirname(projects)
    os.makedirs(os.path.dirname(root), exist_ok=True)
    for path in (root, projects, folder):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) and stat.S_IMODE(mode) != 0o700:
                os.chmod(path, 0o700)


def _folder_name(identity: str) -> str:
    # The function itself: importing hashlib takes longer than the rest of this module.
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    digest = blake2b(os.fsencode(identity), digest_size=10).hexdigest()
    base = os.path.basename(identity)
    if base == ".git":
        base = os.path.basename(os.path.dirname(identity))
    name = "".join(letter if letter in _PLAIN else "-" for letter in base[:_LONGEST_NAME])
    return f"{name.strip('.-') or 'project'}-{digest}"
