"""What each action of the registry does: one method per id, called by the screen."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from cockpit.app import external_editor
from cockpit.app.actions.action import Pane
from cockpit.app.actions.backlog_actions import WorkActs
from cockpit.app.actions.packet_actions import PacketActs
from cockpit.app.dialogs.question import Ask, Help, PickOne
from cockpit.app.screens.panes import PANES
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH
from widgets.views import ProposalView

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen

_QUIT_S = 2.0


class Acts(PacketActs, WorkActs):
    """Actions over one screen."""

    def __init__(self, screen: CockpitScreen) -> None:
        super().__init__(screen)
        self._interrupted = float("-inf")

    # Decide

    def narrow(self) -> None:
        """Let the person tick items of the context request; again: not any more."""
        screen = self._screen
        panel = screen.panes.proposals
        screen.panes.turn_to("proposals")
        if panel.narrowing:
            panel.narrowing, screen.kept = False, None
            screen.prompt.focus()
        else:
            panel.focus()
            panel.narrowing = True
            screen.kept = panel.kept

    def edit(self) -> None:
        """Edit the proposed action; the result is a revision to decide."""
        front = self._screen.steering.open
        if front is not None:
            self._cockpit.do(self._edit(front))

    async def _edit(self, front: ProposalView) -> None:
        engine = self._cockpit.engine
        try:
            before, suffix = await engine.editable(front.proposal_id)
            after = await self.in_editor(before, suffix)
            if after is not None and after != before:
                with external_editor.kept_if_refused(after, self._cockpit.tell, suffix=suffix):
                    await engine.edit(front.proposal_id, shown_digest=front.digest, text=after)
        except CockpitError as error:
            self._cockpit.tell(str(error))

    def reject(self) -> None:
        """Ask for a reason, then reject."""
        front = self._screen.steering.open
        if front is None:
            return

        def answered(reason: str | None) -> None:
            if reason is not None:
                self._screen.verdicts.reject(front, reason)

        words = f"{front.title}\nThe agent is told why, and looks for another way."
        self._cockpit.push_screen(Ask("Reject: why?", words), answered)

    def next(self) -> None:
        """Put the next proposal in front."""
        self._turn(1)

    def previous(self) -> None:
        """Put the previous proposal in front."""
        self._turn(-1)

    def _turn(self, step: int) -> None:
        screen = self._screen
        order = self._cockpit.pending
        if order:
            place = order.index(screen.front) if screen.front in order else 0
            screen.front = order[(place + step) % len(order)]
            screen.kept = None
            screen.panes.turn_to("proposals")
            screen.paint()

    # Say

    def editor(self) -> None:
        """Write the prompt's text in the person's editor."""
        self._cockpit.do(self._write())

    async def _write(self) -> None:
        prompt = self._screen.prompt
        try:
            text = await self.in_editor(prompt.text, ".md")
        except CockpitError as error:
            self._cockpit.tell(str(error))
            return
        if text is not None:
            prompt.put(text)

    async def in_editor(self, text: str, suffix: str) -> str | None:
        argv = external_editor.command(os.environ)
        app = self._cockpit
        try:
            # Nothing is drawn while the editor has the terminal; sessions go on meanwhile.
            with app.batch_update(), app.suspend():
                found = await asyncio.to_thread(
                    external_editor.edited, text, argv=argv, suffix=suffix
                )
        except SuspendNotSupported:
            app.tell("This terminal cannot be handed to an editor.")
            return None
        app.refresh(layout=True)
        return found

    # Session

    def interrupt(self) -> None:
        """Interrupt the session; without one, or again: quit."""
        cockpit = self._cockpit
        now = cockpit.engine.store.clock.monotonic()
        if cockpit.runs.interrupt(cockpit.followed):
            self._screen.flash("interrupted · ^c twice to quit")
            self._interrupted = float("-inf")
        elif now - self._interrupted <= _QUIT_S:
            self.quit()
        else:
            self._interrupted = now
            self._screen.flash("^c again to quit")

    def policy(self, asked: str = "") -> None:
        """Go to the next approval policy; a wider one asks for a second key."""
        session = self._cockpit.session
        if session is None:
            return
        names = list(POLICY_WIDTH)
        now = asked or session.policy
        wanted = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
        if POLICY_WIDTH[wanted] > POLICY_WIDTH.get(session.policy, 0):
            self._screen.asking_policy = wanted
            self._screen.words()
        elif wanted != session.policy:
            self.set_policy(wanted)

    def set_policy(self, policy: str) -> None:
        """Change the followed session's policy."""
        followed = self._cockpit.followed
        self._cockpit.ask(lambda: self._cockpit.engine.change(followed, policy=policy))

    def sessions(self) -> None:
        """Pick a session to follow."""

        def picked(key: str | None) -> None:
            if key:
                self.forget_way()
                self._cockpit.attach(key)

        rows = list(self.followable())
        self._cockpit.push_screen(PickOne("Sessions", rows, empty="No session yet."), picked)

    def new(self) -> None:
        """Leave the session as it is; the next words begin another."""
        self.forget_way()
        self._cockpit.attach("")
        self._screen.prompt.focus()

    def model(self) -> None:
        """Ask for another model."""
        session = self._cockpit.session
        value = session.model if session is not None else ""
        self._change("Model", "provider:model, offline, or script:FILE", value, "model")

    def task_type(self) -> None:
        """Ask for another task type."""
        session = self._cockpit.session
        value = session.task_type if session is not None else ""
        self._change("Task type", "for example implement, investigate or review_pr", value, "type")

    def _change(self, title: str, words: str, value: str, what: str) -> None:
        cockpit = self._cockpit
        followed = cockpit.followed

        def answered(name: str | None) -> None:
            if not name or name == value:
                return
            if what == "model":
                cockpit.ask(lambda: cockpit.engine.change(followed, model=name))
            else:
                cockpit.ask(lambda: cockpit.engine.change(followed, task_type=name))

        cockpit.push_screen(Ask(title, words, value=value), answered)

    # Look

    def panes(self) -> None:
        """Move the focus to the next pane that can be seen."""
        screen = self._screen
        seen: list[Pane] = [name for name in PANES if screen.panes.solo in (None, name)]
        order: list[Pane] = ["prompt", *seen]
        here = order.index(screen.pane) if screen.pane in order else 0
        name = order[(here + 1) % len(order)]
        (screen.prompt if name == "prompt" else screen.panes.pane(name)).focus()

    def _alone(self, name: Pane) -> None:
        screen = self._screen
        screen.panes.show_only(name)
        if screen.pane not in ("prompt", screen.panes.solo or screen.pane):
            screen.prompt.focus()
        screen.changed()

    def conversation(self) -> None:
        """The conversation alone."""
        self._alone("conversation")

    def bands(self) -> None:
        """The bands alone."""
        self._alone("bands")

    def proposals(self) -> None:
        """The proposals alone."""
        self._alone("proposals")

    def work(self) -> None:
        """Chains and work alone."""
        self._alone("work")

    def to_work(self) -> None:
        """Go into Chains & work, and back."""
        screen = self._screen
        if screen.pane == "work":
            screen.prompt.focus()
        else:
            screen.panes.turn_to("work")
            screen.panes.board.focus()
        screen.changed()

    def expand(self) -> None:
        """The pane that has the focus alone; from the prompt, what waits or what is said."""
        screen = self._screen
        pane = screen.pane
        if screen.panes.alone is not None and not screen.panes.narrow:
            pane = screen.panes.alone
        elif pane in ("prompt", ""):
            pane = "proposals" if screen.queue.front is not None else "conversation"
        self._alone(pane)

    def page_up(self) -> None:
        """Scroll the conversation back."""
        self._screen.panes.conversation.scroll_page_up(animate=False)

    def page_down(self) -> None:
        """Scroll the conversation on."""
        self._screen.panes.conversation.scroll_page_down(animate=False)

    def theme(self) -> None:
        """Pick a theme."""
        rows = [(name, name, "") for name in sorted(self._cockpit.available_themes)]
        self._cockpit.push_screen(
            PickOne("Themes", rows), partial(_given, self._cockpit.choose_theme)
        )

    # Program

    def palette(self) -> None:
        """All commands."""
        from cockpit.app.actions.palette import Palette

        self._cockpit.push_screen(Palette())

    def help(self) -> None:
        """Keys and commands."""
        self._cockpit.push_screen(Help(self._screen.actions))

    def leave(self) -> None:
        """Quit; the prompt is empty."""
        self.quit()

    def quit(self) -> None:
        """Quit, after every session wrote down where it stands."""
        self._cockpit.do(self._cockpit.quit())


def _given(choose: object, key: str | None) -> None:
    if key and callable(choose):
        choose(key)
