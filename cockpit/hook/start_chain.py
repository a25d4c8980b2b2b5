"""Start a chain when an agent's session has ended, where the user's own configuration asks for it.

A separate process decides in the store whether a chain follows
(:mod:`cockpit.chains.start_after_agent`). See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cockpit.core.clock import parse_time
from cockpit.core.errors import CockpitError
from cockpit.hook import hook_log
from cockpit.store.hooks.pending_events import HookEvent

LOG = "after-session.log"
"""In the folder of the chains' logs: the words of what was begun."""
_NO_END = ("clear", "resume")
"""Reasons with which the agent's program goes on: a new conversation, or another one."""
_NEWS = timedelta(minutes=5)
_OF_A_RUN = frozenset(("COCKPIT_APPROVE", "COCKPIT_TASK", "COCKPIT_TOKEN", "COCKPIT_WIP"))
_HOW = {"continue": "--continue", "all": "--all"}


def ends_session(event: HookEvent, body: Mapping[str, Any], now: datetime) -> bool:
    """Whether the event ends a session that cockpit did not start itself, and is not old."""
    return (
        event.event == "SessionEnd"
        and body.get("reason") not in _NO_END
        and not body.get("inside")
        and "task" not in body
        and now - parse_time(event.at) < _NEWS
    )


def start_following_chain(state: Path, seq: int, root: str) -> None:
    """Start the chain that follows a session.

    ``seq`` is the journal row of the session's end, ``root`` the folder that it worked in. A failure is a
    line in the hook log.
    """
    try:
        _begin(state, seq, root)
    except (CockpitError, OSError) as error:
        hook_log.append_line(str(state), f"no chain follows the session: {error}")


def _begin(state: Path, seq: int, worked_in: str) -> None:
    from cockpit.config.load_settings import load_settings
    from cockpit.core.project_paths import OWN_FOLDER, read_project_record, user_folder

    record = read_project_record(state)
    if record is None:
        hook_log.append_line(str(state), "no chain follows the session: project.json is unreadable")
        return
    home = record.home
    root = Path(worked_in) if worked_in else home
    # It may be that of an agent which cockpit runs, whose approvals and token end with its run.
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_RUN}
    wish = load_settings(home / OWN_FOLDER, env=environment).headless.on_session_end
    if wish == "off" or root.is_relative_to(state):
        return
    # The environment is an agent's, and that may be set by the repository it works in.
    if user_folder(environment).resolve().is_relative_to(home.resolve()):
        hook_log.append_line(
            str(state), "no chain follows the session: COCKPIT_CONFIG_DIR lies in the project"
        )
        return
    path = state / "chains" / LOG
    path.parent.mkdir(mode=0o700, exist_ok=True)
    words = ("work", _HOW[wish], "--headless", "--after", str(seq))
    with path.open("ab") as log:
        subprocess.Popen(
            # -P: the folder of the agent's project must never be where modules come from.
            (sys.executable, "-P", "-m", "cockpit", *words),
            cwd=root if root.is_dir() else home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
