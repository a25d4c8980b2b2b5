"""A screen on which proposals are decided: when it draws, and what of a proposal its frames have shown.

The main screen and that of all projects follow the same rules (:mod:`cockpit.app.key_policy`). Specified in
``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen
from textual.timer import Timer

from cockpit.app.key_policy import KeyPolicy
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.views import ProposalView

_FRAME_S = 1 / 30
_CHECK_ARMED_S = 0.1
_LONGEST_WAIT_S = 600.0


class DecidingScreen(Screen[None]):
    """Tell ``key_policy`` what was drawn, and the panel whether its proposal is armed.

    ``monotonic`` gives seconds; ``session_id`` is the session that is followed first.
    """

    panel: ProposalPanel
    """It draws the proposal in front."""

    def __init__(self, monotonic: Callable[[], float], session_id: str = "") -> None:
        super().__init__()
        self._monotonic = monotonic
        self.key_policy = KeyPolicy(monotonic, session_id)
        self._paint_due = self._painted = False
        self._was_hidden = False
        self._keys_drawn: list[str] = []
        self._painted_at = float("-inf")
        self._arm_timer: Timer | None = None

    # What a screen says

    @property
    def drawn_front(self) -> ProposalView | None:
        """The proposal in front that the last frame has drawn; None where its panel has no room."""
        raise NotImplementedError

    def paint(self) -> None:
        """Draw the current state."""
        raise NotImplementedError

    def update_hints(self) -> None:
        """Show the current meaning of the keys."""
        raise NotImplementedError

    # What is the same on all

    @property
    def is_showing(self) -> bool:
        """True while the user can see what is drawn."""
        return bool(getattr(self.app, "is_showing", True))

    def on_frame_noted(self) -> None:
        """Do something after a frame with a proposal in front was noted."""

    def watch_arming(self) -> None:
        """Look again and again whether the proposal in front is armed, while it is not."""
        self._arm_timer = self.set_interval(_CHECK_ARMED_S, self._update_armed, pause=True)

    def find_wait(self, pressed_at: float) -> float:
        """Return for how many seconds a key has waited that was pressed at ``pressed_at``."""
        waited_s = self._monotonic() - pressed_at
        # Out of these bounds it is another clock: that of a test, or Windows' performance counter.
        return waited_s if 0.0 <= waited_s <= _LONGEST_WAIT_S else 0.0

    def begin_paint(self) -> None:
        """Note that a frame is drawn now."""
        self._paint_due = False
        self._painted_at = self._monotonic()

    def schedule_paint(self) -> None:
        """Draw at once after a pause, and at most thirty times a second."""
        if self._paint_due or not self.is_attached:
            return
        self._paint_due = True
        rest = self._painted_at + _FRAME_S - self._monotonic()
        if rest > 0:
            self.set_timer(min(rest, _FRAME_S), self.paint)
        else:
            self.call_later(self.paint)

    def _note_drawn(self) -> None:
        """Note the proposal of the frame that was drawn."""
        if not self.is_showing:  # an editor or a shell has the terminal, or it does not read
            self.key_policy.note_covered()
        elif self.is_on_top:
            self.key_policy.note_drawn(self.drawn_front)
            self._note_frame()
        self._update_armed()
        self.update_hints()

    @property
    def is_on_top(self) -> bool:
        """Whether no dialog covers this screen, which is "current" below one, too."""
        return self.app.screen_stack[-1:] == [self]

    def _compositor_refresh(self) -> None:
        """Draw a frame, and note what of the proposal is on the screen in it."""
        super()._compositor_refresh()
        if self._painted and not self.app._batch_count:
            self._note_frame()

    def _note_frame(self) -> None:
        """Note which lines of the proposal are on the screen, now that a frame was drawn."""
        if self.key_policy.front is None or not self.is_showing:
            return
        panel = self.panel
        if (keys := panel.list_keys()) != self._keys_drawn:
            self._keys_drawn = keys
            self.call_later(self.update_hints)  # the footer has the others, also below a dialog
        if not self.is_on_top:
            return
        panel.note_frame()
        if self.key_policy.note_read(panel.reading.drawn, panel.reading.is_whole):
            self.call_later(self._update_armed)
            self.call_later(self.update_hints)
        self.on_frame_noted()

    def _update_armed(self) -> None:
        """Draw the proposal in front as armed, or dim until it is."""
        policy = self.key_policy
        if policy.open is not None and not policy.is_armed:
            if not self.is_showing:
                self._was_hidden = True
                policy.note_covered()
            elif self._was_hidden:
                self._was_hidden = False
                self.schedule_paint()
        armed = policy.is_armed
        self.panel.armed = armed
        if self._arm_timer is not None:
            waits = policy.open is not None and not armed
            (self._arm_timer.resume if waits else self._arm_timer.pause)()

    def on_screen_resume(self) -> None:
        """Draw again after a dialog: the time until a proposal is armed starts now."""
        if self._painted:
            self.schedule_paint()

    def on_screen_suspend(self) -> None:
        """Note that a dialog covers the proposal."""
        self.key_policy.note_covered()
