"""Commands that run, open, list and export sessions, and decide their proposals."""
