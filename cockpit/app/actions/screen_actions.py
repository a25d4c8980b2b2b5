"""The actions of one screen: their bindings, whether they are valid now, and how they run.

Palette and menu of keys work over every :class:`ActionScreen`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from textual.binding import Binding, BindingsMap
from textual.screen import Screen

from cockpit.app.actions.action import AnyAction
from cockpit.app.actions.context import ActionContext


def bindings(actions: Sequence[AnyAction]) -> list[Binding]:
    """Return Textual's bindings: chords that work wherever the focus is, and the letters of single panes.

    Their actions are ``do`` and ``pane_do`` of the screen. The screen asks :meth:`Action.when` whether
    they are valid; the key of an invalid action goes on to the focused widget.
    """
    bound = [action for action in actions if action.is_bound]
    chords = [
        Binding(key, f"do('{action.id}')", action.label, show=False, priority=True)
        for action in bound
        for key in action.keys
    ]
    letters = [
        Binding(key, f"pane_do('{action.id}')", action.label, show=False)
        for action in bound
        for key in action.pane_keys
    ]
    return [*chords, *letters]


def _is_in_pane(action: AnyAction, context: ActionContext) -> bool:
    """Return True where the letters of an action work."""
    places = ("tasks", "work") if action.pane == "tasks" else (action.pane,)
    return bool(action.pane) and context.pane in places


class ScreenActions:
    """The actions of one screen, by id: whether they are valid, and how to run them."""

    def __init__(self, actions: Iterable[AnyAction]) -> None:
        self.actions = tuple(actions)
        self._by_id = {action.id: action for action in self.actions}

    def get(self, action_id: object) -> AnyAction:
        """Return the action with an id."""
        return self._by_id[str(action_id)]

    def run(self, action_id: str, host: Any) -> None:
        """Run the function of an action; one without a function is handled by a widget."""
        if (function := self._by_id[action_id].run) is not None:
            function(host)

    def pressable(self, context: ActionContext) -> Iterator[tuple[str, AnyAction]]:
        """Yield the keys that work in the focused pane now, each with its action: one key for each action."""
        taken: set[str] = set()
        for action in sorted(self.actions, key=lambda each: not _is_in_pane(each, context)):
            in_pane = _is_in_pane(action, context)
            keys = [*(action.pane_keys if in_pane else ()), *action.keys]
            # A key of a widget means something only where that widget has the focus.
            is_here = (
                in_pane or action.is_bound or (not action.pane and action.footer_when(context))
            )
            if keys and is_here and keys[0] not in taken and action.when(context):
                taken.add(keys[0])
                yield keys[0], action

    def valid(self, context: ActionContext) -> Iterable[AnyAction]:
        """Yield the actions that the palette lists now."""
        return (action for action in self.actions if action.palette and action.when(context))


class ActionScreen(Screen[None]):
    """A screen whose keys run actions of the registry: functions over the application, its ``host``."""

    host: Any
    actions: ScreenActions

    def take_actions(self, host: Any, actions: Iterable[AnyAction]) -> None:
        """Have these actions, and bind their keys."""
        self.host, self.actions = host, ScreenActions(actions)
        own = BindingsMap(bindings(self.actions.actions))
        self._bindings = BindingsMap.merge([self._bindings, own])

    @property
    def context(self) -> ActionContext:
        """The state on which the validity of actions depends, now."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for an action that is not valid now: its key goes on to the focused widget."""
        if action in ("do", "pane_do"):
            return self.actions.get(parameters[0]).when(self.context)
        return True

    def valid_actions(self) -> Iterable[AnyAction]:
        """Return the actions that the palette lists now."""
        return self.actions.valid(self.context)

    def pressable(self) -> Iterable[tuple[str, AnyAction]]:
        """Return the keys that work now, each with its action."""
        return self.actions.pressable(self.context)

    def on_key_bar_more(self) -> None:
        """Show all keys: the footer has no room for them."""
        self.act("keys")

    def act(self, action_id: str) -> None:
        """Run an action of the registry."""
        self.actions.run(action_id, self.host)

    def action_do(self, action_id: str) -> None:
        """Run the action of a key."""
        self.act(action_id)

    action_pane_do = action_do
