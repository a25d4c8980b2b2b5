"""Actions on what a wave knew: its facts, what changed since another wave, and the person's verdict."""

from __future__ import annotations

import asyncio

from cockpit.app.dialogs.question import Ask
from cockpit.app.overlay import OverScreen
from cockpit.core.errors import CockpitError


class PacketActs(OverScreen):
    """The part of :class:`~cockpit.app.actions.screen_actions.Acts` that looks behind a packet."""

    def facts(self, band: str) -> None:
        """List the facts of one band of the newest packet, each with its fate."""
        self._cockpit.do(self._facts(band))

    async def _facts(self, band: str) -> None:
        from cockpit.app.dialogs.band_facts import BandFacts, band_rows

        cockpit = self._cockpit
        # The list stands at once, and its rows come when they are read.
        dialog = BandFacts(cockpit.engine, cockpit.followed, band)
        await cockpit.push_screen(dialog)
        try:
            told = await cockpit.engine.explain(cockpit.followed, band=band)
            rows = await asyncio.to_thread(band_rows, told)
        except CockpitError as error:
            cockpit.tell(str(error))
            if dialog.is_current:
                dialog.dismiss(None)
            return
        if dialog.is_attached:
            dialog.tell(told, rows)

    def packet_diff(self) -> None:
        """What changed in the packet between two waves; at first the newest two."""
        self._cockpit.do(self._packet_diff())

    async def _packet_diff(self) -> None:
        from cockpit.app.dialogs.packet_diff import PacketDiffScreen, compiled

        cockpit = self._cockpit
        session_id = cockpit.followed
        try:
            made = await compiled(cockpit.engine, session_id)
        except CockpitError as error:
            cockpit.tell(str(error))
            return
        if len(made) < 2:
            self._screen.flash("there is one packet so far, and nothing to compare it with")
            return
        cockpit.push_screen(PacketDiffScreen(cockpit.engine, session_id, made))

    def good(self) -> None:
        """The last wave went well."""
        wave_id = self._cockpit.oriented
        self._cockpit.ask(lambda: self._cockpit.engine.feedback(wave_id, "good"))

    def bad(self) -> None:
        """The last wave went badly: ask what was wrong, and keep both."""
        cockpit, wave_id = self._cockpit, self._cockpit.oriented

        def answered(words: str | None) -> None:
            if words is not None:
                cockpit.ask(lambda: cockpit.engine.feedback(wave_id, "bad", words))

        asked = "It counts against what this wave was shown. What did it miss? (may stay empty)"
        cockpit.push_screen(Ask("The last wave went badly", asked), answered)
