"""Ask the user, in an open cockpit, for what an agent in their own terminal asks permission for.

The agent's own dialog stays usable meanwhile, and the first answer counts. This process only waits at a
socket: when the agent ends it, the cockpit sees the socket close and withdraws the question; when the
cockpit is gone, there is no answer and the agent asks as it always would. See
``docs/reference/hooks.md``, approving.
"""

from __future__ import annotations

import json
import os
import time

from cockpit.core.open_cockpits import connect, list_sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from cockpit.core.find_checkout import Checkout
    from cockpit.hook.event_payload import Event

LONGEST_WAIT_S = 870.0
"""Seconds that a call waits at most; the cockpit's setting is shorter, the agent's own limit is 900."""
_LARGEST = 16_000_000
"""Bytes of a request; for a larger one the agent asks by itself."""
_REPORTED = frozenset(
    ("PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit", "SessionEnd")
)
"""Events after which an open question was answered in the agent's own terminal."""
_HEADLESS = ("sdk", "mcp", "local-agent")
"""How Claude Code's entry point begins where no dialog of its own is on a screen."""


def ask_user(event: Event, place: Checkout, root: str) -> dict[str, Any] | None:
    """Wait for the user's answer to a permission request; None for no answer."""
    if event.name == "PreToolUse" and not _asks_before_use(event):
        return None
    until = time.monotonic() + LONGEST_WAIT_S
    request: bytes | None = None
    for path in list_sockets(place.state):
        connection = connect(path)
        if connection is None:
            continue
        with connection:
            if request is None:
                request = _request(event, root)
            if len(request) > _LARGEST:
                return None
            reply = _exchange(connection, request, until)
        if reply is not None:
            return _answer(event, reply)
    return None


def tell_progress(event: Event, place: Checkout) -> None:
    """Tell every open cockpit that the agent went on, which answers what it asked for."""
    if event.name not in _REPORTED:
        return
    for path in list_sockets(place.state):
        connection = connect(path)
        if connection is not None:
            with connection:
                try:
                    connection.sendall(_request(event, place.root, reports=True))
                except OSError:
                    continue  # it ended just now


def _asks_before_use(event: Event) -> bool:
    """Whether this call before a tool's use is the only one that can wait for the user.

    Claude Code without a screen of its own does not fire ``PermissionRequest`` in every version.
    """
    entry = os.environ.get("CLAUDE_CODE_ENTRYPOINT", "")
    asking = event.payload.get("permission_mode") in (None, "default", "plan")
    return event.agent == "claude" and entry.startswith(_HEADLESS) and asking


def _request(event: Event, root: str, *, reports: bool = False) -> bytes:
    payload = event.payload
    record = {
        "event": event.name,
        "reports": reports,
        "agent": event.agent,
        "session": event.session,
        "tool": event.tool,
        "input": event.arguments,
        "cwd": event.cwd,
        "root": root,
        "prompt_id": payload.get("prompt_id"),
        "permission_mode": payload.get("permission_mode"),
        "process": os.getppid(),
    }
    return json.dumps(record).encode("ascii") + b"\n"


def _exchange(connection: socket.socket, request: bytes, until: float) -> dict[str, Any] | None:
    """Send the request and wait for one line; None when the cockpit ends first, or the time is up."""
    try:
        connection.settimeout(5.0)
        connection.sendall(request)
        pieces: list[bytes] = []
        while not pieces or b"\n" not in pieces[-1]:
            left = until - time.monotonic()
            if left <= 0:
                return None
            connection.settimeout(left)
            piece = connection.recv(65_536)
            if not piece:
                return None
            pieces.append(piece)
        reply = json.loads(b"".join(pieces))
    except (OSError, ValueError):
        return None
    return reply if isinstance(reply, dict) and isinstance(reply.get("allow"), bool) else None


def _answer(event: Event, reply: dict[str, Any]) -> dict[str, Any] | None:
    """Return the user's answer in the form that the agents read; None where there is none."""
    if reply.get("none"):
        return None
    allow, words, changed = reply["allow"], str(reply.get("words", "")), reply.get("input")
    detail: dict[str, Any]
    if event.name == "PreToolUse":
        detail = {"permissionDecision": "allow" if allow else "deny"}
        detail["permissionDecisionReason"] = words
        if allow and isinstance(changed, dict):
            detail["updatedInput"] = changed
    elif allow:
        decision: dict[str, Any] = {"behavior": "allow"}
        if isinstance(changed, dict):
            decision["updatedInput"] = changed
        detail = {"decision": decision}
    else:
        detail = {"decision": {"behavior": "deny", "message": words}}
    return {"hookSpecificOutput": {"hookEventName": event.name, **detail}}
