"""Skills: folders with a ``SKILL.md``, in the public Agent Skills layout.

See ``docs/reference/skills.md``.
"""
