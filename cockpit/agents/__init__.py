"""External agents as runners: a role's session run by another program, such as Claude Code or Codex."""
