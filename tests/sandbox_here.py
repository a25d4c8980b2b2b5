"""Whether commands are confined on the machine that runs the tests.

Tests of what runs in the sandbox alone are not collected without one; each such folder has tests of what
cockpit does and says there, which are collected everywhere.
"""

from __future__ import annotations

import asyncio
import os

from cockpit.act.sandbox.bubblewrap import detect

CONFINES = asyncio.run(detect(os.environ)).works
