"""Who runs a command, the user at the terminal or the holder of a token, and what it may read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cockpit.access.principals import Caller
    from cockpit.store.db.database import Store
    from cockpit.store.db.transaction import Tx

_AUDIT, _WORK = "audit.read", "work.read"
_ORIENTATION, _APPROVE, _ADMIN = "orientation.read", "orientation.approve", "orientation.admin"

SCOPES_OF_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "journal": _AUDIT,
        "debug journal": _AUDIT,
        "debug events": _AUDIT,
        "debug outbox": _AUDIT,
        "tokens list": _AUDIT,
        "debug show": _ORIENTATION,
        "debug packet": _ORIENTATION,
        "packet": _ORIENTATION,
        "packet pin": _APPROVE,
        "profile list": _ORIENTATION,
        "profile propose --suggested": _ORIENTATION,
        "feedback list": _ORIENTATION,
        "proposals list": _ORIENTATION,
        "sessions": _ORIENTATION,
        "sessions fork": "work.write",
        "sessions rename": "work.write",
        "sessions rewind": "work.write",
        "replay": _ORIENTATION,
        "trust rules list": _ORIENTATION,
        "knowledge": _ORIENTATION,
        "knowledge --index": "work.write",
        "notes list": _WORK,
        "skills load": "work.write",
        "estimate": _WORK,
        "stats": _WORK,
        "chain": _WORK,
        "chain stop": "work.write",
        "chain take": "work.write",
        "chain drop": "work.write",
        "tasks export": _WORK,
        "tasks list": _WORK,
        "tasks queue": _WORK,
        "tasks wip": _WORK,
        "tasks handoff": _WORK,
        "guards list": _ORIENTATION,
        "tools list": _ORIENTATION,
        "prune": _ADMIN,
    }
)
"""The scope that the holder of a token needs for a command, for all commands of a group, or with
an option. Listing and
showing the rows of a collection is its ``list``.

Commands that are not here decide by themselves, in the transaction that writes.
"""


def find_caller(tx: Tx) -> Caller:
    """Return the principal that ``COCKPIT_TOKEN`` belongs to; without it, the user.

    The token is looked up in the transaction that acts on it, so a token that was revoked a moment
    before is refused. Raises ``TokenRefused``. Specified in ``docs/reference/security.md``.
    """
    from cockpit.access.capability_tokens import caller

    return caller(tx.connection, _secret(), tx.now())


def find_user(tx: Tx, activity: str) -> Caller:
    """Return the caller as :func:`find_caller` does, for what only the user does, or a service that may.

    Raises ``NotAllowed`` for the user below an agent or without a terminal.
    """
    from cockpit.access import user_presence

    who = find_caller(tx)
    user_presence.require_user(who, activity)
    return who


def require_user_of_all() -> None:
    """Refuse what concerns all projects to agents and to the holder of a token, which is of one project.

    Raises ``NotAllowed``.
    """
    from cockpit.access.token_scopes import NotAllowed
    from cockpit.access.user_presence import require_no_agent

    require_no_agent("a look at all projects")
    if _secret().strip():
        raise NotAllowed("A token is of one project. Unset COCKPIT_TOKEN to look at all of yours.")


def require_scope_of_command(store: Store) -> None:
    """Check that the token in ``COCKPIT_TOKEN`` allows the command that runs; without one all is allowed.

    Raises ``TokenRefused`` and ``NotAllowed``. Specified in ``docs/reference/security.md``.
    """
    secret, context = _secret(), click.get_current_context(silent=True)
    if not secret.strip() or context is None:
        return
    words = context.command_path.split()[1:]
    if isinstance(context.command, click.Group):
        words.append("list")  # without a verb a collection lists or shows
    command = " ".join(words)
    flags = (f"{command} --{name}" for name, given in context.params.items() if given is True)
    scope = next(
        (SCOPES_OF_COMMANDS[each] for each in flags if each in SCOPES_OF_COMMANDS),
        find_scope(command),
    )
    if scope is None:
        return
    from cockpit.access.capability_tokens import holder
    from cockpit.core.clock import format_time

    now = format_time(store.clock.now())
    caller = store.read_now(lambda connection: holder(connection, secret.strip(), now))
    caller.require(scope, f"run `cockpit {command}`")


def find_scope(command: str) -> str | None:
    """Return the scope of a command, of its group, or of the group of that; None without one."""
    words = command.split()
    prefixes = (" ".join(words[:count]) for count in range(len(words), 0, -1))
    return next((SCOPES_OF_COMMANDS[name] for name in prefixes if name in SCOPES_OF_COMMANDS), None)


def _secret() -> str:
    from cockpit.access.capability_tokens import TOKEN_VARIABLE

    return os.environ.get(TOKEN_VARIABLE, "")
