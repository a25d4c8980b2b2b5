"""Let processes of tests decide as the user does: they have no terminal, and may run below an agent.

``tests/adversarial/test_who_decides.py`` starts processes from nothing, which are judged as everywhere.
"""

from __future__ import annotations

from cockpit.access import user_presence


def install() -> None:
    """Take this process, and those forked from it, for the user at a terminal."""
    user_presence.explain_absence = lambda: ""
    user_presence.find_agent = lambda **_: ""
    user_presence.find_agent_above = lambda _: ""
