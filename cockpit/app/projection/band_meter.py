"""The band meter folded from the journal: the newest packet of each session."""

from __future__ import annotations

from cockpit.app.projection import row_detail as read
from cockpit.store.journal.journal import Row
from widgets.views import BandView, MeterView


def meter(row: Row, waves_left: int | None = None) -> MeterView:
    """The view of one ``orientation.packet.compiled`` row; ``waves_left`` waves may still begin
    under the adaptation that it was compiled under, if one runs."""
    detail = row.raw_detail()
    profile = f"profile v{row.profile_version}" if row.profile_version is not None else ""
    return MeterView(
        bands=tuple(
            BandView(
                name=read.text(band, "band"),
                used=read.number(band, "used"),
                floor=read.number(band, "min"),
                target=read.number(band, "target"),
                ceiling=read.number(band, "max"),
                facts=read.number(band, "facts"),
                dropped=read.number(band, "dropped"),
            )
            for band in read.entries(detail, "bands")
        ),
        token_used=read.number(detail, "token_used"),
        token_budget=read.number(detail, "token_budget"),
        digest=read.text(detail, "digest"),
        facts=read.number(detail, "facts"),
        dropped=read.number(detail, "dropped"),
        profile=profile,
        waves_left=waves_left,
    )


def waves_left(row: Row) -> int | None:
    """What a ``wave.started`` row says of the adaptation that the wave runs under; None: of none."""
    return read.number(row.raw_detail(), "waves_left") if "waves_left" in row.raw_detail() else None
