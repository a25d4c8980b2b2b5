"""Follow a session while it runs, then say what it has read and changed.

python docs/examples/follow_events.py MODEL TASK
"""

import asyncio
import sys

from cockpit import OmniLoop


async def main(model: str, task: str) -> None:
    loop = OmniLoop(model=model, policy="all")
    async for event in loop.stream(task, max_steps=8):
        if event.kind in ("wave.started", "proposal.decided", "action.confirmed"):
            print(event.seq, event.kind)
    print(loop.result)
    print(loop.state.get_stats())


asyncio.run(main(*sys.argv[1:]))
