"""Details of skills: loaded into a session, unloaded, and asked for by the user."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class SkillLoaded(Detail, frozen=True, kw_only=True):
    """A skill entered the session's context."""

    name: str
    """The skill's name."""
    layer: str
    """``built-in``, ``user`` or ``project``."""
    how: str
    """``mention``, ``match``, ``type``, ``user``, or ``changed`` for a newer text of a loaded skill."""
    why: str
    """The reason in words."""
    ordinal: int
    """The wave from which on it is in the packet."""
    tokens: int
    """Tokens of the part that is in the packet."""
    digest: str
    """The sha256 of its ``SKILL.md``."""


class SkillNamed(Detail, frozen=True, kw_only=True):
    """A skill may fit and is not loaded: the user is told, the agent is not."""

    name: str
    """The skill's name."""
    layer: str
    """``built-in``, ``user`` or ``project``."""
    why: str
    """The reason in words."""
    ordinal: int
    """The wave whose words it may fit."""


class SkillUnloaded(Detail, frozen=True, kw_only=True):
    """A skill left the session's context."""

    name: str
    """The skill's name."""
    how: str
    """``user``, ``mention``, ``drift``, ``unused``, ``room`` or ``gone``."""
    why: str
    """The reason in words."""
    ordinal: int
    """The wave from which on it is out of the packet."""


class SkillWanted(Detail, frozen=True, kw_only=True):
    """The user loads or unloads a skill; the session's next wave does it."""

    name: str
    """The skill's name."""
    load: bool
    """Whether it is to be loaded."""
    why: str = ""
    """The reason in words, where it is another than a key."""
