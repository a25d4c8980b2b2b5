"""Tools that users and projects write in Python: found by their syntax, run in the sandbox."""
