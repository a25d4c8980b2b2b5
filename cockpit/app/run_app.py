"""Show the cockpit of one project at the terminal, until the user leaves or the terminal goes away.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import themes
from cockpit.app.application import CockpitApp
from cockpit.app.terminal.terminal_app import choose_theme, run_at_terminal
from cockpit.core.state_folder import state_root

# The first frame is shown before anything else is imported.
if TYPE_CHECKING:
    from cockpit.access.notices import Notifier
    from cockpit.app.actions.registry import Keys
    from cockpit.app.all_projects.jump import Jump
    from cockpit.loop.runtime import Runtime


async def run_app(
    engine: Runtime | None = None,
    *,
    open_engine: Callable[[Callable[[str], object]], Awaitable[Runtime]] | None = None,
    project: str = "",
    session_id: str | None = None,
    resumes: bool = True,
    first_message: str | None = None,
    theme: str = themes.DEFAULT,
    keys: Keys | None = None,
    rings_bell: bool = True,
    after_first_frame: Callable[[Runtime], Coroutine[Any, Any, None]] | None = None,
    on_theme: Callable[[str], object] | None = None,
    on_draft: Callable[[], object] | None = None,
    on_end: Callable[[str], object] | None = None,
    on_jump: Callable[[Jump, str], object] | None = None,
    notifier: Notifier | None = None,
) -> int:
    """Show the cockpit until the user leaves; returns the exit code. Prints nothing itself.

    Without an engine, ``open_engine`` opens it after the first frame; it gets a function for warnings.
    ``after_first_frame`` runs once the main screen is visible. Its error, and a ``CockpitError``
    of the other, ends the screen and is raised here. ``on_draft`` is called while the prompt has text.
    ``on_end`` gets the id of the session that was followed last ('' for none), so that the command line can
    say how to come back; where the user goes to another project, ``on_jump`` gets that and the id instead.
    """

    async def open_at_terminal(show: Callable[[str], object]) -> Runtime:
        if open_engine is None:
            raise RuntimeError("an application without an engine needs open_engine")
        sit_at_screen()
        return await open_engine(show)

    def sit_at_screen() -> None:
        from cockpit.access import user_presence  # late: after the first frame

        user_presence.sit_at_screen()

    if engine is not None:
        sit_at_screen()
    app = CockpitApp(
        engine,
        open_engine=open_at_terminal if engine is None else None,
        project=project,
        session_id=session_id,
        resumes=resumes,
        first_message=first_message,
        theme=choose_theme(theme),
        keys=keys,
        after_first_frame=after_first_frame,
        on_theme=on_theme,
        on_draft=on_draft,
    )
    app.rings_bell = rings_bell
    app.words_folder = state_root()
    if notifier is not None:
        app.notifier, notifier.on_error = notifier, app.show_error
    code = await run_at_terminal(app)
    if notifier is not None:
        await notifier.close()
    if app.fatal_error is not None:
        raise app.fatal_error
    if on_jump is not None and app.jump is not None and not app.is_leaving:
        on_jump(app.jump, app.session_id)
    elif on_end is not None and not app.is_terminal_lost:
        on_end(app.session_id)
    return code
