"""The hook command: what an agent from outside tells, written down in a short process."""
