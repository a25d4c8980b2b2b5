"""Principals: the name that a caller acts under, and its scopes.

``main`` is the user, ``agent/SESSION`` the agent of a session; any other name is a service. A token
makes its holder the token's principal; a name in a payload counts for nothing.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from cockpit.access.token_scopes import AGENT_SCOPES, SCOPES, NotAllowed
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    # Who only asks who is there, as a hook does, need not load the store.
    from cockpit.store.db.transaction import Tx

MAIN = "main"
AGENT = "agent/"
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]*(?:[./][a-z0-9][a-z0-9_-]*)*", re.ASCII)
_AT_A_TASK = re.compile(r"agent/t-[0-9]+/", re.ASCII)
_LONGEST = 100

Kind = Literal["person", "agent", "service"]


class NamespaceInvalid(CockpitError):
    """The name is not valid for a principal."""

    code = "usage"


class Caller(Struct, frozen=True):
    """The principal of a request, derived from its connection, never from its payload.

    ``cap_id`` is the id of the token that was used; empty for the user at the terminal and for the built-in
    agent.
    """

    namespace: str
    scopes: frozenset[str]
    cap_id: str = ""

    @property
    def kind(self) -> Kind:
        return kind_of(self.namespace)

    def require(self, scope: str, activity: str) -> None:
        """Raise :class:`NotAllowed` unless the caller has ``scope``; ``activity`` completes the message."""
        if scope not in self.scopes:
            granted = ", ".join(sorted(self.scopes)) or "nothing"
            raise NotAllowed(
                f"{self.namespace} may not {activity}: that needs the scope {scope}, and it has {granted}."
            )


PERSON = Caller(MAIN, frozenset(SCOPES))
"""The user at the terminal: anyone who may write the project's state folder."""


def agent(session_id: str) -> Caller:
    """Return the caller for the agent of a session."""
    return Caller(f"{AGENT}{session_id}", AGENT_SCOPES)


def journal_actor(caller: Caller) -> str:
    """Return the name that journal rows and decisions give ``caller``: ``person`` for the user."""
    return "person" if (caller.namespace, caller.cap_id) == (MAIN, "") else caller.namespace


def kind_of(namespace: str) -> Kind:
    """Return the kind of a principal."""
    if namespace == MAIN:
        return "person"
    return "agent" if namespace.startswith(AGENT) else "service"


def works_on_task(namespace: str) -> bool:
    """Whether it is an agent that cockpit runs for one task (``agent/t-42/SESSION``)."""
    return _AT_A_TASK.match(namespace) is not None


def check_namespace(name: str) -> str:
    """Return the name. Raises :class:`NamespaceInvalid` unless it is lower-case words joined by
    ``/`` or ``.``, at most 100 characters.
    """
    if len(name) > _LONGEST or _NAMESPACE.fullmatch(name) is None:
        raise NamespaceInvalid(
            f"{name[:_LONGEST]!r} is not a valid namespace: use lower-case letters, digits, - and _, in"
            f" words joined by / or ., at most {_LONGEST} characters. Examples: main, agent/s-1, ci."
        )
    return name


def ensure_principal(tx: Tx, namespace: str) -> None:
    """Store the principal of that name unless it is stored already."""
    tx.execute(
        "INSERT INTO principals(namespace, kind, created_at) VALUES (?,?,?)"
        " ON CONFLICT(namespace) DO NOTHING",
        (check_namespace(namespace), kind_of(namespace), tx.now()),
    )
