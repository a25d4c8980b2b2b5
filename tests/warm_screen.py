"""What a screen loads, for the warm server to load before it forks screens: a second of a processor each."""

from __future__ import annotations

import importlib
import pkgutil

LATE = (
    "cockpit.commands.sessions.open_screen",
    "cockpit.commands.sessions.screen",
    "cockpit.commands.sessions.switch_projects",
    "textual.drivers.linux_driver",
    "textual.widgets.markdown",
)
"""What a screen imports besides, once it runs."""


def load_screen() -> None:
    """Import the application, its widgets and their themes."""
    import themes
    import widgets
    from cockpit import app

    for package in (app, widgets, themes):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
