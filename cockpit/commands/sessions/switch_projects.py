"""``cockpit --all``, and the way from project to project and back: one screen after another.

Each project's screen is opened in its own folder, as if the user had started cockpit there; leaving it goes
back to where they came from. Specified in ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.commands.open_project import WrongUse
from cockpit.commands.sessions.screen import (
    Visit,
    make_notifier,
    open_project_screen,
    require_terminal,
)
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.all_projects.jump import Jump

INTERRUPTED = 130


class _Stop(Struct):
    """A screen on the way: that of a project, or the one over all projects."""

    home: Path | None
    """The main checkout; None for all projects."""
    session_id: str = ""
    resumes: bool = False


def open_screen(
    session: str | None,
    flags: Mapping[str, object],
    *,
    first_message: str | None = None,
    agent: str = "",
) -> int:
    """Show the screen of this project until the user leaves; return the exit code.

    ``session`` is the id of a session to resume, ``last``, '' to ask the user which one, or None for a
    new one. ``first_message`` is sent when the screen opens.
    """
    visit = open_project_screen(session, flags, first_message=first_message, agent=agent)
    return visit.code if visit.jump is None else travel_from(visit)


def open_all_projects() -> int:
    """Show all projects until the user leaves; return the exit code."""
    from cockpit.commands.caller_rights import require_user_of_all

    require_user_of_all()
    require_terminal()
    return _travel([_Stop(None)])


def travel_from(visit: Visit) -> int:
    """Go on from a project's screen to the project that its user chose; return the exit code."""
    if visit.jump is None:
        return visit.code
    stops = [_Stop(visit.home, visit.session_id, visit.jump.drove)]
    _go(stops, visit.jump)
    return _travel(stops)


def _travel(stops: list[_Stop]) -> int:
    """Show the last of ``stops`` until none is left."""
    problem = ""
    while True:
        stop = stops[-1]
        try:
            if stop.home is None:
                code, jump = _show_all(problem)
            else:
                code, jump = _show_project(stop)
            problem = ""
        except (CockpitError, OSError) as error:
            if len(stops) == 1:
                raise
            code, jump, problem = 0, None, str(error)
            from cockpit.commands.terminal import say

            say(f"cockpit: {problem}")
        if jump is not None:
            _go(stops, jump)
            continue
        stops.pop()
        if not stops or code == INTERRUPTED:
            return code


def _go(stops: list[_Stop], jump: Jump) -> None:
    """Add a project to the way; one that is on it already is gone back to."""
    place = next((n for n, stop in enumerate(stops) if stop.home == jump.home), None)
    if place is None:
        stops.append(_Stop(jump.home, jump.session_id, jump.resumes))
        return
    del stops[place + 1 :]
    if jump.session_id:
        stops[place] = _Stop(jump.home, jump.session_id, jump.resumes)


def _show_project(stop: _Stop) -> tuple[int, Jump | None]:
    if stop.home is None:
        raise RuntimeError("all projects are not one project")
    try:
        os.chdir(stop.home)
    except OSError as error:
        raise WrongUse(f"{stop.home} cannot be opened: {error.strerror}.") from error
    visit = open_project_screen(stop.session_id or None, {}, resumes=stop.resumes)
    if visit.jump is not None:
        stop.session_id, stop.resumes = visit.session_id, visit.jump.drove
    return visit.code, visit.jump


def _show_all(problem: str) -> tuple[int, Jump | None]:
    from cockpit.config.load_settings import load_settings

    settings = load_settings(None, env=dict(os.environ))
    from cockpit.app.all_projects.projects_app import run_all_projects

    return asyncio.run(
        run_all_projects(
            theme=settings.theme,
            rings_bell=settings.bell,
            notifier=make_notifier(settings),
            problem=problem,
        )
    )
