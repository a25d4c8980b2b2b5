"""What is collected here without a sandbox."""

from __future__ import annotations

from sandbox_here import CONFINES

collect_ignore = [] if CONFINES else ["test_re_entry_tools.py"]
