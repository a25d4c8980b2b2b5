"""The variables that cockpit reads, those of settings included. See ``docs/reference/configuration.md``."""

from __future__ import annotations

from cockpit.config.all_settings import KEYS

OTHER_VARIABLES = {
    "COCKPIT_CONFIG_DIR": "Folder of your configuration, instead of the platform's folder",
    "COCKPIT_STATE_DIR": "Folder of the state of all projects, instead of the platform's folder",
    "COCKPIT_DEBUG": "`1` prints the traceback of every error",
    "COCKPIT_TOKEN": "Capability token: commands act as its principal, with its scopes",
    "COCKPIT_TASK": "Set by cockpit for an external agent that it runs: the task of its hook events",
    "COCKPIT_WIP": "Set by cockpit for an external agent that it runs: `on` or `off` for records of its work",
    "COCKPIT_API_KEY": "Key of an openai-compatible server",
    "COCKPIT_GITHUB_WEBHOOK_SECRET": "Secret that GitHub signs its webhooks with",
}
"""The variables of cockpit that are not settings, with their meaning."""

ENVIRONMENT = frozenset([key.env for key in KEYS if key.env] + list(OTHER_VARIABLES))
"""Every variable that cockpit reads itself, without the keys and addresses of model providers."""
