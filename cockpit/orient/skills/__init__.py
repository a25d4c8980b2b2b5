"""Which skills a task needs: ranking and choosing, pure. See ``docs/reference/skills.md``."""
