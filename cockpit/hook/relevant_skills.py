"""The line of a session's start that names the skills for its task.

Imported only where a task is resumed: to read and rank skills takes longer than all else that a hook does.
See ``docs/reference/skills.md``, external agents.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.core.find_checkout import Checkout


def name_relevant_skills(place: Checkout, task: str, task_type: str) -> str:
    """Return ``Skills for this task: …``; '' where it needs none. Raises the errors of reading files."""
    from pathlib import Path

    from cockpit.core.project_paths import user_folder
    from cockpit.core.skills import skill_layers
    from cockpit.orient.skills.choose_skills import choose_skills
    from cockpit.orient.skills.rank_skills import build_index

    if not skill_layers.ENABLED or os.environ.get("COCKPIT_SKILLS_MOST", "").strip() == "0":
        return ""
    places = skill_layers.list_places(
        Path(place.home), user_folder(os.environ), Path(os.path.expanduser("~"))
    )
    skills = skill_layers.load_skills(places).skills
    chosen = choose_skills(skills, build_index(skills.values()), task, task_type=task_type)
    if not chosen:
        return ""
    sure = ", ".join(choice.name for choice in chosen if not choice.is_named)
    others = ", ".join(choice.name for choice in chosen if choice.is_named)
    names = f"{sure}; perhaps {others}" if sure and others else sure or f"perhaps {others}"
    return f"Skills for this task: {names} (get_skill, or `cockpit skills show {chosen[0].name}`)."
