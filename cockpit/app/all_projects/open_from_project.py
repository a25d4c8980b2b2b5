"""The screen over all projects, opened from the screen of one.

Sessions that this process drives go on meanwhile. Going to another project ends this screen, and so pauses
them: the user is asked. Specified in ``docs/reference/all-projects.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.app.all_projects.jump import Jump

if TYPE_CHECKING:
    from cockpit.app.host import Host

_QUESTION = (
    "Sessions that run on this screen pause when you leave it. Resume them when you are back."
)


def open_all_projects(host: Host) -> None:
    """Open the screen over all projects; the same again changes nothing."""
    from cockpit.app.all_projects.one_queue import Waiting
    from cockpit.app.all_projects.projects_screen import AllProjectsScreen

    if isinstance(host.screen, AllProjectsScreen):
        return
    own = host.engine.place.state.name

    def announce(waiting: Waiting) -> None:
        from cockpit.app.all_projects.one_queue import describe_request

        if host.notifier is not None and waiting.state.project.key != own:
            host.notifier.notify(describe_request(waiting))

    screen = AllProjectsScreen(
        lambda jump: _go(host, jump),
        engines={own: host.engine},
        clock=host.engine.store.clock,
        on_request=announce,
        on_decided=host.resume_session,
    )
    host.open_screen(screen)


def _go(host: Host, jump: Jump) -> None:
    """Go to another project; to this one: back to its screen, with the session of the proposal."""
    if jump.key == host.engine.place.state.name:
        host.pop_screen()
        if jump.session_id and jump.session_id != host.session_id:
            host.trail.push(host.session_id, "")
            host.attach(jump.session_id)
        return
    if not host.runs.any_running:
        _leave(host, jump)
        return
    from cockpit.app.dialogs.small_dialogs import PickOne

    def answer(picked: str | None) -> None:
        if picked == "go":
            _leave(host, jump)

    rows = [("stay", "stay here", ""), ("go", f"go to {jump.home.name}", "its sessions pause")]
    host.open_screen(PickOne(_QUESTION, rows), answer)


def _leave(host: Host, jump: Jump) -> None:
    host.jump = replace(jump, drove=host.runs.is_running(host.session_id))
    host.run_in_background(host.quit())


def notify_pending(host: Host, proposal_ids: Iterable[str]) -> None:
    """Announce proposals of the project of ``host`` outside the terminal, where its user wants that."""
    if host.notifier is None:
        return
    from cockpit.access.notices import proposal_notice

    place, pending = host.engine.place, host.state.pending
    for waiting in (pending[each] for each in proposal_ids if each in pending):
        stored, body = waiting.stored, waiting.body
        session = host.state.session(stored.session_id)
        notice = proposal_notice(
            f"{place.state.name}/{stored.proposal_id}",
            project=place.home.name,
            branch=body.branch or (session.branch if session is not None else ""),
            proposal_id=stored.proposal_id,
            kind=stored.kind,
            risk=stored.risk,
            title=stored.title,
            agent=body.agent,
            session_id=stored.session_id,
        )
        host.notifier.notify(notice)
