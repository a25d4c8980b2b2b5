"""A process that dispatches an action and is killed, with no warning, at a chosen moment.

``act_victim.py STORE PROJECT WAVE before|after``: dies before the effect, or after it and before its
receipt. With ``race`` it waits for a line on its input and then runs the wave to its end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cockpit.act.adapters import ADAPTERS, Adapter, Outcome
from cockpit.act.adapters.adapter import Found
from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.workspace import Workspace, open_workspace
from cockpit.store.db.database import Store


class Dying:
    """An adapter that does its work, or not, and kills its process."""

    ends_when_cancelled = False

    def __init__(self, adapter: Adapter, moment: str) -> None:
        self.adapter = adapter
        self.moment = moment

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        if self.moment == "after":
            await self.adapter.perform(payload, key, ground)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        return await self.adapter.probe(payload, key, ground)


async def main(path: str, project: str, wave_id: str, moment: str) -> None:
    ground = await open_workspace(Path(project), repo="acme/api")
    with Store.open(Path(path)) as store:
        if moment == "race":
            print("ready", flush=True)
            sys.stdin.readline()
            await Dispatcher(store, ground).run_wave(wave_id)
            return
        adapters = {name: Dying(adapter, moment) for name, adapter in ADAPTERS.items()}
        await Dispatcher(store, ground, adapters).run_wave(wave_id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
