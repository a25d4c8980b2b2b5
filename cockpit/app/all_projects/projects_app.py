"""``cockpit --all``: the screen over all projects as a program of its own.

Specified in ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

from typing import Any

from textual.screen import Screen

import themes
from cockpit.access.notices import Notifier
from cockpit.app.all_projects.jump import Jump
from cockpit.app.all_projects.one_queue import Waiting, describe_request
from cockpit.app.all_projects.projects_screen import AllProjectsScreen
from cockpit.app.stylesheets import STYLESHEETS
from cockpit.app.terminal.terminal_app import TerminalApp, choose_theme, run_at_terminal
from cockpit.core.clock import Clock


class AllProjectsApp(TerminalApp[int]):
    """The screen over all projects; :attr:`jump` is where the user went, None where they left."""

    CSS_PATH = [*STYLESHEETS]  # noqa: RUF012 -- Textual's way
    TITLE = "cockpit"

    def __init__(
        self,
        *,
        theme: str = themes.DEFAULT,
        clock: Clock | None = None,
        notifier: Notifier | None = None,
        problem: str = "",
    ) -> None:
        super().__init__()
        self.jump: Jump | None = None
        self._clock, self._notifier, self._problem = clock, notifier, problem
        self.use_theme(theme)

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen over all projects."""
        return AllProjectsScreen(self._go, clock=self._clock, on_request=self._notify, is_only=True)

    def on_mount(self) -> None:
        """Say why the project that the user went to did not open."""
        if self._problem:
            self.show_error(self._problem)

    def _go(self, jump: Jump) -> None:
        self.jump = jump
        self.exit(0)

    def _notify(self, waiting: Waiting) -> None:
        if self._notifier is not None:
            self._notifier.notify(describe_request(waiting))


async def run_all_projects(
    *,
    theme: str = themes.DEFAULT,
    rings_bell: bool = True,
    notifier: Notifier | None = None,
    problem: str = "",
) -> tuple[int, Jump | None]:
    """Show all projects until the user leaves; return the exit code, and the project that they go to.

    ``problem`` is shown as an error when the screen opens.
    """
    from cockpit.access import user_presence

    user_presence.sit_at_screen()
    app = AllProjectsApp(theme=choose_theme(theme), notifier=notifier, problem=problem)
    app.rings_bell = rings_bell
    if notifier is not None:
        notifier.on_error = app.show_error
    code = await run_at_terminal(app)
    if notifier is not None:
        await notifier.close()
    return code, None if app.is_leaving else app.jump
