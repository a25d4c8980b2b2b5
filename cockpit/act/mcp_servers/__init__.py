"""MCP servers of the user: their tools, listed, compared with what was approved, and called."""
