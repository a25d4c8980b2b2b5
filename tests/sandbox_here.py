"""Whether commands are confined on the machine that runs the tests.

Tests of what runs in the sandbox alone are not collected without one; each such folder has tests of what
cockpit does and says there, which are collected everywhere.
"""

from __future__ import annotations

import asyncio
import os

from cockpit.act.sandbox.bubblewrap import detect
from cockpit.act.sandbox.reading_sandbox import why_no_reading

_HERE = asyncio.run(detect(os.environ))
CONFINES = _HERE.works
MISSING = _HERE.missing
"""Why commands are not confined (empty where they are)."""
WARNING = (
    ""
    if CONFINES
    else (
        f"No sandbox: {MISSING}. Commands and tests run with all of your rights, your files and the"
        " network.\n"
    )
)
"""All that a run under the policy ``all`` prints on stderr, where nothing else is to be said."""
READS = not asyncio.run(why_no_reading(_HERE))
"""Whether there is a reading sandbox; as administrator a test opens its project to others."""
