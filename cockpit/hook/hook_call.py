"""A hook call: read the event, store it, answer, and end.

An agent waits for this process, so it does only what cannot wait: the event goes into
``hook_pending``, and a separate process (:mod:`cockpit.hook.ingest`) turns it into work in progress a
moment later. Whatever fails, the exit code is 0 and the log gets one line: cockpit must never stop an
agent. Imports are chosen by their cost (``bench/hook.py``). See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import json
import os
import sys
import time

from cockpit.hook import event_payload, hook_log
from cockpit.hook.event_payload import Event, Malformed
from cockpit.hook.project_lookup import find_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from cockpit.core.find_checkout import Checkout
    from cockpit.hook.permission_policy import PermissionDecision
    from cockpit.store.hooks.pending_events import HookEvent

TASK = "COCKPIT_TASK"
"""The variable in which cockpit names the task of an agent that it runs itself."""
WIP = "COCKPIT_WIP"
"""``off`` where such an agent only looks: what it does is not work in progress."""
SESSION = "COCKPIT_SESSION"
"""The variable in which cockpit names its own session of such an agent."""
_OURS = (TASK, WIP, "COCKPIT_TOKEN", SESSION)
"""Variables of an agent that cockpit started."""
_PLACED = frozenset(("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"))
"""Events that say where the agent runs."""
BUSY_MS = 250
"""How long a call waits for another process that holds the store."""


def serve(words: list[str]) -> NoReturn:
    """Answer the event on standard input and end this process, always with 0."""
    answer_call(words)
    # Nothing is left to close in order: what is committed is on disk, and the operating system lets go
    # of the rest sooner than the interpreter would.
    os._exit(0)


def answer_call(words: list[str]) -> None:
    """Answer the event on standard input; whatever fails is a line in the log."""
    place: Checkout | None = None
    try:
        raw = sys.stdin.buffer.read()
        agent = _named(words)
        try:
            event = event_payload.read_payload(raw, agent)
        except Malformed as error:
            place = find_checkout(event_payload.session_folder(None))
            if place is not None:
                hook_log.append_line(place.state, f"{agent or 'agent'}: ignored {error}")
        else:
            place = find_checkout(event_payload.session_folder(event))
            if place is not None:
                _print(
                    answer(
                        event,
                        place,
                        approve="--approve" in words,
                        guard="--guard" in words,
                        policy=_value(words, "--policy"),
                        config=_value(words, "--config"),
                    )
                )
    except BaseException as error:
        if place is not None:
            hook_log.append_line(place.state, f"a call failed: {type(error).__name__}: {error}")


def answer(
    event: Event,
    place: Checkout,
    *,
    approve: bool = False,
    guard: bool = False,
    policy: str = "",
    config: str = "",
) -> dict[str, Any] | None:
    """Store the event and return the answer for the agent; None for no answer.

    ``approve``: what nothing else answers waits for the user, where a cockpit is open. ``guard``: a read of
    what the agent has in its context is refused. ``policy`` and ``config`` are as for
    :func:`cockpit.hook.permission_policy.read_policy`.
    """
    reply: dict[str, Any] | None = None
    body = event.body()
    if event.name not in event_payload.KNOWN:
        hook_log.append_line(
            place.state, f"{event.agent}: {event.name[:60]!r} is not a known event"
        )
    elif event.name in ("PreToolUse", "PermissionRequest"):
        from cockpit.hook.permission_policy import decide_permission

        decision = decide_permission(event, place, policy=policy, config=config)
        if decision is not None:
            reply, body = decision.reply(event.name), decision.body(event)
    if guard and reply is None and (refused := _guard(event, place)) is not None:
        reply, body = refused.reply("PreToolUse"), refused.body(event)
    if body is not None:
        body["root"] = _root(event, place)
        keep(event, body, place)
    if event.name == "SessionStart":
        from cockpit.hook.resume_context import resume

        reply = resume(event, place)
    if approve and reply is None and not _is_ours():
        from cockpit.hook import ask_open_cockpit

        if event.name in ("PreToolUse", "PermissionRequest"):
            return ask_open_cockpit.ask_user(event, place, _root(event, place))
        ask_open_cockpit.tell_progress(event, place)
    return reply


def _guard(event: Event, place: Checkout) -> PermissionDecision | None:
    """Ask the guard against redundant reads; whatever fails, the agent reads."""
    try:
        from cockpit.hook.guard.redundant_reads import guard_event

        return guard_event(event, place.state, os.path.realpath(_root(event, place)))
    except Exception as error:
        line = f"{event.agent} {event.name}: the guard failed: {type(error).__name__}: {error}"
        hook_log.append_line(place.state, line)
        return None


def _is_ours() -> bool:
    """Whether cockpit started the agent, so that it asks cockpit by another way."""
    return any(name in os.environ for name in _OURS)


def keep(event: Event, body: dict[str, Any], place: Checkout) -> None:
    """Write the event to the store; to a file while another process has locked the store."""
    if _is_ours():
        # cockpit started it, has a session for it, and handles its end.
        body["inside"] = os.environ.get(SESSION) or True
    elif event.name in _PLACED:
        from cockpit.hook.terminal_place import describe_terminal

        body["place"] = describe_terminal(event)
    task_id = os.environ.get(TASK, "")
    if task_id.startswith("T-") and task_id[2:].isdecimal() and len(task_id) < 20:
        body["task"] = task_id
        if os.environ.get(WIP) == "off":
            # Who only looks at a task does nothing of its work.
            body.pop("arguments", None)
    record = _as_hook_event(event, body)
    try:
        wake = _store(event, body, record, place)
    except Exception as error:
        from cockpit.hook import spool

        spooled = spool.write_event(place.state, record)
        fate = "written to a file" if spooled else "LOST: too many files are waiting"
        hook_log.append_line(place.state, f"{event.agent} {event.name}: {error}; {fate}")
        return
    if wake:
        from cockpit.hook.ingest_worker import start_ingest_worker

        start_ingest_worker(place.state)


def _store(event: Event, body: dict[str, Any], record: HookEvent, place: Checkout) -> bool:
    from cockpit.hook.task_attribution import read_task_change
    from cockpit.store.hooks import pending_events

    works_on, leaves = read_task_change(event.name, body)
    connection = pending_events.connect(place.database, BUSY_MS)
    return pending_events.receive(
        connection, record, now_ms=time.time_ns() // 1_000_000, works_on=works_on, leaves=leaves
    )


def _as_hook_event(event: Event, body: dict[str, Any]) -> HookEvent:
    from cockpit.core.quick_secret_check import lacks_secret_signs
    from cockpit.store.hooks.pending_events import HookEvent

    written = json.dumps(body)
    # An escape stands for a letter that the signs of a secret may be written with.
    if "\\u" in written or not lacks_secret_signs(written):
        from cockpit.core.secrets import mask_value

        written = json.dumps(mask_value(body))
    moment = time.time_ns()
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment // 1_000_000_000))
    return HookEvent(
        f"{moment:020d}-{os.getpid()}",
        f"{seconds}.{moment % 1_000_000_000 // 1000:06d}Z",
        event.agent,
        event.session[:200],
        event.name,
        written,
        urgent=event.urgent(body),
    )


def _root(event: Event, place: Checkout) -> str:
    """Return the worktree that the agent works in, which may differ from the one its session began in."""
    if event.cwd and event.cwd != place.root:
        checkout = find_checkout(event.cwd)
        if checkout is not None and checkout.state == place.state:
            return checkout.root
    return place.root


def _value(words: list[str], option: str) -> str:
    """Return the word behind an option; '' without it."""
    at = words.index(option) + 1 if option in words else len(words)
    return words[at] if at < len(words) else ""


def _named(words: list[str]) -> str:
    """Return the agent that ``--agent NAME`` or ``--agent=NAME`` names; '' without one."""
    if words and words[0].startswith("--agent="):
        return words[0].partition("=")[2]
    return words[1] if len(words) > 1 and words[0] == "--agent" else ""


def _print(reply: dict[str, Any] | None) -> None:
    if reply is None:
        return
    unwritten = json.dumps(reply).encode("ascii") + b"\n"
    while unwritten:
        unwritten = unwritten[os.write(1, unwritten) :]
