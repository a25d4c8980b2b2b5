from __future__ import annotations

from sandbox_here import CONFINES

# That bubblewrap itself fails where this is left out: adversarial/sandbox/test_sandbox_absent.py.
collect_ignore = [] if CONFINES else ["test_confined_agents.py"]
