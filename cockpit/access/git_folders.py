"""Where git keeps the state of a checkout, read from files as git reads them.

Each question that a file answers saves a process. Only what is certain is answered here; everything else
(other kinds of storage, links, repositories that are broken) is git's to answer.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path

from msgspec import Struct

from cockpit.core.project.safe_git import ask_git

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HEAD = re.compile(r"ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_ALTERNATES = 64
_LARGEST_FILE = 65_536
_BRANCH = re.compile(r"refs/heads/(?!.*(?:\.\.|//|/\.|@\{))[^\x00-\x20~^:?*\[\\]+")


class GitFolders(Struct, frozen=True):
    """The folders of one checkout's state, as paths."""

    own: str
    """The state of this checkout alone: its HEAD and index."""
    common: str
    """The state that all checkouts share: settings, objects and branches."""


def locate_git_folders(top: Path) -> GitFolders | None:
    """Return the folders of the checkout at ``top``; None where ``top`` is not the top of one."""
    own = f"{top}/.git"
    try:
        if not os.path.isdir(own):  # noqa: PTH112 - asked for each call of git
            kind, _, folder = _read(own).partition(": ")
            if kind != "gitdir":
                return None
            own = os.path.join(top, folder)  # noqa: PTH118 - as above
    except (OSError, ValueError):
        return None
    return read_git_folders(own)


def read_git_folders(own: str) -> GitFolders | None:
    """Return the folders of the checkout whose own state is in ``own``; None where there is none."""
    try:
        try:
            common = os.path.join(own, _read(f"{own}/commondir"))  # noqa: PTH118 - as above
        except FileNotFoundError:
            common = own
        # What git wants to see in a folder before it takes it for a repository.
        is_repository = (
            _HEAD.fullmatch(_read(f"{own}/HEAD")) is not None
            and os.access(f"{common}/objects", os.X_OK)
            and os.access(f"{common}/refs", os.X_OK)
        )
    except (OSError, ValueError):
        return None
    return GitFolders(own, common) if is_repository else None


class Redirect(Struct, frozen=True):
    """A file by which a repository reads what lies outside of it."""

    file: str
    """``objects/info/alternates``, ``commondir``, ``.git`` and the like."""
    target: str
    """Where it leads, as git reads it."""
    refused: str = ""
    """Why cockpit starts no git there; '' for one that is only listed."""


def list_redirects(top: Path) -> list[Redirect]:
    """List where the repository of the checkout at ``top`` reads outside of it.

    A linked worktree and a submodule lead to git directories that lead back: those are none.
    """
    return _list_redirects(top, locate_git_folders(top))


def _list_redirects(top: Path, folders: GitFolders | None) -> list[Redirect]:
    dot = f"{top}/.git"
    redirects = []
    if os.path.islink(dot):  # noqa: PTH114 - as above
        redirects.append(Redirect(".git", os.path.realpath(dot)))
    if folders is None:
        return redirects
    own, common = folders.own, folders.common
    has_own_folder = os.path.isdir(dot)  # noqa: PTH112
    if not has_own_folder and not leads_back(own, dot):
        own = os.path.realpath(own)
        if not _is_submodule(own, top):
            redirects.append(Redirect(".git", own, _owner_problem(own)))
    if not _is_same_folder(common, own):
        why = _owner_problem(common)
        if has_own_folder:
            # Only the directory of a linked worktree shares another's, and that one lies apart.
            why = "a repository of its own shares no other's settings and objects"
        if why:
            redirects.append(Redirect("commondir", os.path.realpath(common), why))
    for name in ("objects", "refs"):
        place = f"{common}/{name}"
        if os.path.islink(place):  # noqa: PTH114
            redirects.append(Redirect(name, os.path.realpath(place)))
    redirects += [
        Redirect("objects/info/alternates", target, _owner_problem(target))
        for target in list_alternates(common)
    ]
    return redirects


def find_refused_redirect(cwd: Path, folders: GitFolders | None) -> Redirect | None:
    """Return the first redirect for which no git is started in ``cwd``.

    ``folders`` are those of the checkout at ``cwd``; None where it is not the top of one.
    """
    for top in chain((cwd,), cwd.parents):
        if os.path.lexists(f"{top}/.git"):
            listed = _list_redirects(top, folders if top is cwd else locate_git_folders(top))
            return next((each for each in listed if each.refused), None)
    return None


def list_alternates(common: str) -> list[str]:
    """Return the folders of objects that a repository borrows, directly or through others."""
    listed: list[str] = []
    waiting = [f"{common}/objects"]
    while waiting and len(listed) < _MOST_ALTERNATES:
        objects = waiting.pop(0)
        try:
            lines = os.fsdecode(_load(f"{objects}/info/alternates")).splitlines()
        except OSError:
            continue
        for line in lines:
            if line and not line.startswith("#"):
                target = os.path.realpath(os.path.join(objects, line.strip('"')))  # noqa: PTH118
                if target not in listed:
                    listed.append(target)
                    waiting.append(target)
    return listed


def leads_back(own: str, dot: str) -> bool:
    """Whether the state in ``own`` is that of the linked worktree whose ``.git`` is ``dot``."""
    try:
        back = os.path.join(own, _read(f"{own}/gitdir"))  # noqa: PTH118
        return back == dot or os.path.realpath(back) == os.path.realpath(dot)
    except (OSError, UnicodeError):
        return False


def _is_submodule(own: str, top: Path) -> bool:
    """Whether a git directory is one of the modules of a repository that ``top`` is in."""
    for parent in top.parents:
        folders = locate_git_folders(parent)
        if folders is not None:
            places = {os.path.realpath(folders.own), os.path.realpath(folders.common)}
            return own.startswith(tuple(f"{place}/modules/" for place in places))
    return False


def _is_same_folder(first: str, second: str) -> bool:
    try:
        return first == second or os.path.samefile(first, second)  # noqa: PTH121
    except OSError:
        return False


def _owner_problem(folder: str) -> str:
    """Say why what is in a folder may be somebody else's; '' for one of this user or the administrator."""
    try:
        info = os.stat(folder)  # noqa: PTH116
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if info.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "others can write to it" if info.st_mode & 0o002 else ""


def _read(file: str) -> str:
    return _load(file).decode("utf-8").rstrip("\n")


def _load(file: str) -> bytes:
    """Read a small file in less time than ``open`` takes: some hundred of them for each task.

    A pipe in its place is not waited for.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, _LARGEST_FILE)
    finally:
        os.close(descriptor)


def read_head(folders: GitFolders) -> str | None:
    """Return the branch (``refs/heads/…``) or commit that HEAD names; None leaves the question to git."""
    head = f"{folders.own}/HEAD"
    try:
        text = "" if os.path.islink(head) else _read(head)  # noqa: PTH114 - as above
    except (OSError, UnicodeError):
        return None
    name = text.removeprefix("ref: ")
    pattern = _COMMIT if name == text else _BRANCH
    return name if pattern.fullmatch(name) else None


def find_commit(top: Path, name: str) -> str:
    """Return the id of the commit that ``name`` names in the checkout at ``top``; '' without one.

    Git is not asked where :func:`find_refused_redirect` says so. Blocks.
    """
    if find_refused_redirect(top, locate_git_folders(top)):
        return ""
    printed = ask_git(top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return (printed or b"").decode("ascii", "replace").strip()


def list_checkouts(folders: GitFolders) -> list[GitFolders]:
    """Return the folders of every checkout of the repository, the main one first. Raises ``OSError``."""
    worktrees = f"{folders.common}/worktrees"
    try:
        others = [f"{worktrees}/{name}" for name in os.listdir(worktrees)]  # noqa: PTH208 - as above
    except FileNotFoundError:
        others = []
    return [GitFolders(own, folders.common) for own in (folders.common, *others)]


def name_checkout(folders: GitFolders) -> Path | None:
    """Return the top of a linked worktree by the folders of its state; None for the main checkout."""
    try:
        return Path(folders.own, _read(f"{folders.own}/gitdir")).parent
    except (OSError, UnicodeError):
        return None


def is_bare(root: Path) -> bool:
    """Return whether ``root`` is a git directory itself: a bare repository, or the inside of ``.git``."""
    return read_git_folders(str(root)) is not None


def describe_missing_checkout(root: Path, need: str, advice: str) -> str:
    """Say in sentences why ``root`` is not a checkout, and what to do.

    ``need`` is a clause on what needs one (*tasks need branches*); ``advice`` a sentence for a folder without
    any repository.
    """
    if is_bare(root):
        return (
            f"{root} is a bare repository, which has no checked out files, and {need}. Run `git clone {root}`"
            " and start cockpit in the clone."
        )
    return f"{root} is not a git repository, and {need}. {advice}"
