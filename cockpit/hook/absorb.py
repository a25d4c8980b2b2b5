"""Make work in progress and journal rows of what hooks have told.

Everything pending is taken in one transaction, in the order in which it happened: what an agent does
in one second is one patch of its task, not twenty. Source: seed 004, solution 2 ("Automatic Capture
via Hooks").
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cockpit.hook import logbook, spool
from cockpit.hook.taking import taken_up
from cockpit.learn.capture import ToolUse, captured
from cockpit.store import hook_pending, wip
from cockpit.store.actions import Action
from cockpit.store.database import Store, Tx
from cockpit.store.hook_pending import Told

AT_ONCE = 200
"""Events of one transaction."""
_LARGEST_SCRIPT = 200_000


def absorb_all(store: Store, state: Path) -> int:
    """Absorb whatever waits, in the store and in files beside it; returns how many events it was.

    An event that cannot be absorbed is passed over and noted in the log; it is tried again, and after
    a few times left where it is.
    """
    done = 0
    while True:
        paths = spool.files(str(state))[:AT_ONCE]
        count, trouble = store.write_now(partial(_absorb, paths=paths))
        # Only now are the events in the store for good.
        spool.remove(paths)
        for words in trouble:
            logbook.note(str(state), words)
        done += count
        if not count and not trouble and not paths:
            return done


def _absorb(tx: Tx, *, paths: list[str]) -> tuple[int, list[str]]:
    for told in spool.taken(paths):
        hook_pending.insert(tx.connection, told, None)
    pending = hook_pending.oldest(tx.connection, AT_ONCE)
    patches: dict[str, dict[str, Any]] = {}
    trouble: list[str] = []
    done: list[str] = []
    for told in pending:
        tx.execute("SAVEPOINT told")
        try:
            _one(tx, told, patches)
        except Exception as error:
            tx.execute("ROLLBACK TO told")
            hook_pending.failed(tx.connection, told.key)
            trouble.append(f"{told.agent} {told.event}: not absorbed: {error!r}")
        else:
            done.append(told.key)
        tx.execute("RELEASE told")
    for task_id, patch in patches.items():
        wip.update(tx, task_id, patch, by="agent")
    hook_pending.absorbed(tx.connection, done)
    return len(done), trouble


def _one(tx: Tx, told: Told, patches: dict[str, dict[str, Any]]) -> None:
    body = json.loads(told.body)
    if told.task_id is None:
        works_on, leaves = taken_up(told.event, body)
        if works_on is not None:
            hook_pending.take_up(tx.connection, told.session, works_on, told.at)
        told.task_id = hook_pending.active(tx.connection, told.session)
        if leaves is not None:
            hook_pending.put_down(tx.connection, told.session, leaves)
    if told.task_id is not None and "arguments" in body:
        patch = captured(_tool_use(body), _reading(body.get("root", "")))
        if patch:
            known = patches.get(told.task_id)
            patches[told.task_id] = wip.merge(known, wip.validate(patch))
    _journal(tx, told, body)


def _tool_use(body: Mapping[str, Any]) -> ToolUse:
    return ToolUse(
        tool=body["tool"],
        arguments=body["arguments"],
        output=body["output"],
        exit_code=body["exit_code"],
        cwd=body["cwd"] or body["root"],
        root=body["root"],
        failed=body["failed"],
    )


def _reading(root: str) -> Any:
    """Reads the scripts of the project that a command ran, and nothing outside it."""
    top = os.path.realpath(root)

    def read(path: str) -> str | None:
        real = os.path.realpath(os.path.join(top, path))
        if not root or not real.startswith(top + os.sep) or not os.path.isfile(real):
            return None
        try:
            if os.path.getsize(real) > _LARGEST_SCRIPT:
                return None
            with open(real, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    return read


def _journal(tx: Tx, told: Told, body: Mapping[str, Any]) -> None:
    about: dict[str, Any] = {"agent_session": told.session, "agent": told.agent}
    about |= {"task_id": told.task_id or "", "at": told.at}
    if told.event in ("SessionStart", "SessionEnd"):
        started = told.event == "SessionStart"
        action = Action.AGENT_SESSION_STARTED if started else Action.AGENT_SESSION_ENDED
        tx.journal(action, actor="agent", detail={**about, "reason": body.get("reason", "")})
        return
    about |= {"event": told.event, "tool": body.get("tool", "")}
    answered = {name: body[name] for name in ("answer", "by", "about") if name in body}
    actor = body.get("by", "agent") if answered else "agent"
    tx.journal(Action.AGENT_HOOK, actor=actor, detail={**about, **answered})
