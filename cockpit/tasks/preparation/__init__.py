"""What happens before an implementer begins: the worktree is set up, and its tests run once."""
