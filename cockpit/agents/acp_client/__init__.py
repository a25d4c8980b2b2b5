"""The Agent Client Protocol: external agents as sessions, over their standard streams."""
