"""The list of all actions: bindings, footer, palette, help, ``[keys]`` and the reference page read it.

Specified in ``docs/reference/keys.md``, which ``docs/generate.py`` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from cockpit.app.actions.action import Action, key_name
from cockpit.app.actions.backlog_actions import BACKLOG_ACTIONS
from cockpit.app.actions.block_actions import BLOCK_ACTIONS
from cockpit.app.actions.branch_actions import BRANCH_ACTIONS
from cockpit.app.actions.chain_actions import CHAIN_ACTIONS
from cockpit.app.actions.decision_actions import DECISION_ACTIONS
from cockpit.app.actions.hunk_actions import HUNK_ACTIONS
from cockpit.app.actions.list_actions import LIST_ACTIONS
from cockpit.app.actions.packet_actions import PACKET_ACTIONS
from cockpit.app.actions.rewind_actions import REWIND_ACTIONS
from cockpit.app.actions.session_actions import SESSION_ACTIONS
from cockpit.app.actions.task_actions import TASK_ACTIONS
from cockpit.app.actions.view_actions import PROGRAM_ACTIONS, VIEW_ACTIONS
from cockpit.app.host import Host

Keys = Mapping[str, str | Sequence[str]]
"""The user's ``[keys]``: ids of actions and the key or keys of each."""

ACTIONS: tuple[Action[Host], ...] = (
    *DECISION_ACTIONS,
    *HUNK_ACTIONS,
    *SESSION_ACTIONS,
    *REWIND_ACTIONS,
    *PACKET_ACTIONS,
    *VIEW_ACTIONS,
    *BLOCK_ACTIONS,
    *LIST_ACTIONS,
    *CHAIN_ACTIONS,
    *BRANCH_ACTIONS,
    *TASK_ACTIONS,
    *BACKLOG_ACTIONS,
    *PROGRAM_ACTIONS,
)

FIXED = frozenset(action.id for action in ACTIONS if not action.is_bound)
"""Actions whose keys belong to a widget and cannot change, Enter and Escape of decisions among them."""


def remap(keys: Keys) -> tuple[tuple[Action[Host], ...], list[str]]:
    """Return the actions under the user's ``[keys]``, and the errors in them as text.

    ``keys`` maps ids of actions to one key or several. A key that is given to an action is taken away
    from any other.
    """
    errors: list[str] = []
    new_keys: dict[str, tuple[str, ...]] = {}
    known_ids = {action.id for action in ACTIONS}
    owners = {key: action.id for action in ACTIONS if not action.is_bound for key in action.keys}
    for action_id, value in keys.items():
        if action_id not in known_ids:
            errors.append(f"[keys] {action_id}: no such action. F1 lists all actions.")
            continue
        if action_id in FIXED:
            errors.append(f"[keys] {action_id}: this key cannot be changed.")
            continue
        parsed = tuple(_parse_keys(value))
        errors += [
            f"[keys] {action_id}: {key_name(key)} already does {owners[key]}."
            for key in parsed
            if key in owners
        ]
        new_keys[action_id] = tuple(key for key in parsed if key not in owners)
        owners |= dict.fromkeys(new_keys[action_id], action_id)
    return tuple(_with_keys(action, new_keys) for action in ACTIONS), errors


def _with_keys(action: Action[Host], new_keys: Mapping[str, tuple[str, ...]]) -> Action[Host]:
    if action.id in new_keys:
        return replace(action, keys=new_keys[action.id])
    if not action.is_bound:
        return action
    taken = {key for keys in new_keys.values() for key in keys}
    return replace(action, keys=tuple(key for key in action.keys if key not in taken))


def _parse_keys(value: str | Sequence[str]) -> Iterable[str]:
    keys = value.split(",") if isinstance(value, str) else value
    return (key.strip().lower() for key in keys if key.strip())
