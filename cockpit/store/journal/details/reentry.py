"""Details of actions that were kept because they lacked context: the session went back to Orient for it."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class ActionKept(Detail, frozen=True, kw_only=True):
    """An action did not run and is kept, and the session asks for the missing context; or one that was kept
    is proposed again, or given up."""

    action_id: str
    """The action, which does not run any more; the one that takes its place has an id of its own."""
    status: str
    """``held``; ``resumed``, as it was or changed; or ``released``: given up."""
    type: str = ""
    """The action's type."""
    title: str = ""
    """The action in a few words."""
    by: str = ""
    """The action that takes the place of one that is resumed."""
    how: str = ""
    """``same`` or ``revised``, of one that is resumed."""
    call: str = ""
    """The place of the call that planned it, such as ``3.1``."""
    cause: str = ""
    """``unseen_file``, ``text_differs``, ``changed``, ``missing_input``, ``discussed`` or ``stopped``."""
    why: str = ""
    """Why the context is not enough, or why it was given up, in words."""
    items: tuple[str, ...] = ()
    """The scope items that cockpit asks to read for it."""
    times: int = 0
    """How often it went back so far, this time included."""
    root: str = ""
    """The first action of its line."""
    proposal_id: str = ""
    """Its last proposal; empty where it was not proposed."""
