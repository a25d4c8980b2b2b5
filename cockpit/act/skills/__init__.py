"""Skills as actions. See ``docs/reference/skills.md``, proposed skills."""
