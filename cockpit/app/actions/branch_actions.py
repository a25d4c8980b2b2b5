"""Actions on branches: the diff of a chain, a task or a session, with merge and drop.

Specified in ``docs/reference/screen.md``, branches.
"""

from __future__ import annotations

from cockpit.app.actions.action import Action
from cockpit.app.actions.chain_actions import chain_at_cursor
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.task_actions import task_at_cursor
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.app.host import Host
from widgets.forms.pick_list import PickRow

_MOST_CHAINS = 20


def show_branch(host: Host) -> None:
    """Show the branch of the task or chain under the cursor, else that of the followed session."""
    task, chain = task_at_cursor(host), chain_at_cursor(host)
    if task is not None:
        open_branch(host, task.task_id)
    elif chain is not None:
        open_branch(host, chain.chain_id)
    elif host.session_id and not host.state.chains.newest(1):
        open_branch(host, host.session_id)
    else:
        pick_branch(host)


def pick_branch(host: Host) -> None:
    """Pick a chain, or the followed session, to show its branch."""
    session = host.session
    rows: list[PickRow] = []
    if session is not None:
        rows.append((host.session_id, session.title or host.session_id, "this session"))
    rows += [
        (chain.chain_id, f"{chain.chain_id}  {chain.row.branch}", chain.status)
        for chain in host.state.chains.newest(_MOST_CHAINS)
    ]

    def show(name: str | None) -> None:
        if name:
            open_branch(host, name)

    empty = "No session and no chain yet. Their branches appear here."
    host.open_screen(PickOne("Branches", rows, empty=empty), show)


def open_branch(host: Host, name: str) -> None:
    """Show the branch of a chain, a task or a session."""
    from cockpit.app.dialogs.branch_view import BranchView

    host.open_screen(BranchView(host, name))


def _is_on_work(context: ActionContext) -> bool:
    return bool(context.task_status or context.chain_status)


BRANCH_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "branch", "Look", "Show a branch: its diff, commits and conflicts; merge or drop it", "diff",
        ("alt+d",), run=show_branch, command="diff",
        synonyms="git branch diff merge take drop commits changes conflict result chain accept",
    ),
    Action(
        "task_branch", "Tasks", "Show the branch of the task or chain", "diff", (), ("B",), "tasks",
        run=show_branch, when=_is_on_work, needs="a task or a chain under the cursor", footer=4,
        palette=False,
    ),
)  # fmt: skip
