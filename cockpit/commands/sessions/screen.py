"""Open the screen on a new session, a chosen session or a replay."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cockpit.collections.choose_session import choose_session
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
    read_store,
)
from cockpit.commands.terminal import is_terminal, say

# The screen shows its first frame before anything else is imported.
if TYPE_CHECKING:
    from cockpit.access.notices import Notifier
    from cockpit.app.all_projects.jump import Jump
    from cockpit.config.load_settings import Settings
    from cockpit.core.project_paths import ProjectPaths
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.store.db.database import Store


class Visit(Struct):
    """One screen of a project, from its start until the user left."""

    home: Path
    """The main checkout."""
    code: int = 0
    session_id: str = ""
    """The session that was followed last; set where the user went to another project."""
    jump: Jump | None = None
    """The project that the user goes to."""


def open_project_screen(
    session: str | None,
    flags: Mapping[str, object],
    *,
    first_message: str | None = None,
    agent: str = "",
    resumes: bool = True,
) -> Visit:
    """Show the screen of the project in the working directory, once.

    ``session`` is the id of a session to resume, ``last``, '' to show the list of them, or None for a
    new one. ``first_message`` is sent when the screen opens. With ``resumes`` False the session is followed,
    and not driven.
    """
    require_terminal()
    place = find_project()
    settings = load_project_settings(place, flags, ask=_ask_to_trust)
    settings = give_to_agent(settings, agent)
    ensure_root_token(place)
    session_id = None
    if session == "":
        first_message = "/resume"  # the list of sessions
    elif session is not None:
        session_id = read_store(
            lambda connection: choose_session(connection, session, with_agents=True)
        )
    visit = Visit(place.home)
    showing = _show(place, settings, session_id, first_message, visit, resumes=resumes)
    visit.code = asyncio.run(showing)
    return visit


def give_to_agent(settings: Settings, agent: str) -> Settings:
    """Return the settings that give new sessions to an external agent; unchanged where ``agent`` is empty.

    Raises ``AgentInvalid`` for one that is not known.
    """
    if not agent:
        return settings
    from cockpit.agents.registry.known_agents import load_agents

    name = load_agents(settings.runtime.user_dir).find(agent).name
    return replace(settings, runtime=replace(settings.runtime, agent=name))


def _ask_to_trust(title: str, text: str) -> bool:
    from cockpit.app.ask_before_start import ask_on_screen

    return ask_on_screen(title, text, agree="trust exactly this", refuse="go on without")


def require_terminal() -> None:
    """Raise :class:`WrongUse` where there is no terminal, or none that can be redrawn, for a screen."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise WrongUse(
            "The screen needs a terminal for input and output. Without one, use `cockpit run TASK`,"
            " `cockpit review TARGET` or `cockpit proposals`."
        )
    if os.environ.get("TERM") == "dumb":  # as in editors, where a screen would be a heap of signs
        raise WrongUse(
            "TERM is dumb: such a terminal cannot be redrawn. `cockpit --linear` works line by line. Where it"
            " is another terminal, set TERM to its name, such as xterm-256color."
        )


async def _show(
    place: ProjectPaths,
    settings: Settings,
    session_id: str | None,
    first_message: str | None,
    visit: Visit,
    *,
    resumes: bool,
) -> int:
    def note_jump(jump: Jump, followed: str) -> None:
        visit.jump, visit.session_id = jump, followed

    from cockpit.app.run_app import run_app
    from cockpit.config.change_setting import remember_theme

    sdk = _Sdk()
    async with AsyncExitStack() as stack:

        async def load_rest(runtime: Runtime) -> None:
            from cockpit.agents.terminals.serve_hook_questions import answer_hooks

            await stack.enter_async_context(answer_hooks(runtime.engine))
            await runtime.warm_completions()
            sdk.name = await _find_model(runtime, session_id)
            if session_id is not None or (first_message or "/")[0] != "/":
                sdk.load()

        return await run_app(
            open_engine=partial(_open_runtime, place, settings, stack),
            project=place.home.name,
            session_id=session_id,
            resumes=resumes,
            first_message=first_message,
            theme=settings.theme,
            keys=settings.keys,
            rings_bell=settings.bell,
            after_first_frame=load_rest,
            on_theme=remember_theme,
            on_draft=sdk.load,
            on_end=_print_resume_command,
            on_jump=note_jump,
            notifier=make_notifier(settings),
        )


def make_notifier(settings: Settings) -> Notifier | None:
    """Return what announces requests outside the terminal; None where the user's settings name nothing."""
    channels = settings.notify
    if not (channels.desktop or channels.webhook or channels.ntfy):
        return None
    from cockpit.access.notices import Notifier

    return Notifier(channels)


async def _open_runtime(
    place: ProjectPaths,
    settings: Settings,
    stack: AsyncExitStack,
    show_warning: Callable[[str], object],
) -> Runtime:
    """Open the store and the loop, which ``stack`` closes."""
    # In a thread: a store of an older version may take seconds, and the user may leave meanwhile.
    opening = asyncio.create_task(
        asyncio.to_thread(stack.enter_context, open_store(place, say=show_warning))
    )
    stack.push_async_callback(asyncio.wait, (opening,))
    store = await asyncio.shield(opening)
    runtime_over = await asyncio.to_thread(_import_loop)
    return await stack.enter_async_context(runtime_over(store, place, settings.runtime))


def _import_loop() -> Callable[
    [Store, ProjectPaths, RuntimeSettings], AbstractAsyncContextManager[Runtime]
]:
    """Import the loop, which loads slower than the screen."""
    from cockpit.loop.runtime import runtime_over

    return runtime_over


def _print_resume_command(session_id: str) -> None:
    if session_id:
        say(f"Resume with: cockpit -r {session_id}")


class _Sdk:
    """The SDK of the session's model. It takes 60 MiB, so that a screen that only watches has none."""

    def __init__(self) -> None:
        self.name = ""
        """The model; empty before it is known, and once its SDK is loaded."""

    def load(self) -> None:
        """Load the SDK while the user writes, so that it is there for the first call."""
        name, self.name = self.name, ""
        if name:
            from cockpit.decide.load_sdk import warm

            warm(name)


async def _find_model(runtime: Runtime, session_id: str | None) -> str:
    """Return the model of the session, or of a new one; empty where none is configured, and where an
    external agent gets the new one: it calls its model itself."""
    from cockpit.decide.model import ModelError
    from cockpit.store.sessions import sessions

    if session_id is not None:
        return (await runtime.store.read(lambda c: sessions.load(c, session_id))).model
    if runtime.engine.settings.agent:
        return ""
    try:
        return await runtime.default_model()
    except ModelError:
        return ""  # the first message will report the problem


def open_replay(session_id: str) -> int:
    """Replay a past session until the user leaves; return the exit code."""
    require_terminal()
    place = find_project()
    settings = load_project_settings(place)
    from cockpit.app.screens.replay_screen import run_replay

    with open_store(place) as store:
        return asyncio.run(run_replay(store, session_id, theme=settings.theme))
