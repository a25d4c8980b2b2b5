"""Skills in a session: loaded into packets, unloaded, created. See ``docs/reference/skills.md``."""
