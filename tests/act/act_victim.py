"""Processes that dispatch an action and are killed, with no warning, at a chosen moment.

``act_victim.py`` reads lines of ``[STORE, PROJECT, WAVE, "before" or "after", VARIABLES]``. For each a forked
child dies before the effect, or after it and before its receipt; its exit code is printed.
``act_victim.py STORE PROJECT WAVE`` waits for a line on its input and then runs the wave to its end.
"""

from __future__ import annotations

import asyncio
import json
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


async def main(path: str, project: str, wave_id: str, moment: str = "") -> None:
    ground = await open_workspace(Path(project), repo="acme/api")
    with Store.open(Path(path)) as store:
        if not moment:
            print("ready", flush=True)
            sys.stdin.readline()
            await Dispatcher(store, ground).run_wave(wave_id)
            return
        adapters = {name: Dying(adapter, moment) for name, adapter in ADAPTERS.items()}
        await Dispatcher(store, ground, adapters).run_wave(wave_id)


def kill_each() -> None:
    for line in sys.stdin:
        *words, variables = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.environ.update(variables)
            asyncio.run(main(*words))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(main(*sys.argv[1:]))
    else:
        kill_each()
