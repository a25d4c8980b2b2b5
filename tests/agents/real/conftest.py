"""Real programs of agents: ``make test-agents`` runs these tests, with ``COCKPIT_AGENTS`` as their path."""

from __future__ import annotations

import os

# The programs are not dependencies of cockpit; without them there is nothing to collect here.
collect_ignore_glob = [] if os.environ.get("COCKPIT_AGENTS") else ["test_*.py"]
