"""Read the approval policy without the other settings, whose loading takes longer than a hook call.

The layers are those of :mod:`cockpit.config.load_settings`: the user's file, and the project's file (which
can only tighten to ``ask``). The environment is an agent's, and a repository's settings of that agent can set
it: it tightens, and does not loosen. An unreadable value is ``ask``.
"""

from __future__ import annotations

import os
import sys

POLICIES = ("ask", "trusted", "reads", "all")
_LARGEST = 1_000_000


def read_policy(home: str, policy: str = "", config: str = "") -> str:
    """Return the policy of the project whose main checkout is ``home``.

    ``policy`` is that of the run that cockpit started the agent for. ``config`` is the folder of the user's
    settings as it was when the hook was installed; without it, it is the usual one of the user's account.
    """
    if policy:
        return policy if policy in POLICIES else "ask"
    if os.environ.get("COCKPIT_APPROVE", "").strip() not in ("", *POLICIES[1:]):
        return "ask"
    project = _of(os.path.join(home, ".cockpit", "config.toml"))
    if project:
        return "ask"  # all that a project may set, and what a wrong value comes to
    mine = _of(os.path.join(config or _usual_folder(), "config.toml"))
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


def _usual_folder() -> str:
    """Return where settings are without any variable: not even ``HOME`` is the user's own here."""
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.devnull
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "cockpit")
    return os.path.join(home, ".config", "cockpit")
