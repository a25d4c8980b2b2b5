"""Details of skills: loaded into a session, unloaded, and asked for by the user."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class SkillChanged(Detail, frozen=True, kw_only=True):
    """A skill entered or left a session's context, may fit it, or is to enter or leave it.

    Of one that may fit the user is told, and the agent is not.
    """

    name: str
    """The skill's name."""
    status: str
    """``loaded``, ``unloaded``, ``named`` (it may fit and is not loaded), or ``wanted`` and ``unwanted`` by
    the user, which the session's next wave carries out."""
    why: str
    """The reason in words; empty where the user's key is the reason."""
    ordinal: int = 0
    """The wave from which on that is so; 0 for a wish."""
    how: str = ""
    """``mention``, ``match``, ``type``, ``user``, or ``changed`` for a newer text of a loaded skill; of one
    that left ``user``, ``mention``, ``drift``, ``unused``, ``room`` or ``gone``."""
    layer: str = ""
    """``built-in``, ``user`` or ``project``."""
    tokens: int = 0
    """Tokens of the part of a loaded one that is in the packet."""
    digest: str = ""
    """The sha256 of a loaded one's ``SKILL.md``."""
