"""``cockpit`` in a process of its own, for the user: ``python cockpit_for_user.py WORDS…``.

A process of a test has no terminal of a user, and may run below an agent. See ``run_cockpit.py``.
"""

from __future__ import annotations

import sys

import state_for_tests

from cockpit.access import user_presence

user_presence.assume_user()
state_for_tests.trust_everything()

if __name__ == "__main__":
    from cockpit.__main__ import main

    sys.exit(main())
