"""Runs a session that reads many files until the middle of its fan-out, and dies there.

``observe_kill_driver.py ROOT MODEL`` prints the session's id.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from observe_loop import counted, runtime_on

from cockpit.observe.fan_out import ObserveLimits

FEW = ObserveLimits(max_concurrent=4)
"""So few jobs at once that some are still to run when the first batch is written."""


async def main(root: Path, model: str) -> None:
    async with runtime_on(root, observe=FEW) as runtime:

        def die_in_the_middle() -> None:
            found = counted(runtime.store.path)
            if found.get("done") and found.get("planned"):
                os.kill(os.getpid(), signal.SIGKILL)

        runtime.store.on_commit(die_in_the_middle)
        session_id = await runtime.start(
            "look into it", model=model, policy="reads", interactive=False
        )
        print(session_id, flush=True)
        await runtime.run(session_id)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
