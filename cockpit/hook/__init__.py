"""The hook command: stores events of external agents in a short process."""
