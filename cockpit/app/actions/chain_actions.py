"""Actions in the work pane: attach to sessions, peek at them, open, drain, stop and resume chains.

An action writes its request into the row of the chain. The workers read the request there, and the
screen learns of the change from the journal. Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.actions.action import Action, Condition
from cockpit.app.actions.context import ActionContext
from cockpit.app.actions.task_actions import (
    notify_completed,
    task_at_cursor,
    unblock_task,
    write_to_backlog,
)
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from cockpit.app.state.chains import Run, ShownChain
from cockpit.core.errors import CockpitError
from widgets.forms.pick_list import PickRow
from widgets.views import TurnView

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

_PEEK_TURNS = 6
_MOST_RESUMABLE = 20
"""Ended chains that are looked at for ones to resume."""
_RESUMABLE = ("stopped", "failed", "limited")


# The row under the cursor


def row_at_cursor(host: Host) -> str:
    """Return the key of the row under the cursor of the work pane; empty while it has no focus."""
    pane = host.main.panes.work
    return pane.at_cursor if pane.has_focus else ""


def chain_at_cursor(host: Host) -> ShownChain | None:
    """Return the chain whose tree the cursor is in."""
    return host.state.chains.chains.get(row_at_cursor(host).partition("/")[0])


def _run_of_row(host: Host, row_key: str) -> Run | None:
    """Return the run of a task that a row shows; for a chain or a worker the one that changed last."""
    chain_id, _, rest = row_key.partition("/")
    chain = host.state.chains.chains.get(chain_id)
    if chain is None:
        return None
    if rest in chain.runs:
        return chain.runs[rest]
    active = [
        run
        for run in chain.runs.values()
        if run.session_id and not run.ended and rest in ("", f"s{run.ordinal}")
    ]
    return max(active, key=lambda run: run.moment, default=None) if chain.working else None


def session_of_row(host: Host, row_key: str) -> str:
    """Return the session that Enter follows from a row; empty where there is none."""
    run = _run_of_row(host, row_key)
    if run is not None:
        return run.session_id if not run.ended else ""
    return row_key if host.state.session(row_key) is not None else ""


# Attaching


def open_row(host: Host, row_key: str) -> None:
    """Open a row of the work pane: follow its session, else show its task, else open its tree."""
    session_id, run = session_of_row(host, row_key), _run_of_row(host, row_key)
    if session_id:
        _attach(host, session_id, row_key)
        host.trail.follow_run(run, session_id)
    elif row_key.rpartition("/")[2] in host.state.work.tasks:
        _open_task(host, row_key.rpartition("/")[2])
    else:
        open_tree(host)


def _open_task(host: Host, task_id: str) -> None:
    from cockpit.app.screens.task_screen import TaskScreen

    host.open_screen(TaskScreen(host, task_id))


def _attach(host: Host, session_id: str, row_key: str) -> None:
    if session_id != host.session_id:
        host.trail.push(host.session_id, row_key)
    host.attach(session_id)
    host.main.panes.turn_to("conversation")
    host.main.prompt.focus()


def go_back(host: Host) -> None:
    """Return to the session that was followed before, and to the row that was opened."""
    if not host.trail.can_go_back:
        return
    session_id, row_key = host.trail.pop()
    panes = host.main.panes
    host.attach(session_id)
    panes.turn_to("work")
    panes.work.focus()
    panes.work.turn_to(row_key)


def follow_next_role(host: Host) -> None:
    """Follow the session of the next role when the followed task moved on to it."""
    if session_id := host.trail.next_role_session(host.session_id, host.state.chains):
        host.attach(session_id)


# Peeking


def peek(host: Host, row_key: str) -> None:
    """Show the last turns of a session, or the work in progress of a task."""
    from cockpit.app.dialogs.peek_session import PeekDialog

    state = host.state
    if session_id := session_of_row(host, row_key):
        host.open_screen(PeekDialog(partial(_last_turns, host, row_key, session_id)))
    elif (task_id := row_key.rpartition("/")[2]) in state.work.tasks:
        from cockpit.app.dialogs.task_memory import WipDialog

        host.open_screen(WipDialog(host, task_id))


def _last_turns(host: Host, row_key: str, first_session: str) -> tuple[str, tuple[TurnView, ...]]:
    """Return title and last turns of the row's current session; once none runs, of the first one."""
    state = host.state
    session_id = session_of_row(host, row_key) or first_session
    session = state.session(session_id)
    title = [state.chains.words_of(session_id)]
    if session is not None:
        title += [session.role.replace("_", " "), session.name]
    host.open_session(session_id)
    turns = state.conversation(session_id).changed()[-_PEEK_TURNS:]
    return " · ".join(filter(None, title)), turns


# Terminals of agents that the user started


def jump(host: Host) -> None:
    """Show the terminal of the agent whose session is under the cursor."""
    session_id = session_of_row(host, row_at_cursor(host))
    if session_id:
        host.run_in_background(_jump(host, session_id))


async def _jump(host: Host, session_id: str) -> None:
    from cockpit.agents.terminals.jump_to_terminal import jump_to_terminal
    from cockpit.store.sessions import sessions

    session = await host.engine.store.read(lambda connection: sessions.load(connection, session_id))
    try:
        await jump_to_terminal(session, os.environ)
    except CockpitError as error:
        host.show_error(str(error))


# Trees


def open_tree(host: Host) -> None:
    """Open the tree under the cursor by a step."""
    _turn_tree(host, 1)


def close_tree(host: Host) -> None:
    """Close the tree under the cursor by a step."""
    _turn_tree(host, -1)


def _turn_tree(host: Host, step: int) -> None:
    chain = chain_at_cursor(host)
    if chain is None:
        return
    row_key = row_at_cursor(host)
    if host.main.trees.turn(chain, step):
        host.main.paint()
    pane = host.main.panes.work
    if not pane.turn_to(row_key):
        pane.turn_to(chain.chain_id)


# Chains


def drain_chain(host: Host) -> None:
    """Ask the chain to stop after its running steps."""
    _request_stop(host, now=False)


def stop_chain(host: Host) -> None:
    """Ask the chain to stop now."""
    _request_stop(host, now=True)


def _request_stop(host: Host, *, now: bool) -> None:
    if (chain := chain_at_cursor(host)) is None:
        return
    chain_id = chain.chain_id

    def write(tx: Tx) -> None:
        from cockpit.chains.supervisor import request_stop

        request_stop(tx, chain_id, now=now)

    write_to_backlog(host, write)


def retry(host: Host) -> None:
    """Unblock the task under the cursor, and resume its chain if that stopped."""
    chain, task = chain_at_cursor(host), task_at_cursor(host)
    if chain is None:
        return
    chain_id = chain.chain_id if not chain.live else ""
    task_id = task.task_id if task is not None and task.status == "blocked" else ""
    host.request(partial(_retry, host, chain_id, task_id))


async def _retry(host: Host, chain_id: str, task_id: str) -> None:
    engine = host.engine
    if task_id:
        notify_completed(host, await engine.store.write(lambda tx: unblock_task(tx, task_id)))
    if chain_id:
        from cockpit.chains.chain_process import run_chain_command

        host.show_notice(f"Resuming {chain_id}")
        arguments = ("work", "--continue", chain_id)
        await run_chain_command(engine.place, arguments)


# Starting


def pick_work(host: Host) -> None:
    """Pick what a chain works on, or a chain to resume; then its options, and start it."""
    work, chains = host.state.work, host.state.chains
    scope = host.board_filter.scope if host.main.pane == "tasks" else ""
    rows: list[PickRow] = [("all", "The whole backlog", f"{len(work.ready)} ready")]
    for chain in chains.newest(_MOST_RESUMABLE):
        if chain.status in _RESUMABLE:
            rows.append((chain.chain_id, f"Resume {chain.chain_id}", chain.status))
    rows += [(e.epic_id, f"{e.epic_id} {e.title}", "epic") for e in work.epics.values()]
    rows += [(s.story_id, f"{s.story_id} {s.title}", "story") for s in work.stories.values()]
    if scope:
        rows.sort(key=lambda row: row[0] != scope)  # what the board shows comes first

    def ask_options(picked: str | None) -> None:
        if picked:
            question = "Enter starts it. Add options of `cockpit work`, such as --max-cost 5."
            host.open_screen(Ask("Start a chain", question, value=f"{picked} "), start)

    def start(words: str | None) -> None:
        if words:
            host.send_message(f"/work {words}")

    host.open_screen(PickOne("Work on", rows), ask_options)


# Conditions


def _chain_is(*statuses: str) -> Condition:
    return lambda context: context.chain_status in statuses


def _in_tree(context: ActionContext) -> bool:
    return bool(context.chain_status)


def _can_attach(context: ActionContext) -> bool:
    return context.can_attach


def _can_retry(context: ActionContext) -> bool:
    chain = context.chain_status
    return chain in _RESUMABLE or (bool(chain) and context.task_status == "blocked")


def _can_go_back(context: ActionContext) -> bool:
    """Return True where the key means nothing else: it closes a tree and a thought, and moves in text."""
    if context.pane in ("work", "tasks"):
        return context.can_go_back and not context.chain_status
    in_text = context.can_fold or (context.pane == "prompt" and not context.prompt_empty)
    return context.can_go_back and not context.list_open and not in_text


CHAIN_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "start_chain", "Chains", "Start a chain on the backlog, or resume one", "start chain", (), ("W",),
        "tasks", run=pick_work, command="work", synonyms="work run agents parallel",
    ),
    Action(
        "attach", "Chains", "Attach to the session and follow it", "attach", ("enter",), (), "work",
        when=_can_attach, needs="a running session under the cursor", footer=1, palette=False,
    ),
    Action(
        "back", "Chains", "Go back to the session you came from", "back", ("left",), run=go_back,
        when=_can_go_back, needs="an attached session", footer=2, palette=False,
    ),
    Action(
        "glimpse", "Chains", "Peek at the session: its last turns, live", "peek", ("space",), (),
        "work", when=_can_attach, needs="a running session under the cursor", footer=2,
        palette=False,
    ),
    Action(
        "jump", "Session", "Jump to the terminal of the agent under the cursor", "jump", (), ("J",),
        "work", run=jump, when=_can_attach, needs="a running session under the cursor",
    ),
    Action(
        "unfold", "Chains", "Open the tree of the chain", "open", (), ("right",), "work",
        run=open_tree, when=_in_tree, needs="a chain under the cursor", footer=4, palette=False,
    ),
    Action(
        "fold", "Chains", "Close the tree of the chain", "close", (), ("left",), "work",
        run=close_tree, when=_in_tree, needs="a chain under the cursor", palette=False,
    ),
    Action(
        "drain", "Chains", "Drain the chain: finish running steps, then stop", "drain", (), ("p",),
        "work", run=drain_chain, when=_chain_is("running"), needs="a running chain", footer=3,
    ),
    Action(
        "stop_chain", "Chains", "Stop the chain now; you can resume it later", "stop", (), ("z",),
        "work", run=stop_chain, when=_chain_is("running", "draining"), needs="a running chain",
        footer=3,
    ),
    Action(
        "retry", "Chains", "Unblock the task, or resume the stopped chain", "retry", (), ("r",),
        "work", run=retry, when=_can_retry, needs="a stopped chain or a blocked task", footer=2,
    ),
)  # fmt: skip
