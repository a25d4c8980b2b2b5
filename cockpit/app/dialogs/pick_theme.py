"""The list of themes: the screen shows the highlighted one at once.

Specified in ``docs/reference/screen.md``, terminals.
"""

from __future__ import annotations

from collections.abc import Callable

from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.host import Host
from widgets.forms.pick_list import PickList


class PickTheme(PickOne):
    """The themes, of which the one in use is highlighted."""

    def __init__(self, names: list[str], current: str) -> None:
        rows = [(name, name, "now" if name == current else "") for name in names]
        super().__init__("Themes", rows, first=current)

    def on_pick_list_moved(self, event: PickList.Moved) -> None:
        """Show the theme that is highlighted."""
        if self.is_attached and self.app.theme != event.key:
            self.app.theme = event.key


def pick_theme(host: Host, after: Callable[[], object] = lambda: None) -> None:
    """Let the user pick a theme, which the host remembers; then call ``after``."""
    before = host.theme

    def choose(name: str | None) -> None:
        if name:
            host.choose_theme(name)
            after()
        else:
            host.theme = before

    host.open_screen(PickTheme(sorted(host.available_themes), before), choose)
