"""The Model Context Protocol server: cockpit's tools for external agents."""
