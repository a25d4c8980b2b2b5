"""What cockpit refuses of a repository, and why: ``cockpit doctor --explain``. Only reads.

Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import list_redirects
from cockpit.access.git_overrides import REPOSITORY_SCOPES, safe_settings
from cockpit.access.run_program import read_git_settings
from cockpit.config.load_settings import load_settings
from cockpit.core.errors import CockpitError
from cockpit.core.project.project_trust import list_untrusted
from cockpit.core.project_paths import OWN_FOLDER, ProjectPaths, user_folder
from cockpit.core.skills.skill_layers import list_places, load_skills
from cockpit.core.state_folder import describe_problem
from cockpit.loop.intake.roles import load_roles
from cockpit.loop.intake.task_types import load_task_types
from cockpit.store.db.database import Store

_LONGEST_VALUE = 120
_LOADED = (
    "config.toml",
    "context.md",
    "task-types",
    "roles",
    "skills",
    "tools",
    "reviews",
    "reports",
)
_NEVER_RUN = frozenset({"core.fsmonitor", "core.hookspath", "core.pager", "core.editor"})
"""Settings of a repository that every git of cockpit overrides, whatever their value."""


class Refusal(Struct, frozen=True):
    """One thing of the repository that cockpit does not use as it is."""

    subject: str
    """What it is, as ``git setting core.fsmonitor``."""
    reason: str
    """What cockpit does instead, and why."""


async def list_refusals(place: ProjectPaths) -> list[Refusal]:
    """List everything of this repository that is refused, in the order of the folders that hold it."""
    return [
        *await _git_settings(place),
        *_git_files(place),
        *_state(place),
        *_links(place),
        *_project_files(place),
        *_skills(place),
        *_store(place),
    ]


async def _git_settings(place: ProjectPaths) -> list[Refusal]:
    if not place.git:
        return []
    try:
        settings = await read_git_settings(place.root)
    except CockpitError as error:
        return [Refusal("git settings", str(error))]
    undone = {name for name, _ in safe_settings(settings)}
    refusals = []
    for setting in settings:
        local = setting.scope in REPOSITORY_SCOPES
        alias = setting.name.startswith("alias.")
        if local and (setting.name in undone or setting.name in _NEVER_RUN or alias):
            value = setting.value[:_LONGEST_VALUE]
            fate = "is not looked at" if alias else "is switched off"
            refusals.append(
                Refusal(
                    f"git setting {setting.name}",
                    f"{value!r} of the repository ({setting.scope}) {fate}: git could run what it names",
                )
            )
    return refusals


def _git_files(place: ProjectPaths) -> Iterator[Refusal]:
    if not place.git:
        return
    hooks = place.identity / "hooks"
    names = sorted(
        path.name
        for path in (hooks.iterdir() if hooks.is_dir() else ())
        if path.suffix != ".sample" and os.access(path, os.X_OK)
    )
    if names:
        yield Refusal(
            f"git hooks {', '.join(names)[:_LONGEST_VALUE]}",
            "are not run, except those of a commit that its approval names",
        )
    for redirect in list_redirects(place.root):
        fate = (
            f"is refused, and no git is started: {redirect.refused}"
            if redirect.refused
            else "is followed, and listed here: cockpit shows what is there as this project's"
        )
        yield Refusal(f"git redirect {redirect.file}", f"to {redirect.target!r} {fate}")
    if (place.root / ".gitmodules").exists():
        yield Refusal("git submodules", "are not entered: their settings would be used there")


def _state(place: ProjectPaths) -> Iterator[Refusal]:
    if problem := describe_problem(str(place.state)):
        yield Refusal("state folder", problem)


def _links(place: ProjectPaths) -> Iterator[Refusal]:
    places = [place.folder, *(place.folder / name for name in _LOADED)]
    for folder in (place.folder / "task-types", place.folder / "roles"):
        if folder.is_dir() and not folder.is_symlink():
            places += sorted(folder.iterdir())
    for path in places:
        if path.is_symlink():
            leads = os.readlink(path)[:_LONGEST_VALUE]  # noqa: PTH115 - as it is written
            yield Refusal(f"link {path.relative_to(place.home)}", f"to {leads!r} is not followed")


def _project_files(place: ProjectPaths) -> Iterator[Refusal]:
    for file in list_untrusted(place.home):
        why = "its content changed" if file.before is not None else "you have not seen it"
        yield Refusal(
            f"file {OWN_FOLDER}/{file.name}", f"is not loaded: {why}; `cockpit trust` shows it"
        )
    try:
        load_settings(place.folder, env=os.environ)
    except CockpitError as error:
        yield Refusal("settings", str(error))
    user = user_folder(os.environ)
    for problem in (
        *load_task_types(place.home, user).problems,
        *load_roles(place.home, user).problems,
    ):
        if "you have not trusted" not in problem:
            yield Refusal("task types and roles", problem)


def _skills(place: ProjectPaths) -> Iterator[Refusal]:
    """Yield the skills that are not used; one that is not trusted is listed with the project's files."""
    home = Path(os.environ.get("HOME") or "~").expanduser()
    places = list_places(place.home, user_folder(os.environ), home)
    for problem in load_skills(places).problems:
        yield Refusal("skills", problem)


def _store(place: ProjectPaths) -> Iterator[Refusal]:
    path = Path(place.database)
    if not path.exists() or describe_problem(str(place.state)):
        return
    try:
        Store.open(path).close()
    except CockpitError as error:
        yield Refusal("store", str(error))
