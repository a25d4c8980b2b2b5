"""One adapter for each type of action: it does the thing, and can tell afterwards whether it did."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.act.adapters.adapter import Adapter, Outcome
from cockpit.act.adapters.git_commit import CommitAdapter
from cockpit.act.adapters.github_write import GitHubAdapter
from cockpit.act.adapters.run_command import CommandAdapter
from cockpit.act.adapters.write_files import FileAdapter

__all__ = ["ADAPTERS", "Adapter", "Outcome"]

ADAPTERS: Mapping[str, Adapter] = {
    "write_file": FileAdapter(),
    "edit_file": FileAdapter(),
    "run": CommandAdapter(),
    "github": GitHubAdapter(),
    "git_commit": CommitAdapter(),
    "create_skill": FileAdapter(),
}
"""The adapter of each action type."""
