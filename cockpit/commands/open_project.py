"""The project that a command runs in: its folder, its settings and its store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cockpit.access.git_folders import describe_missing_checkout
from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.act.sandbox.checkout_reader import CheckoutReader
from cockpit.commands.caller_rights import require_scope_of_command
from cockpit.core.errors import CockpitError, NotFound, StoreReadOnly
from cockpit.core.project_paths import ROOT_TOKEN, ProjectPaths, locate_project

if TYPE_CHECKING:
    import sqlite3

    from cockpit.config.load_settings import Settings
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.store.db.database import Store

T = TypeVar("T")


class WrongUse(CockpitError):
    """The command line asks for something that is not possible."""

    code = "usage"


def find_project(start: Path | None = None) -> ProjectPaths:
    """Return the project that contains ``start``, by default the working directory.

    Raises :class:`WrongUse` where the directory is gone.
    """
    use_reading_sandbox(CheckoutReader())
    try:
        return locate_project(start or Path.cwd())
    except FileNotFoundError as error:
        raise WrongUse("The working directory was deleted. Change to one that exists.") from error


def require_repository() -> ProjectPaths:
    """Return the project, which must be a git repository. Raises :class:`WrongUse` where it is not."""
    place = find_project()
    if not place.git:
        raise WrongUse(
            describe_missing_checkout(
                place.root,
                "tasks need one for their branches",
                "Change to your repository, or run `git init` here and make a first commit.",
            )
        )
    return place


def load_project_settings(
    place: ProjectPaths,
    flags: Mapping[str, object] | None = None,
    *,
    ask: Callable[[str, str], bool] | None = None,
) -> Settings:
    """Load the settings of the project; ``flags`` maps full names of settings to values.

    The user is asked first about files of the project that they have not trusted: with ``ask``, by default on
    the terminal. Raises :class:`~cockpit.config.load_settings.ConfigInvalid`.
    """
    from cockpit.config.load_settings import load_settings

    if os.path.isdir(place.folder):  # noqa: PTH112 - most projects have nothing to load
        from cockpit.commands.ask_trust import settle_trust

        settle_trust(place, ask)
    env = dict(os.environ)
    if env.get("COCKPIT_APPROVE"):
        from cockpit.access.user_presence import find_agent

        if find_agent(counts_cockpit=False):
            del env["COCKPIT_APPROVE"]  # an agent gives itself no policy
    return load_settings(place.folder, env=env, flags=flags)


@asynccontextmanager
async def open_project_runtime(
    place: ProjectPaths, settings: RuntimeSettings
) -> AsyncIterator[Runtime]:
    """Open the project's store as :func:`open_store` does, and a runtime on it."""
    from cockpit.loop.runtime import runtime_over

    with open_store(place) as store:
        async with runtime_over(store, place, settings) as runtime:
            yield runtime


@contextmanager
def open_store(
    place: ProjectPaths, *, say: Callable[[str], object] | None = None
) -> Iterator[Store]:
    """Open the project's store and create it if it is missing.

    Events that agents' hooks have left are absorbed first, so a command never reads older data. The token
    in ``COCKPIT_TOKEN`` must allow the command that runs: raises ``NotAllowed`` and ``TokenRefused``. ``say``
    shows messages about it, by default on stderr.
    """
    from cockpit.commands import terminal
    from cockpit.store.db.database import Store

    say = say or terminal.say
    place.prepare()
    _finish_restore(place, say)
    with Store.open(place.database) as store:
        if store.anchor.fault:
            say(f"Warning: {store.anchor.fault}")
        require_scope_of_command(store)
        _absorb_hooks(store, place)
        _end_unattended(store, say)
        yield store


def _finish_restore(place: ProjectPaths, say: Callable[[str], object]) -> None:
    """Finish or undo a `cockpit backup --restore` that was killed."""
    if not os.path.isdir(place.state / "restore"):  # noqa: PTH112 - most projects have none
        return
    from cockpit.store.backup.restore_state import finish_restore

    if finish_restore(place):
        say("An interrupted `cockpit backup --restore` was finished.")


def _end_unattended(store: Store, say: Callable[[str], object]) -> None:
    """Expire proposals and end dead chains, but for commands that take such a chain up."""
    import click

    context = click.get_current_context(silent=True)
    words = [] if context is None else context.command_path.split()[1:]
    if words[:1] == ["work"] or words[:2] == ["chain", "stop"]:
        return
    from cockpit.chains.watch_unattended import describe_end, end_unattended

    for chain in end_unattended(store):
        say(describe_end(chain))


def _absorb_hooks(store: Store, place: ProjectPaths) -> None:
    from cockpit.hook import hook_log, spool
    from cockpit.store.hooks import pending_events

    if not (store.read_now(pending_events.count_waiting) or spool.list_files(str(place.state))):
        return
    from cockpit.hook.ingest import ingest_all

    try:
        ingest_all(store, place.state)
    except CockpitError as error:
        # The events stay for the next command; this one can do its work without them.
        hook_log.append_line(str(place.state), f"absorbing failed: {error}")


def ensure_root_token(place: ProjectPaths, *, quiet: bool = False) -> None:
    """Create the project's root token on the first start; unless ``quiet``, print where it is."""
    if (place.state / ROOT_TOKEN).exists():
        return
    from cockpit.access.capability_tokens import ensure_root
    from cockpit.commands.terminal import say

    with open_store(place) as store:
        path = store.write_now(lambda tx: ensure_root(tx, place.state))
    if path is not None and not quiet:
        say(f"The root token of this project is in {path}; only you can read it.")


def read_store(read: Callable[[sqlite3.Connection], T], *, empty: T | None = None) -> T:
    """Run ``read`` on this project's store, without creating the store.

    Without a store it returns ``empty``, or raises :class:`NotFound` where that is None. One that may not be
    written is read as it is.
    """
    place = find_project()
    if empty is None:
        require_records()
    elif not place.database.exists():
        return empty
    from cockpit.commands import terminal

    try:
        with open_store(place) as store:
            return store.read_now(read)
    except StoreReadOnly as error:
        if os.environ.get("COCKPIT_TOKEN"):
            raise  # what the token allows is looked up where the store can be opened
        from cockpit.store.db.read_unwritable import read_unwritable

        stored = read_unwritable(place.database, read)
        terminal.say(f"Warning: {error} This shows what was stored; nothing can be changed.")
        return stored


def require_records() -> None:
    """Raise :class:`NotFound` where this project has no store yet."""
    place = find_project()
    if not place.database.exists():
        raise NotFound(
            f"Nothing was recorded in {place.home} yet. Start with `cockpit run TASK`, or with"
            " `cockpit tasks add TITLE` and `cockpit work`."
        )
