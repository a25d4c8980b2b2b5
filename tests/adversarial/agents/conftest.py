from __future__ import annotations

import asyncio
import os

from cockpit.act.sandbox.bubblewrap import detect

CONFINES = asyncio.run(detect(os.environ)).works
# That bubblewrap itself fails where this is left out: adversarial/sandbox/test_sandbox_absent.py.
collect_ignore = [] if CONFINES else ["test_confined_agents.py"]
