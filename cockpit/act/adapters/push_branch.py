"""Push the branch of a pull request, as its proposal showed it.

It never forces: where the remote's branch has other commits, it fails and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.access.run_program import run_git
from cockpit.act.adapters.adapter import Outcome, failed, tail
from cockpit.act.commit_hooks import PUSH_HOOKS, find_hooks
from cockpit.act.pinned_files import describe_change
from cockpit.act.plan_push import Push
from cockpit.act.workspace import Workspace
from cockpit.core.read_record import convert

_TIMEOUT_S = 300.0
_UNREACHABLE = ("could not resolve host", "connection refused", "unable to access", "timed out")


async def push_branch(payload: Mapping[str, Any], ground: Workspace) -> Outcome | None:
    """Push what the proposal showed; returns None when the remote has it, else the failure."""
    push = convert(payload, Push)
    now = await run_git("rev-parse", "--verify", f"refs/heads/{push.branch}", cwd=ground.root)
    if now.text.strip() != push.commit:
        return failed(
            "conflict",
            f"{push.branch} is no longer at {push.commit[:10]} as shown; nothing was pushed or opened.",
        )
    hooks = await find_hooks(ground.root, PUSH_HOOKS)
    if changed := describe_change(push.hooks, hooks.pins):
        return failed("conflict", f"Of its hooks, {changed}; nothing was pushed or opened.")
    done = await run_git(
        "push",
        "--porcelain",
        "--set-upstream",
        push.remote,
        f"refs/heads/{push.branch}:refs/heads/{push.branch}",
        cwd=ground.root,
        timeout_s=_TIMEOUT_S,
        hooks=bool(hooks.names),  # the proposal named them
        env={"GIT_PROTOCOL_FROM_USER": "1"},  # the user saw the remote and approved it
    )
    if done.ok:
        return None
    detail: dict[str, Any] = {"stdout": tail(done.stdout), "stderr": tail(done.stderr)}
    output = f"{done.text}\n{done.error_text}"
    if "non-fast-forward" in output or "fetch first" in output or "stale info" in output:
        return failed(
            "permanent",
            f"{push.remote} has commits on {push.branch} that are not here; nothing was pushed. Fetch and "
            f"merge them first.",
            **detail,
        )
    transient = done.timed_out or any(text in output.casefold() for text in _UNREACHABLE)
    lines = [line for line in done.error_text.splitlines() if line.strip()]
    reason = lines[-1][:300] if lines else f"exit {done.code}"
    return failed(
        "transient" if transient else "permanent",
        f"{push.branch} could not be pushed to {push.remote}: {reason}",
        **detail,
    )
