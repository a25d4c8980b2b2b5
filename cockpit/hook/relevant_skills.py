"""The line of a session's start that names the skills for its task.

Imported only where a task is resumed. To read and rank skills takes longer than all else that a hook does, so
the line is kept until a skill changes (:mod:`cockpit.hook.skill_line_cache`).
See ``docs/reference/skills.md``, external agents.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.core.find_checkout import Checkout
    from cockpit.orient.skills.choose_skills import Choice


def name_relevant_skills(place: Checkout, task: str, task_type: str) -> str:
    """Return ``Skills for this task: …``; '' where it needs none. Raises the errors of reading files."""
    from cockpit.hook import skill_line_cache

    if os.environ.get("COCKPIT_SKILLS_MOST", "").strip() == "0":
        return ""
    key = skill_line_cache.task_key(task, task_type)
    kept = skill_line_cache.recall_line(place, key)
    return _rank_skills(place, key, task, task_type) if kept is None else kept


def _rank_skills(place: Checkout, key: str, task: str, task_type: str) -> str:
    """Read and rank the skills, and keep the line."""
    from pathlib import Path

    from cockpit.core.project_paths import user_folder
    from cockpit.core.skills import skill_layers
    from cockpit.hook import skill_line_cache
    from cockpit.orient.skills.choose_skills import choose_skills
    from cockpit.orient.skills.rank_skills import build_index

    if not skill_layers.ENABLED:
        return ""
    places = skill_layers.list_places(
        Path(place.home), user_folder(os.environ), Path(os.path.expanduser("~"))
    )
    folders = [str(each.folder) for each in places]
    marks = skill_line_cache.mark_files(place, folders)
    skills = skill_layers.load_skills(places).skills
    chosen = choose_skills(skills, build_index(skills.values()), task, task_type=task_type)
    line = _name(chosen)
    skill_line_cache.keep_line(place, key, folders, marks, line)
    return line


def _name(chosen: Sequence[Choice]) -> str:
    if not chosen:
        return ""
    sure = ", ".join(choice.name for choice in chosen if not choice.is_named)
    others = ", ".join(choice.name for choice in chosen if choice.is_named)
    names = f"{sure}; perhaps {others}" if sure and others else sure or f"perhaps {others}"
    return f"Skills for this task: {names} (get_skill, or `cockpit skills {chosen[0].name}`)."
