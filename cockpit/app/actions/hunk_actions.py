"""Keep some hunks of a proposed change: the rest is proposed as the user's edit.

Specified in ``docs/reference/screen.md``, hunks.
"""

from __future__ import annotations

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError
from widgets.views import ProposalView


def pick_hunks(host: Host) -> None:
    """Let the user tick hunks of the open proposal; what is kept is a revision to decide."""
    front = host.main.key_policy.open
    if front is not None:
        host.run_in_background(_pick_hunks(host, front))


async def _pick_hunks(host: Host, front: ProposalView) -> None:
    from cockpit.app.dialogs.pick_hunks import PickHunks
    from cockpit.loop.decisions.keep_hunks import EditableChange

    try:
        text, _ = await host.engine.editable(front.proposal_id)
    except CockpitError as error:
        host.show_error(str(error))
        return
    before, after = front.diffs[0].before or "", front.diffs[0].after or ""
    change = EditableChange.find(before, after, text) if len(front.diffs) == 1 else None
    hunks = change.list_hunks() if change is not None else []
    if change is None or len(hunks) < 2:
        host.show_notice("The change is one piece: approve, discuss or edit it.")
        return

    def propose(kept: tuple[int, ...] | None) -> None:
        if kept is None or len(kept) == len(hunks):
            return
        if not kept:
            host.show_notice("No hunk is kept: reject or discuss the change instead.")
            return
        host.request(
            lambda: host.engine.edit(
                front.proposal_id, shown_digest=front.digest, text=change.keep(kept)
            )
        )

    host.open_screen(PickHunks(front.diffs[0].path, hunks), propose)


def _has_hunks(context: ActionContext) -> bool:
    is_open = context.proposal_kind == "action" and not context.asking_second_key
    return is_open and context.can_edit and context.has_hunks


HUNK_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "hunks", "Decide", "Keep some hunks of the change in front", "hunks", (), ("h",),
        "proposals", run=pick_hunks, when=_has_hunks, needs="an open change of a file in several places",
        synonyms="partial part of a diff",
    ),
)  # fmt: skip
