"""Carrying out what a key meant: decisions and words go to the engine, their errors come back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from cockpit.app.key_policy import Approve, AskSecond, Discuss, Leave, Nothing, Say, Step
from cockpit.core.errors import CockpitError
from widgets.views import ProposalView

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class Verdicts:
    """The person's decisions on their way from the screen to the engine."""

    def __init__(self, screen: CockpitScreen) -> None:
        self._screen = screen

    def carry(self, step: Step) -> None:
        """Carry out one step."""
        screen = self._screen
        match step:
            case Approve(proposal):
                self.approve(proposal)
            case Discuss(proposal, words):
                self.discuss(proposal, words)
            case Say(text, session):
                screen.cockpit.say(text, session)
            case AskSecond():
                screen.flash("")
            case Nothing(why):
                screen.flash(why)
            case Leave():
                screen.words()

    def approve(self, proposal: ProposalView) -> None:
        """Approve exactly what was drawn, narrowed to what is still ticked."""
        screen, engine = self._screen, self._screen.cockpit.engine
        kept = screen.kept
        if kept is not None and not kept:
            screen.flash("nothing is ticked: reject or discuss it instead")
            return
        self._decide(
            proposal,
            lambda: engine.approve(
                proposal.proposal_id, shown_digest=proposal.digest, narrowed=kept
            ),
        )

    def discuss(self, proposal: ProposalView, words: str) -> None:
        """End this revision; without words the prompt asks for them."""
        screen, engine = self._screen, self._screen.cockpit.engine

        def asked() -> None:
            if not proposal.session:
                screen.flash("put aside: nothing happens")
            elif not words:
                screen.steering.discussing = proposal
                screen.prompt.focus()

        self._decide(
            proposal,
            lambda: engine.discuss(proposal.proposal_id, shown_digest=proposal.digest, words=words),
            done=asked,
            words=words,
        )

    def reject(self, proposal: ProposalView, reason: str) -> None:
        """Refuse it."""
        engine = self._screen.cockpit.engine
        self._decide(
            proposal,
            lambda: engine.reject(
                proposal.proposal_id, shown_digest=proposal.digest, reason=reason
            ),
        )

    def _decide(
        self,
        proposal: ProposalView,
        call: Callable[[], Awaitable[object]],
        *,
        done: Callable[[], None] | None = None,
        words: str = "",
    ) -> None:
        screen = self._screen
        steering = screen.steering
        steering.begin(proposal)
        screen.panes.proposals.narrowing = False
        screen.prompt.focus()

        async def decide() -> None:
            try:
                await call()
            except CockpitError as error:
                steering.undo(proposal)
                screen.cockpit.give_back(words)
                screen.cockpit.tell(str(error))
            else:
                if done is not None:
                    done()
                screen.cockpit.go_on(proposal.session)
            screen.words()

        screen.cockpit.do(decide())
        screen.words()
