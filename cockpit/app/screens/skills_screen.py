"""Skills over the whole screen: what the session has and why, and what it could load. Live.

Specified in ``docs/reference/skills.md``, screen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import user_folder
from cockpit.core.skills.skill import LAYERS
from cockpit.core.text import pluralize
from cockpit.loop.skills.skill_desk import ListedSkill, SkillDesk, SkillOverview
from cockpit.loop.skills.skill_shelf import open_shelf
from widgets.text.tone import DIM, STRONG, WARN, Part, block, line
from widgets.views import KeyHintView
from widgets.work.queue_list import QueueList
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_SIGNS: dict[str, tuple[str, Tone]] = {
    "loaded": ("◆", "good"),
    "waits": ("◇", "accent"),
    "leaves": ("◇", "warn"),
    "available": ("·", "dim"),
}
_WORDS = {
    "loaded": "loaded",
    "waits": "from the next wave",
    "leaves": "until the next wave",
    "available": "",
}
_BACK = KeyHintView("esc", "back")


class SkillsScreen(BacklogScreen):
    """The skills of the followed session, one under the cursor with its text below."""

    NAME = "Skills"
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("l", "load", "load or unload", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = QueueList(
            empty="No skills yet. `cockpit skills install PATH` adds some; an agent may propose one."
        )
        self._detail = Static(id="trust-detail")
        self._overview = SkillOverview()
        self._requested = self._drawn = ("", -1)
        self._reading = False
        self._desk: SkillDesk | None = None

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self._list
        with VerticalScroll(id="trust-evidence", can_focus=False):
            yield self._detail
        yield self.bar

    @property
    def body(self) -> QueueList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    @property
    def skill(self) -> ListedSkill | None:
        """The skill under the cursor."""
        row = self._list.at_cursor
        skills = self._overview.skills
        return next((each for each in skills if row is not None and each.name == row.key), None)

    def head(self) -> tuple[str, Sequence[Part]]:
        loaded = [skill for skill in self._overview.skills if skill.state in ("loaded", "leaves")]
        tokens = sum(skill.tokens for skill in loaded)
        count = pluralize(len(self._overview.skills), "skill")
        text = f"{len(loaded)} of {count} loaded, {tokens:,} tokens"
        if self._overview.problems:
            return self.NAME, [(text, DIM), (f"   {len(self._overview.problems)} not used", WARN)]
        return self.NAME, [(text, DIM)]

    def update_hints(self) -> None:
        skill = self.skill
        if skill is None or not self.host.session_id:
            self.bar.show([_BACK])
            return
        verb = "load" if skill.state in ("available", "leaves") else "unload"
        self.bar.show([KeyHintView("⏎", verb), _BACK])

    # Keys

    def on_queue_list_opened(self, event: QueueList.Opened) -> None:
        """Load or unload the skill under the cursor."""
        event.stop()
        self.action_load()

    def action_load(self) -> None:
        """Load or unload the skill under the cursor, from the session's next wave on."""
        skill, session_id = self.skill, self.host.session_id
        if skill is None or not session_id:
            return

        async def toggle() -> None:
            await self._open_desk().toggle(session_id, skill)

        self.host.request(toggle)

    def on_queue_list_moved(self) -> None:
        """Show the text of another skill."""
        self._draw_detail()
        self.update_hints()

    # Drawing

    def paint(self) -> None:
        super().paint()
        self._requested = (self.host.session_id, self.host.state.seq)
        if self._requested != self._drawn and not self._reading and self._list.is_attached:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    def redraw(self) -> None:
        """Do nothing: skills do not depend on the backlog; :meth:`paint` reads them."""

    def _open_desk(self) -> SkillDesk:
        if self._desk is None:
            engine = self.host.engine
            shelf = open_shelf(engine.place, user_folder(os.environ), os.environ)
            self._desk = SkillDesk(engine.store, shelf)
        return self._desk

    async def _read_and_draw(self) -> None:
        """Read until the newest state is drawn."""
        try:
            while self.is_attached and self._requested != self._drawn:
                requested = self._requested
                self._overview = await self._open_desk().read_overview(requested[0])
                self._list.show([_row(skill) for skill in self._overview.skills])
                self._drawn = requested
        except CockpitError as error:
            self._drawn = self._requested
            self.host.show_error(str(error))
        finally:
            self._reading = False
        if self.is_attached:
            self._draw_detail()
            self.paint()

    def _draw_detail(self) -> None:
        skill = self.skill
        lines = [line((problem, WARN)) for problem in self._overview.problems]
        if skill is not None:
            lines += _detail_lines(skill)
        self._detail.update(Content("\n").join(lines))


def _row(skill: ListedSkill) -> QueuedView:
    sign, tone = _SIGNS[skill.state]
    words = _WORDS[skill.state]
    why = skill.why if skill.state == "loaded" else ""
    about = f"{skill.tokens:,} tokens · {why}" if why else skill.layer
    return QueuedView(skill.name, f"  {skill.description}", sign, tone, words, about)


def _detail_lines(skill: ListedSkill) -> list[Content]:
    origin = f"{skill.layer}, replaces {skill.replaces}" if skill.replaces else skill.layer
    facts = [
        ("from", origin if skill.layer == LAYERS[0] else f"{origin} · {skill.folder}"),
        ("why", skill.why),
        ("files", ", ".join(skill.files)),
    ]
    lines = [line((skill.name, STRONG)), line(skill.description)]
    lines += [line((f"{name:<8}", DIM), value) for name, value in facts if value]
    return [*lines, Content(""), block(skill.core)]
