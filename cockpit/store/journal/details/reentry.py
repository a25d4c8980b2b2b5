"""Details of actions that were kept because they lacked context: the session went back to Orient for it."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class ActionHeld(Detail, frozen=True, kw_only=True):
    """An action did not run and is kept; the session asks for the missing context."""

    action_id: str
    """The action, which does not run any more; the one that takes its place has an id of its own."""
    type: str
    """The action's type."""
    title: str
    """The action in a few words."""
    call: str
    """The place of the call that planned it, such as ``3.1``."""
    cause: str
    """``unseen_file``, ``text_differs``, ``changed``, ``missing_input``, ``discussed`` or ``stopped``."""
    why: str
    """Why the context is not enough, in words."""
    items: tuple[str, ...]
    """The scope items that cockpit asks to read for it."""
    times: int
    """How often it went back so far, this time included."""
    root: str
    """The first action of its line."""
    proposal_id: str
    """Its last proposal; empty where it was not proposed."""


class ActionResumed(Detail, frozen=True, kw_only=True):
    """An action that was kept is proposed again, as it was or changed."""

    action_id: str
    """The action that was kept."""
    by: str
    """The action that takes its place."""
    how: str
    """``same`` or ``revised``."""


class ActionReleased(Detail, frozen=True, kw_only=True):
    """An action that was kept is given up."""

    action_id: str
    """The action."""
    title: str
    """The action in a few words."""
    reason: str
    """Why, in words."""
