"""Read the approval policy without the other settings, whose loading takes longer than a hook call.

The layers are those of :mod:`cockpit.config.load_settings`: the user's file, the project's file (which
can only tighten to ``ask``), the environment. An unreadable value is ``ask``.
"""

from __future__ import annotations

import os

from cockpit.core.state_folder import config_root

POLICIES = ("ask", "trusted", "reads", "all")
_LARGEST = 1_000_000


def read_policy(home: str) -> str:
    """Return the policy of the project whose main checkout is ``home``."""
    named = os.environ.get("COCKPIT_APPROVE", "").strip()
    if named:
        return named if named in POLICIES else "ask"
    project = _of(os.path.join(home, ".cockpit", "config.toml"))
    if project:
        return "ask"  # all that a project may set, and what a wrong value comes to
    mine = _of(os.path.join(_user_folder(), "config.toml"))
    return mine if mine in POLICIES else "ask"


def _of(path: str) -> str:
    """Return the file's policy; '' without one, ``?`` when the file cannot be read."""
    if not os.path.isfile(path):
        return ""
    import tomllib  # few users and projects have the file, and each call of a hook would load it

    try:
        with open(path, "rb") as file:
            table = tomllib.loads(file.read(_LARGEST).decode("utf-8")).get("approval", {})
    except (OSError, ValueError):
        return "?"
    set_to = table.get("policy", "") if isinstance(table, dict) else "?"
    return set_to if isinstance(set_to, str) else "?"


def _user_folder() -> str:
    named = os.environ.get("COCKPIT_CONFIG_DIR", "").strip()
    if named:
        return os.path.expanduser(named)
    return config_root()
