"""Skills: what the followed session has and why, and what it could load.

Specified in ``docs/reference/skills.md``, screen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.project_paths import user_folder
from cockpit.core.skills.skill import LAYERS
from cockpit.core.text import pluralize
from cockpit.loop.skills.project_skills import open_project_skills
from cockpit.loop.skills.skill_service import ListedSkill, SkillService
from widgets.text.detail import DetailRow, fields, quoted, sentence
from widgets.text.style_names import DIM, STRONG, Part
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_STATES: dict[str, tuple[str, Tone, str]] = {
    "loaded": ("◆", "good", "loaded"),
    "waits": ("◇", "accent", "from the next wave"),
    "leaves": ("◇", "warn", "until the next wave"),
    "named": ("○", "plain", "named"),
    "available": ("·", "dim", ""),
}


class SkillsScreen(ListScreen[ListedSkill]):
    """The skills of the followed session, with the text of one."""

    NAME = "Skills"
    PANE = "skills"
    EMPTY = "No skills yet. `cockpit skills install PATH` adds some; an agent may propose one."
    ENTER = ("load",)
    READS_FILES = True

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        engine = host.engine
        self._service = SkillService(
            engine.store, open_project_skills(engine.place, user_folder(os.environ), os.environ)
        )

    async def read_rows(self) -> tuple[Sequence[ListedSkill], Sequence[str]]:
        overview = await self._service.read_overview(self.host.session_id)
        return overview.skills, overview.problems

    def describe(self) -> Sequence[Part]:
        loaded = [skill for skill in self.rows if skill.state in ("loaded", "leaves")]
        tokens = sum(skill.tokens for skill in loaded)
        count = pluralize(len(self.rows), "skill")
        return [(f"{len(loaded)} of {count} loaded, {tokens:,} tokens", DIM)]

    def verbs(self, row: ListedSkill) -> Mapping[str, str]:
        if not self.host.session_id:
            return {}
        return {"load": "load" if row.state in ("available", "named", "leaves") else "unload"}

    async def do(self, verb: str, row: ListedSkill) -> None:
        """Load or unload a skill, from the session's next wave on."""
        await self._service.toggle(self.host.session_id, row)

    def draw_row(self, row: ListedSkill) -> QueuedView:
        sign, tone, state = _STATES[row.state]
        why = row.why if row.state in ("loaded", "named") else ""
        about = f"{row.tokens:,} tokens · {why}" if why else row.layer
        return QueuedView(row.name, row.description, sign, tone, state, about)

    def draw_detail(self, row: ListedSkill, detail: Any) -> Sequence[DetailRow]:
        origin = f"{row.layer}, replaces {row.replaces}" if row.replaces else row.layer
        facts = [
            ("from", origin if row.layer == LAYERS[0] else f"{origin} · {row.folder}"),
            ("why", row.why),
            ("files", ", ".join(row.files)),
        ]
        head = [sentence((row.name, STRONG)), sentence(row.description), *fields(facts)]
        return [*head, sentence(), *quoted("what enters the packet", row.core)]
