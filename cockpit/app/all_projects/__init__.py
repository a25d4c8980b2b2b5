"""The screen over all projects: their rows, and the one queue of proposals."""
