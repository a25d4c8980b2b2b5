"""Actions on a wave's packet: its facts, its difference from another packet, and the user's feedback.

Specified in ``docs/reference/screen.md`` and ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import asyncio

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError


def show_band_facts(host: Host, band: str) -> None:
    """List the facts of one band of the newest packet, each with its verdict."""
    host.run_in_background(_show_band_facts(host, band))


async def _show_band_facts(host: Host, band: str) -> None:
    from cockpit.app.dialogs.band_facts import BandFacts, band_rows

    # The dialog opens at once; its rows come when they are read.
    dialog = BandFacts(host.engine, host.session_id, band)
    await host.open_screen(dialog)
    try:
        explanation = await host.engine.explain(host.session_id, band=band)
        rows = await asyncio.to_thread(band_rows, explanation)
    except CockpitError as error:
        host.show_error(str(error))
        if dialog.is_current:
            dialog.dismiss(None)
        return
    if dialog.is_attached:
        dialog.show_facts(explanation, rows)


def show_facts(host: Host) -> None:
    """List the facts of all bands of the newest packet, each with its verdict."""
    show_band_facts(host, "")


def show_packet_diff(host: Host) -> None:
    """Show the difference between the packets of two waves, at first the newest two."""
    host.run_in_background(_show_packet_diff(host))


async def _show_packet_diff(host: Host) -> None:
    from cockpit.app.dialogs.packet_diff import PacketDiffDialog, read_compiled_waves

    session_id = host.session_id
    try:
        waves = await read_compiled_waves(host.engine, session_id)
    except CockpitError as error:
        host.show_error(str(error))
        return
    if len(waves) < 2:
        host.main.flash("only one packet so far: there is nothing to compare it with")
        return
    host.open_screen(PacketDiffDialog(host.engine, session_id, waves))


def rate_good(host: Host) -> None:
    """Record that the last wave went well."""
    wave_id = host.packet_wave_id
    host.request(lambda: host.engine.feedback(wave_id, "good"))


def rate_bad(host: Host) -> None:
    """Ask what was wrong with the last wave, and record both."""
    wave_id = host.packet_wave_id

    def record(text: str | None) -> None:
        if text is not None:
            host.request(lambda: host.engine.feedback(wave_id, "bad", text))

    question = "This counts against the facts in its packet. What was missing? (optional)"
    host.open_screen(Ask("The last wave went badly", question), record)


def _has_packet(context: ActionContext) -> bool:
    return context.has_packet


PACKET_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "good", "Session", "Rate the last wave as good", "good", (), ("plus",), "conversation",
        run=rate_good, when=_has_packet, needs="a wave with a packet",
    ),
    Action(
        "bad", "Session", "Rate the last wave as bad, and say why", "bad", (), ("minus",),
        "conversation", run=rate_bad, when=_has_packet, needs="a wave with a packet",
    ),
    Action(
        "facts", "Look", "Show which facts are in the packet, and why others are not", "facts",
        run=show_facts, when=_has_packet, needs="a wave with a packet", command="facts",
        synonyms="why not missing absent dropped omitted explain context left out",
    ),
    Action(
        "packet_diff", "Look", "Compare the packets of two waves", "packet diff", ("f8",), ("d",),
        "bands", run=show_packet_diff, when=_has_packet, needs="a wave with a packet",
    ),
)  # fmt: skip
