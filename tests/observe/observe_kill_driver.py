"""Runs a session that reads many files; ``kill``: until the middle of its fan-out, where it dies.

``observe_kill_driver.py ROOT MODEL run|kill [SESSION]`` prints one JSON line: the session, how its
jobs ended, and the digests of its packets.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from observe_loop import counted, runtime_on, seen


async def main(root: Path, model: str, how: str, session_id: str = "") -> None:
    async with runtime_on(root) as runtime:

        def die_in_the_middle() -> None:
            found = counted(runtime.store.path)
            if found.get("done") and found.get("planned"):
                os.kill(os.getpid(), signal.SIGKILL)

        if how == "kill":
            runtime.store.on_commit(die_in_the_middle)
        session_id = session_id or await runtime.start(
            "look at it", model=model, policy="reads", interactive=False
        )
        print(session_id, flush=True)
        ended = await runtime.run(session_id)
        digests = [wave.digest for wave in seen(runtime.store, session_id)]
        told = {"status": ended.status, "jobs": counted(runtime.store.path), "digests": digests}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
