"""Chains, their workers, task runs, leases and worktrees."""
