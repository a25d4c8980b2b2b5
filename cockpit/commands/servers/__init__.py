"""Commands that serve programs and agents: HTTP, MCP, hooks, tokens."""
