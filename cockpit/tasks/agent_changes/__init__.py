"""What an external agent did in a worktree of its own, as one proposal: to take, to discuss or to drop.

See ``docs/reference/agents.md``, the change of a worktree.
"""
