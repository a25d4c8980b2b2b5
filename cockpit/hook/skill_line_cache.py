"""The lines that name a task's skills, kept with the marks of the files that they came from.

To read and rank skills takes longer than all else at the start of a session, and seldom gives another line.
Imports are chosen by their cost (``bench/hook.py``). See ``docs/reference/skills.md``, external agents.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from cockpit.core.find_checkout import Checkout

CACHE_FILE = "skill_lines.json"
"""The file of the project's state folder."""
MOST_LINES = 20
"""Tasks whose lines are kept, the latest ones."""
_LARGEST = 200_000
_MOST_SKILLS = 2_000
_ENVIRONMENT = ("HOME", "COCKPIT_CONFIG_DIR", "XDG_CONFIG_HOME")
"""Variables that decide where the user's skills are."""
_RANKING = os.path.join(os.path.dirname(os.path.dirname(__file__)), "orient", "skills")
"""The code that ranks: a new version of it may choose other skills."""


def task_key(task: str, task_type: str) -> str:
    """Return the digest of a task's text and type, and of the variables that say where skills are."""
    places = [os.environ.get(name, "") for name in _ENVIRONMENT]
    return _digest([task, task_type, *places])


def mark_files(place: Checkout, folders: Sequence[str]) -> str:
    """Return a digest that changes with any skill of ``folders``, the user's trust, and the code."""
    return _digest(_list_marks(os.path.join(place.state, "trust.json"), folders))


def recall_line(place: Checkout, key: str) -> str | None:
    """Return the kept line of the task; None where there is none, or a skill has changed since."""
    entry = _read(place).get(key)
    try:
        if entry is None or mark_files(place, entry["folders"]) != entry["marks"]:
            return None
        return str(entry["line"])
    except (KeyError, TypeError, ValueError):  # not as we write it
        return None


def keep_line(place: Checkout, key: str, folders: Sequence[str], marks: str, line: str) -> None:
    """Keep the line of a task. ``marks`` are those of before the skills were read. Raises ``OSError``."""
    entries = {name: entry for name, entry in _read(place).items() if name != key}
    entries[key] = {"folders": list(folders), "marks": marks, "line": line}
    latest = dict(list(entries.items())[-MOST_LINES:])
    path = os.path.join(place.state, CACHE_FILE)
    draft = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(latest, file)
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def _read(place: Checkout) -> Mapping[str, Any]:
    """Read the kept entries; none where the file is missing, too large, or not ours."""
    try:
        with open(os.path.join(place.state, CACHE_FILE), encoding="utf-8") as file:
            entries = json.loads(file.read(_LARGEST))
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _list_marks(trust: str, folders: Sequence[str]) -> Iterator[str]:
    yield _mark(trust)
    yield _mark(os.path.join(_RANKING, "choose_skills.py"))
    yield _mark(os.path.join(_RANKING, "rank_skills.py"))
    for folder in folders:
        # A link in place of a project's folder is not followed.
        yield f"{os.path.islink(os.path.dirname(folder))} {os.path.islink(folder)}"
        try:
            names = sorted(os.listdir(folder))[:_MOST_SKILLS]
        except OSError as error:
            yield f"{folder} {error.errno}"
            continue
        for name in names:
            skill = os.path.join(folder, name)
            yield f"{os.path.islink(skill)} {_mark(os.path.join(skill, 'SKILL.md'))}"


def _mark(path: str) -> str:
    try:
        own, target = os.lstat(path), os.stat(path)
    except OSError as error:
        return f"{path} {error.errno}"
    times = f"{target.st_mtime_ns} {target.st_ctime_ns}"
    return f"{path} {own.st_mode} {own.st_ino} {target.st_ino} {times} {target.st_size}"


def _digest(parts: Sequence[str] | Iterator[str]) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
