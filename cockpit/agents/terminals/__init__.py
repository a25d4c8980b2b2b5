"""Sessions of external agents in the user's own terminals."""
