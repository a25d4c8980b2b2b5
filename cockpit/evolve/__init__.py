"""Evolve: a tool that is missing is written test first, in the sandbox, and adopted by the user."""
