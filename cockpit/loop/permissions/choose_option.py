"""Which of an agent's own options carries an answer back. See ``docs/reference/agents.md``."""

from __future__ import annotations

from cockpit.loop.permissions.tool_request import PermissionOption


def choose_option(
    options: tuple[PermissionOption, ...], *, allowed: bool
) -> PermissionOption | None:
    """Return the narrowest option for the answer: the one that counts once; None if there is none.

    An option of kind ``allow_always`` is never chosen: what cockpit allows from now on is its user's rule.
    """
    wanted = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return option
    return None
