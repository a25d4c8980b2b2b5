"""The work tools that the command line, MCP and HTTP share."""
