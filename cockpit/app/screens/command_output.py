"""Shows what a command of the followed session writes while it runs.

Specified in ``docs/reference/screen.md``, output of commands.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.core.clock import parse_time

if TYPE_CHECKING:
    from cockpit.app.host import Host

LOOK_S = 0.25


class CommandOutput:
    """Reads the output of the running action and hands it to the conversation; call :meth:`look` often."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._reads = False
        self._is_shown = False

    def look(self) -> None:
        """Draw the running command, or take it away."""
        host = self._host
        running = host.state.conversation(host.session_id).running
        if not running:
            if self._is_shown:
                self._is_shown = False
                host.main.panes.conversation.show_live("", ())
            return
        if not self._reads:
            self._reads = True
            host.run_in_background(self._read())

    async def _read(self) -> None:
        from cockpit.act.live_output import read_live_output

        host = self._host
        try:
            session_id = host.session_id
            running = list(host.state.conversation(session_id).running.values())
            if not running:
                return
            action, store = running[-1], host.engine.store
            text = await asyncio.to_thread(read_live_output, store.path, action.action_id)
            still = host.state.conversation(session_id).running
            if action.action_id not in still or host.session_id != session_id:
                return
            took = (store.clock.now() - parse_time(action.at)).total_seconds()
            if text is not None or took >= 1:
                self._is_shown = True
                title = f"{action.title or action.type} · {max(0, took):.0f} s"
                lines = [] if text is None else text.rstrip("\n").split("\n")
                host.main.panes.conversation.show_live(title, [each for each in lines if each])
        finally:
            self._reads = False
