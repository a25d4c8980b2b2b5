"""The project a command runs in: its place, its settings and its store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.project_paths import ProjectPaths, locate_project

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.store.db.database import Store

T = TypeVar("T")


class WrongUse(CockpitError):
    """The command line asks for something that cannot be."""

    code = "usage"


def find_project() -> ProjectPaths:
    """The project that the working directory is in. Raises :class:`WrongUse` where there is none."""
    try:
        return locate_project(Path.cwd())
    except FileNotFoundError as error:
        raise WrongUse("The working directory is gone; change to one that exists.") from error


def require_repository() -> ProjectPaths:
    """As :func:`find_project`, for what needs git. Raises :class:`WrongUse` without a repository."""
    place = find_project()
    if not place.git:
        raise WrongUse(
            f"{place.root} is no git repository; tasks are done on branches of one. Change to yours, or"
            " make this one with `git init` and a first commit."
        )
    return place


def load_project_settings(
    place: ProjectPaths, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of that project. Raises :class:`~cockpit.config.load_settings.ConfigInvalid`."""
    from cockpit.config.load_settings import load_settings

    return load_settings(place.folder, env=os.environ, flags=flags)


@contextmanager
def open_store(place: ProjectPaths) -> Iterator[Store]:
    """The project's store, made when it is missing. What agents' hooks have told is absorbed first, so
    that a command never reads what is older than that."""
    from cockpit.store.db.database import Store

    place.prepare()
    with Store.open(place.database) as store:
        _absorb_hooks(store, place)
        yield store


def _absorb_hooks(store: Store, place: ProjectPaths) -> None:
    from cockpit.hook import hook_log, spool
    from cockpit.store.hooks import pending_events

    if not (store.read_now(pending_events.count_waiting) or spool.files(str(place.state))):
        return
    from cockpit.hook.ingest import absorb_all

    try:
        absorb_all(store, place.state)
    except CockpitError as error:
        # It stays where it is, for the next one; what was asked for can be done all the same.
        hook_log.note(str(place.state), f"absorbing failed: {error}")


def ensure_root_token(place: ProjectPaths, *, quiet: bool = False) -> None:
    """On the first start in a project make its root token, and unless ``quiet`` say where it is."""
    from cockpit.access.capability_tokens import ROOT_FILE, ensure_root
    from cockpit.commands.terminal import say

    if (place.state / ROOT_FILE).exists():
        return
    with open_store(place) as store:
        made = store.write_now(lambda tx: ensure_root(tx, place.state))
    if made is not None and not quiet:
        say(f"The root token of this project is in {made}; only you can read it.")


def read_store(read: Callable[[sqlite3.Connection], T], *, empty: T | None = None) -> T:
    """Read from this project's store, which is not made by looking.

    Without a store ``empty`` is the answer; without that :class:`NotFound` is raised.
    """
    place = find_project()
    if not place.database.exists():
        if empty is None:
            raise NotFound(
                f"Nothing was recorded in {place.home} yet; begin with `cockpit run TASK`, or with"
                " `cockpit tasks add TITLE` and `cockpit work`."
            )
        return empty
    with open_store(place) as store:
        return store.read_now(read)


def choose_session(connection: sqlite3.Connection, named: str | None) -> str:
    """The id of the session that ``named`` is, or begins; None or ``last`` is the newest.

    That of an agent from outside is chosen by its id alone: cockpit cannot go on with it.

    Raises :class:`NotFound` where there is none, :class:`WrongUse` where several begin so.
    """
    from cockpit.store.sessions import sessions

    if named is None or named == "last":
        newest = sessions.find_latest(connection)
        if newest is None:
            raise NotFound("There is no session yet; start one with `cockpit run TASK`.")
        return newest.session_id
    found = [
        str(identity)
        for (identity,) in connection.execute(
            "SELECT session_id FROM sessions WHERE substr(session_id, 1, ?)=? LIMIT 3",
            (len(named), named),
        )
    ]
    if named in found:
        return named
    if not found:
        raise NotFound(f"There is no session {named}; `cockpit sessions list` names them.")
    if len(found) > 1:
        raise WrongUse(
            f"Several sessions begin with {named}: {', '.join(found)}. Write more of it."
        )
    return found[0]
