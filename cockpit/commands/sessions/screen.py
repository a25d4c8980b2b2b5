"""Opening the screen: on a session, on a choice of sessions, or on a replay."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING

from cockpit.commands.open_project import (
    WrongUse,
    choose_session,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.sessions.remembered_theme import remember_theme
from cockpit.commands.terminal import format_table, is_terminal, say
from cockpit.store.sessions import sessions

if TYPE_CHECKING:
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.store.db.database import Store


def open_screen(
    session: str | None, flags: Mapping[str, object], *, first_words: str | None = None
) -> int:
    """Show the cockpit of this project until the person leaves; returns the exit code.

    ``session`` is the id of one to go on with, ``last``, '' to be asked which, or None for a new one.
    """
    _needs_terminal()
    place = find_project()
    settings = load_project_settings(place, flags)
    ensure_root_token(place)
    session_id = None
    if session == "":
        session_id = _picked()
    elif session is not None:
        session_id = read_store(lambda connection: choose_session(connection, session))
    gc.disable()  # until the first frame: what a start makes stays, and is a lot to look through
    try:
        return asyncio.run(_show(place, settings, session_id, first_words))
    finally:
        gc.enable()


def _needs_terminal() -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise WrongUse(
            "The screen needs a terminal on both ends. Without one: cockpit run TASK, "
            "cockpit review TARGET, cockpit proposals list."
        )


async def _show(
    place: ProjectPaths, settings: Settings, session_id: str | None, first_words: str | None
) -> int:
    from cockpit.app.application import run_app
    from cockpit.app.deferred_engine import LateEngine

    with open_store(place) as store:
        late = LateEngine(store, place)
        async with AsyncExitStack() as stack:

            async def opened() -> Runtime:
                runtime_over = await asyncio.to_thread(_loop)
                return await stack.enter_async_context(runtime_over(store, place, settings.runtime))

            async def behind() -> None:
                await _warm(await late.open(opened()), session_id)

            return await run_app(
                late.engine,
                session_id=session_id,
                first_words=first_words,
                theme=settings.theme,
                keys=settings.keys,
                after_first_frame=behind,
                on_theme=remember_theme,
                on_end=_goodbye,
            )


def _loop() -> Callable[
    [Store, ProjectPaths, RuntimeSettings], AbstractAsyncContextManager[Runtime]
]:
    """The loop, which takes longer to load than the screen, and what the first answer is drawn with."""
    import widgets.conversation.markdown  # noqa: F401
    from cockpit.loop.runtime import runtime_over

    return runtime_over


def _goodbye(session_id: str) -> None:
    if session_id:
        say(f"Come back with: cockpit -r {session_id}")


async def _warm(runtime: Runtime, session_id: str | None) -> None:
    """Load the model's SDK beside the screen."""
    from cockpit.decide.load_sdk import warm
    from cockpit.decide.model import ModelError

    try:
        name = await runtime.default_model()
    except ModelError:
        name = ""  # the first words will say what is wrong with it
    if session_id is not None:
        name = (await runtime.store.read(lambda c: sessions.load(c, session_id))).model
    warm(name)


def _picked() -> str | None:
    """The session that the person chooses from a numbered list; None: a new one."""
    found: list[sessions.Session] = read_store(
        lambda connection: sessions.select_recent(connection, 20), empty=[]
    )
    if not found:
        say("There is no session here yet; a new one begins.")
        return None
    rows = [
        (str(number), one.status, one.updated_at[:16].replace("T", " "), one.title)
        for number, one in enumerate(found, start=1)
    ]
    say(format_table(("", "STATUS", "CHANGED", "TITLE"), rows))
    import click

    number: int = click.prompt("Which", type=click.IntRange(1, len(found)), default=1, err=True)
    return found[number - 1].session_id


def open_replay(session_id: str) -> int:
    """Show a past session with a scrubber until the person leaves; returns the exit code."""
    _needs_terminal()
    place = find_project()
    settings = load_project_settings(place)
    from cockpit.app.screens.replay_screen import run_replay

    with open_store(place) as store:
        return asyncio.run(run_replay(store, session_id, theme=settings.theme))
