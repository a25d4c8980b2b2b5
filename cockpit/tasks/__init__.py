"""One task, done by roles in a worktree of its own."""
