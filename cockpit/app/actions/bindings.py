"""The registry of actions as Textual's bindings."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from cockpit.app.actions.action import Action


def bindings(actions: Sequence[Action]) -> list[Binding]:
    """Chords that work wherever the focus is, and the letters of single panes.

    Their actions are ``do`` and ``pane_do`` of the screen, which asks the registry whether they are
    valid; a key whose action is not goes on to the widget that has the focus.
    """
    bound = [action for action in actions if action.bound]
    chords = [
        Binding(key, f"do('{each.id}')", each.label, show=False, priority=True)
        for each in bound
        for key in each.keys
    ]
    letters = [
        Binding(key, f"pane_do('{each.id}')", each.label, show=False)
        for each in bound
        for key in each.pane_keys
    ]
    return [*chords, *letters]
