"""The checks of ``cockpit doctor``. Checks only read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.access.git_folders import is_bare
from cockpit.access.run_program import Finished, ProgramMissing, run_gh, run_git
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.commands.setup.doctor_check import Check
from cockpit.commands.setup.sandbox_checks import sandbox_checks
from cockpit.commands.setup.tool_checks import server_checks
from cockpit.config.environment_variables import ENVIRONMENT
from cockpit.config.load_settings import Settings, load_settings
from cockpit.core.errors import CockpitError
from cockpit.core.project.own_programs import find_program
from cockpit.core.project_paths import ProjectPaths, list_abandoned_states, user_folder
from cockpit.core.text import pluralize
from cockpit.decide.choose_model import KEY_VARIABLES, choose_model
from cockpit.decide.model import ModelError
from cockpit.decide.provider_extras import PROVIDERS, QUEUE, TRACES, VECTOR, Extra, is_installed
from cockpit.loop.intake.baseline_facts import PROJECT_FILES
from cockpit.loop.intake.roles import load_roles
from cockpit.loop.intake.task_types import load_task_types
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, verify_chain

LEAST_COLUMNS, LEAST_LINES = 80, 24
MOST_STATES = 5
"""States of projects that are gone which are named."""
MOST_ROWS = 200_000
"""Rows of the journal that this command reads: half a second."""


async def every_check(place: ProjectPaths) -> list[Check]:
    """Run all checks, in the order in which a user would fix the problems."""
    settings, problem = _settings(place)
    return [
        await _git(place),
        _repository(place),
        problem,
        *_files(place),
        *_models(settings),
        *_extras(settings),
        *_runners(settings),
        *await server_checks(place, settings),
        *await _github(place),
        *await sandbox_checks(*_confined(settings)),
        _terminal(os.environ),
        *_store(place),
        _states(),
    ]


async def _git(place: ProjectPaths) -> Check:
    try:
        ended = await run_git("--version", cwd=place.root)
    except ProgramMissing:
        return Check("git", "broken", "not installed", "install git; cockpit reads history with it")
    if not ended.ok:
        return Check("git", "broken", f"does not run: {ended.error_text}", "fix git first")
    return Check(
        "git", "ok", f"{ended.text.strip().removeprefix('git version ')} ({ended.argv[0]})"
    )


def _repository(place: ProjectPaths) -> Check:
    if place.git:
        return Check("project", "ok", str(place.root))
    if is_bare(place.root):
        return Check(
            "project",
            "missing",
            f"{place.root} is a bare repository, which has no checked out files",
            f"run `git clone {place.root}` and start cockpit in the clone",
        )
    return Check(
        "project",
        "missing",
        f"{place.root} is not a git repository",
        "run `git init` to use reviews, commits and history",
    )


def _settings(place: ProjectPaths) -> tuple[Settings | None, Check]:
    folder = user_folder(os.environ)
    try:
        settings = load_settings(place.folder, env=os.environ)
    except CockpitError as error:
        return None, Check("settings", "broken", str(error), "correct that line")
    strange = sorted(
        name for name in os.environ if name.startswith("COCKPIT_") and name not in ENVIRONMENT
    )
    if strange:
        fix = f"cockpit reads {', '.join(sorted(ENVIRONMENT))}"
        return settings, Check("settings", "missing", f"unknown: {', '.join(strange)}", fix)
    origins = ", ".join(f"{name} from {origin}" for name, origin in settings.origins.items())
    return settings, Check("settings", "ok", origins or f"all defaults (yours go into {folder})")


def _files(place: ProjectPaths) -> list[Check]:
    user = user_folder(os.environ)
    fix = "correct that file; until then it is not used"
    problems = load_task_types(place.root, user).problems
    checks = [Check("task types", "broken", problem, fix) for problem in problems]
    problems = load_roles(place.home, user).problems
    checks += [Check("roles", "broken", problem, fix) for problem in problems]
    return [*checks, *_linked_context(place)]


def _linked_context(place: ProjectPaths) -> list[Check]:
    """Report context files of the project that are links out of it, which are not read."""
    checks = []
    for _, path in PROJECT_FILES:
        if (place.root / path).is_symlink():
            try:
                Confined(place.root).inside(path)
            except PathRefused as error:
                fix = "copy the file into the project, or link to a file in it"
                checks.append(Check(path, "broken", f"it is not read: {error}", fix))
    return checks


def _models(settings: Settings | None) -> list[Check]:
    keys = [variable for variable in KEY_VARIABLES.values() if os.environ.get(variable)]
    if keys:
        checks = [Check("keys", "ok", ", ".join(keys))]
    else:
        names = ", ".join(KEY_VARIABLES.values())
        fix = "set one of them to use that provider; reviews work without a key"
        checks = [Check("keys", "missing", f"none of {names} is set", fix)]
    if settings is None:
        return checks
    try:
        model = choose_model(None, config=settings.runtime.model, env=os.environ)
    except ModelError as error:
        return [*checks, Check("model", "broken", str(error), "correct [model] or --model")]
    if model.name == "offline":
        offline = "offline rules, which only review diffs"
        return [*checks, Check("model", "ok", offline, "set a key or [model] name for more")]
    return [*checks, Check("model", "ok", model.name)]


def _extras(settings: Settings | None) -> list[Check]:
    """Check which extras are installed, and whether one lacks that a setting needs."""
    endpoint = None if settings is None else settings.runtime.otlp_endpoint
    server = settings is not None and settings.scale.backend == "nats"
    return [
        *(_extra(each, "installed", "not installed", "use that provider") for each in PROVIDERS),
        _vector_search(),
        _extra(
            TRACES,
            "installed: " + ("traces go to your collector" if endpoint else "no collector is set"),
            "not installed: no traces are sent",
            "send traces to a collector",
            needed_by="[telemetry] otlp_endpoint" if endpoint else "",
        ),
        _extra(
            QUEUE,
            "installed: chains "
            + ("use the queue of [scale]" if server else "run on this machine"),
            "not installed: chains run on this machine",
            "spread chains over machines",
            needed_by="[scale] server" if server else "",
        ),
    ]


def _extra(extra: Extra, there: str, lacking: str, purpose: str, *, needed_by: str = "") -> Check:
    name, fix = f"extra {extra}", f"run `cockpit doctor --install {extra}` to {purpose}"
    if is_installed(extra):
        return Check(name, "ok", there)
    if needed_by:
        return Check(
            name, "broken", f"not installed, and {needed_by} is set", f"{fix}, or unset it"
        )
    return Check(name, "missing", lacking, fix)


def _vector_search() -> Check:
    """Check whether documents are searched by meaning as well as by keywords."""
    if is_installed(VECTOR):
        from cockpit.observe.knowledge.embed_text import why_unusable

        if problem := why_unusable():
            fix = f"install it again: `cockpit doctor --install {VECTOR}` names the packages"
            return Check(f"extra {VECTOR}", "broken", f"the model does not run: {problem}", fix)
    return _extra(
        VECTOR,
        "installed: knowledge is searched by meaning too",
        "not installed: knowledge is searched by keywords alone",
        "search by meaning too",
    )


def _runners(settings: Settings | None) -> list[Check]:
    """Check that the programs of the configured external agents are installed."""
    checks = []
    for runner in settings.runtime.runners.values() if settings is not None else ():
        name, program = f"runner {runner.name}", runner.command[0]
        path = find_program(program)
        if path is None:
            fix = f"install {program}, or correct [runner.{runner.name}] command"
            checks.append(Check(name, "missing", f"{program} is not installed", fix))
            continue
        lacking = [variable for variable in runner.env if not os.environ.get(variable)]
        if lacking:
            fix = f"set it, or remove it from [runner.{runner.name}] env"
            checks.append(Check(name, "missing", f"{', '.join(lacking)} is not set", fix))
            continue
        checks.append(Check(name, "ok", path))
    return checks


async def _github(place: ProjectPaths) -> list[Check]:
    try:
        version = await run_gh(["--version"], cwd=place.root)
    except ProgramMissing:
        fix = "install GitHub's gh to review pull requests; ranges work without it"
        return [Check("gh", "missing", "not installed", fix)]
    words = version.text.split()
    installed = Check(
        "gh", "ok", f"{words[2] if len(words) > 2 else 'installed'} ({version.argv[0]})"
    )
    login = await run_gh(["auth", "status"], cwd=place.root, timeout_s=20)
    if not login.ok:
        why = "`gh auth status` took too long" if login.timed_out else "not logged in"
        return [installed, Check("gh login", "missing", why, "run `gh auth login`")]
    return [installed, Check("gh login", "ok", _account(login))]


def _account(login: Finished) -> str:
    # Older gh writes this to stderr. Never the whole of it: it may show a part of the token.
    for line in (login.text + "\n" + login.error_text).splitlines():
        if "Logged in to" in line:
            return line.strip(" ✓-").partition(" (")[0]
    return "logged in"


def _confined(settings: Settings | None) -> tuple[SandboxChoices | None, list[RunnerSettings]]:
    """Return what the user says of the sandbox, and the agents that could run in it."""
    if settings is None:
        return None, []
    runners = settings.runtime.runners.values()
    return settings.runtime.sandbox, [each for each in runners if find_program(each.command[0])]


def _terminal(env: Mapping[str, str]) -> Check:
    if not sys.stdout.isatty():
        return Check("terminal", "ok", "not a terminal; `cockpit run` works without one")
    size = shutil.get_terminal_size()
    colours = "24-bit colour" if env.get("COLORTERM") in ("truecolor", "24bit") else "256 colours"
    if env.get("NO_COLOR"):
        colours = "no colour (NO_COLOR)"
    encoding = (sys.stdout.encoding or "").lower()
    detail = f"{size.columns}×{size.lines}, {colours}, {encoding}"
    if env.get("TERM", "") in ("", "dumb"):
        return Check("terminal", "broken", f"{detail}, TERM={env.get('TERM', '')}", "set TERM")
    if "utf" not in encoding:
        return Check(
            "terminal", "missing", detail, "use a UTF-8 locale; other encodings show signs as ?"
        )
    if size.columns < LEAST_COLUMNS or size.lines < LEAST_LINES:
        fix = f"make it at least {LEAST_COLUMNS}×{LEAST_LINES}"
        return Check("terminal", "missing", detail, fix)
    return Check("terminal", "ok", detail)


def _store(place: ProjectPaths) -> Sequence[Check]:
    path = place.database
    if not path.exists():
        return [Check("store", "ok", f"none yet; the first session creates {path}")]
    privacy = _privacy(path)  # before the store is opened, which restricts its mode
    size = sum(part.stat().st_size for part in path.parent.glob("cockpit.db*"))
    try:
        with Store.open(path) as store:
            verdict = store.read_now(_verify)
            pages = store.read_now(_check_pages)
            fault = store.anchor.fault
    except CockpitError as error:
        return [Check("store", "broken", str(error), "follow the message")]
    checks = [Check("store", "ok", f"{path}, {size / 1e6:.1f} MB")]
    if pages != "ok":
        fix = f"replace it with a copy from {path.parent / 'backups'}"
        checks = [Check("store", "broken", f"{path} is damaged: {pages}", fix)]
    if verdict is None:
        fix = "`cockpit debug journal` reads every row"
        checks.append(Check("journal", "ok", "long, so its rows were not verified here", fix))
    elif verdict.broken is not None:
        fix = "the file was changed by hand; export your data and start with a new store"
        checks.append(Check("journal", "broken", verdict.broken[1], fix))
    else:
        detail = f"{pluralize(verdict.rows, 'row')}, the chain is intact"
        checks.append(Check("journal", "ok", detail))
    if fault:
        fix = "if you restored a backup, accept it with `cockpit debug journal --accept`"
        checks.append(Check("anchor", "broken", fault, fix))
    return [*checks, *privacy]


def _states() -> Check:
    """Report states that no project has any more, as that of a sample project which was deleted."""
    gone = list_abandoned_states()
    if not gone:
        return Check("states", "ok", "every state belongs to a project that exists")
    names = ", ".join(state.name for state, _ in gone[:MOST_STATES])
    more = f" and {len(gone) - MOST_STATES:,} more" if len(gone) > MOST_STATES else ""
    detail = f"{pluralize(len(gone), 'state')} of projects that are gone: {names}{more}"
    fix = "`cockpit debug state --clean` deletes them"
    return Check("states", "missing", detail, fix)


def _verify(connection: sqlite3.Connection) -> verify_chain.Verdict | None:
    """Verify the journal; None where that would be too many rows."""
    if journal.last_seq(connection) > MOST_ROWS:
        return None
    return verify_chain.verify(connection)


def _check_pages(connection: sqlite3.Connection) -> str:
    """Let SQLite check its pages; returns ``ok`` or what is wrong.

    Those of a long journal are left out: verifying it reads them.
    """
    if journal.last_seq(connection) <= MOST_ROWS:
        return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT IN ('journal')"
    ).fetchall()
    for (table,) in tables:
        (result,) = connection.execute(f'PRAGMA quick_check("{table}")').fetchone()
        if result != "ok":
            return str(result)
    return "ok"


def _privacy(path: Path) -> Sequence[Check]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return [Check("privacy", "broken", f"{path} has mode {mode:04o}", f"chmod 600 {path}")]
    return []
