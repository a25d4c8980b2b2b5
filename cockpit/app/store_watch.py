"""What the screen looks after while it is open: a store that was changed or deleted, and dead chains.

See ``docs/reference/screen.md`` and ``docs/reference/chains.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.app.dialogs.small_dialogs import Warn
from cockpit.chains import watch_unattended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cockpit.app.host import Host

_ADVICE = "Until you accept the store or restore the right one, do not rely on what it shows."


def watch_store(
    app: Host, set_interval: Callable[[float, Callable[[], Awaitable[None]]], object]
) -> None:
    """Warn of a store that differs from its anchor or whose file goes away, and close dead chains, saying so.

    ``set_interval`` calls a function again and again, after so many seconds each time.
    """

    async def close_dead_chains() -> None:
        for chain in await watch_unattended.look_for_unattended(app.engine.store):
            app.show_error(watch_unattended.describe_end(chain))

    is_gone = False

    async def look_for_file() -> None:
        nonlocal is_gone
        fault = app.engine.store.file.fault
        if fault and not is_gone:
            app.open_screen(Warn(app.store_warning, fault))
        is_gone = bool(fault)

    set_interval(watch_unattended.LOOK_S, close_dead_chains)
    set_interval(watch_unattended.LOOK_S, look_for_file)
    if fault := app.engine.store.anchor.fault:
        app.open_screen(Warn(app.store_warning, f"{fault}\n\n{_ADVICE}"))
