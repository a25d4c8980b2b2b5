"""The state folder of the tests, in place of that of the user who runs them.

One folder serves a whole process of tests: each project has its own folder in it, found by the project's
path, and every test has paths of its own. A test of the folder itself sets ``COCKPIT_STATE_DIR`` anew.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from cockpit.core.project import project_trust
from cockpit.core.project_paths import PROJECT_FILE, locate_project, read_project_record
from cockpit.core.skills import skill_layers
from cockpit.core.state_folder import DATABASE, PROJECTS, VARIABLE, state_root
from cockpit.loop.knowledge import knowledge_settings
from cockpit.store.journal import head_anchor
from cockpit.store.journal.head_anchor import HeadAnchor

_own: list[Path] = []
_seen: dict[Path, int] = {}
_homes: dict[str, Path] = {}
"""The checkouts of the projects, by the names of their folders."""


def install() -> None:
    """Give this process, and those that inherit its environment, a state folder that goes with it."""
    os.environ.pop(VARIABLE, None)
    users = Path(state_root(), PROJECTS)
    _seen[users] = _changed(users)
    made = tempfile.mkdtemp(prefix="cockpit-state-")
    os.environ[VARIABLE] = os.path.realpath(made)
    _own.append(Path(made))
    atexit.register(_remove, os.getpid(), made)
    trust_everything()


def folder() -> str:
    """Return the folder."""
    return os.environ[VARIABLE]


def list_strangers(tests: Path) -> list[str]:
    """List the projects below the folder ``tests`` that are new in the state folder of the user.

    A cockpit that the user starts meanwhile adds its own, which are none of these.
    """
    strangers = []
    for users, before in _seen.items():
        now = _changed(users)
        if now == before:
            continue
        _seen[users] = now
        for path in users.iterdir():
            record = read_project_record(path)
            if record is not None and record.home.is_relative_to(tests):
                strangers.append(str(path))
    return strangers


def remove_lost_states() -> None:
    """Remove the state of each project that is gone, as those of a test that has passed.

    Otherwise the first command in each project would look through the projects of all tests before it.
    """
    projects = Path(folder(), PROJECTS)
    for state in projects.iterdir() if projects.is_dir() else ():
        if state.name not in _homes:
            record = read_project_record(state)
            if record is None:
                continue
            _homes[state.name] = record.home
        if not _homes[state.name].exists():
            shutil.rmtree(state, ignore_errors=True)
            del _homes[state.name]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _remove(pid: int, path: str) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)


def state_of(root: Path) -> Path:
    """Return the state folder of the project at ``root``, which need not exist."""
    return locate_project(root).state


def kept_variables() -> dict[str, str]:
    """Return the variables that a process of a test gets besides those of the test itself."""
    names = ("PATH", "LANG", "TMPDIR", VARIABLE)
    return {name: os.environ[name] for name in names if name in os.environ}


def copy_project(source: Path, target: Path) -> None:
    """Copy the project at ``source`` to ``target``, with its state."""
    shutil.copytree(source, target, symlinks=True)
    state, kept = state_of(source), source.with_name(f"{source.name}.state")
    if state.is_dir() and not kept.exists():
        # Beside it: a test may set another state folder, or empty this one, while the project is in use.
        shutil.copytree(state, kept, symlinks=True)
    if kept.is_dir():
        state = kept
        copy = state_of(target)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copytree(state, copy, symlinks=True, ignore=shutil.ignore_patterns(PROJECT_FILE))
        locate_project(target).prepare()
        anchor_copy(copy / DATABASE)


def anchor_copy(database: Path) -> None:
    """Give a copied store its anchor, as if it had been written here: a screen warns of one without."""
    file = head_anchor.find_anchor_file(database)
    if file is not None and database.exists():
        with closing(sqlite3.connect(database)) as connection:
            seq, digest = head_anchor.last_row(connection)
        head_anchor.write_anchor(file, HeadAnchor(seq, digest, ""))


LOAD_SKILLS = {"COCKPIT_TEST_SKILLS": "on"}
"""With this in its environment, a process of the tests loads skills as cockpit does."""
SEARCH_KNOWLEDGE = {"COCKPIT_TEST_KNOWLEDGE": "on"}
"""With this in its environment, a process of the tests searches by itself as cockpit does."""
ASK_TRUST = {"COCKPIT_TEST_TRUST": "ask"}
"""With this in its environment, a process of the tests asks for trust as cockpit does."""


def trust_everything() -> None:
    """Let this process load the files of every project, so that each test need not trust its own.

    Skills are loaded in the tests of skills alone, and knowledge in those of knowledge: those of others count
    facts and tokens.
    """
    project_trust.REQUIRED = "COCKPIT_TEST_TRUST" in os.environ
    skill_layers.ENABLED = "COCKPIT_TEST_SKILLS" in os.environ
    knowledge_settings.ENABLED = "COCKPIT_TEST_KNOWLEDGE" in os.environ
    knowledge_settings.BACKGROUND = False
