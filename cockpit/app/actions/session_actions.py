"""Actions on the prompt and on the followed session: send, interrupt, policy, model, another session.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.app.actions.action import Action
from cockpit.app.commands import agent_command
from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH, is_narrower
from widgets.forms.pick_list import PickRow
from widgets.text.clean import clean

_QUIT_S = 2.0


def write_in_editor(host: Host) -> None:
    """Write the text of the prompt in the user's editor."""
    host.run_in_background(_write_in_editor(host))


async def _write_in_editor(host: Host) -> None:
    prompt = host.main.prompt
    try:
        text = await host.edit_in_editor(prompt.full_text, ".md", is_prompt=True)
    except CockpitError as error:
        host.show_error(str(error))
        return
    if text is not None:
        prompt.put(text)


def interrupt(host: Host) -> None:
    """Copy what is selected, else interrupt the session; when none runs here, quit on the second press."""
    screen = host.screen
    if selected := screen.get_selected_text():
        host.copy_to_clipboard(clean(selected))
        screen.clear_selection()
        host.main.flash("copied · ^c again interrupts")
        return
    now = host.engine.store.clock.monotonic()
    if host.runs.interrupt(host.session_id):
        host.main.flash("interrupted · ^c twice to quit")
        host.interrupted_at = float("-inf")
    elif now - host.interrupted_at <= _QUIT_S:
        host.run_in_background(host.quit())
    else:
        host.interrupted_at = now
        host.main.flash("^c again to quit")


def cycle_policy(host: Host, current: str = "") -> None:
    """Go to the approval policy after ``current``; a wider one waits for a second key."""
    session = host.session
    if session is None:
        return
    names = list(POLICY_WIDTH)
    current = current or session.policy
    policy = names[(names.index(current) + 1) % len(names)]
    if is_narrower(session.policy, policy):
        host.main.wider_policy = policy
        host.main.update_hints()
    elif policy != session.policy:
        set_policy(host, policy)


def set_policy(host: Host, policy: str) -> None:
    """Change the approval policy of the followed session."""
    session_id = host.session_id
    host.request(lambda: host.engine.change(session_id, policy=policy))


def followable_sessions(host: Host) -> Iterator[PickRow]:
    """Yield the sessions that can be followed: those of running workers, then all others."""
    state = host.state
    for chain in state.chains.newest(0):
        for run in chain.runs.values():
            if run.session_id and not run.ended:
                worker = state.chains.words_of(run.session_id) or chain.chain_id
                session = state.session(run.session_id)
                role = session.role.replace("_", " ") if session is not None else ""
                name = session.name if session is not None else run.task_id
                yield run.session_id, name, " · ".join(filter(None, (worker, role, run.step)))
    for row in host.main.panes.work.view.rows:
        if row.key in state.listed:
            yield row.key, row.title, f"{row.state} · {row.key}"


def show_estimate(host: Host) -> None:
    """Show what the session is expected to take, and what it took."""
    session_id = host.session_id

    async def show() -> None:
        from cockpit.loop.views.estimate_text import body_text

        body = await (await host.engine.planner()).session(session_id)
        lines = ["This session has no estimate."] if body is None else body_text(body)
        host.show_notice("\n".join(lines))

    host.request(show)


def start_new(host: Host) -> None:
    """Stop following the session; the next message starts another one."""
    host.trail.clear()
    host.attach("")
    host.main.prompt.focus()


def change_model(host: Host) -> None:
    """Pick another model: of the followed session, or without one of new sessions."""
    host.request(lambda: agent_command.choose(host, "model", ""))


def begin_review(host: Host) -> None:
    """Begin a review in the prompt, of the range that can be reviewed here if there is one."""
    host.main.prompt.put(f"/review {host.welcome.review or ''}")
    host.main.prompt.focus()


def export_session(host: Host) -> None:
    """Write the followed session to a file."""
    host.send_message("/export")


def start_agent(host: Host) -> None:
    """Pick an external agent, which gets a session."""
    host.request(lambda: agent_command.pick_agent(host))


def change_mode(host: Host) -> None:
    """Pick a mode of the external agent."""
    host.request(lambda: agent_command.choose(host, "mode", ""))


def change_option(host: Host) -> None:
    """Pick an option of the external agent, and its value."""
    host.request(lambda: agent_command.pick_option(host))


def fork_session(host: Host) -> None:
    """Continue from here in a second session."""
    host.request(lambda: agent_command.fork(host))


def replay_session(host: Host) -> None:
    """Show the session at any moment of its past; a fork of it is followed."""
    session_id = host.session_id

    async def fork(wave: int) -> None:
        forked = await host.engine.fork_session(session_id, wave)
        host.pop_screen()
        host.attach(forked)
        host.show_notice(f"You follow {forked} now. It continues {session_id} after wave {wave}.")

    async def show() -> None:
        from cockpit.app.screens.replay_screen import ReplayScreen, read_session_rows

        rows = await read_session_rows(host.engine.store, session_id)
        host.open_screen(ReplayScreen(rows, session_id, fork, host.store_warning))

    host.request(show)


def change_task_type(host: Host) -> None:
    """Ask for another task type."""
    session, session_id = host.session, host.session_id
    task_type = session.task_type if session is not None else ""

    def change(name: str | None) -> None:
        if name and name != task_type:
            host.request(lambda: host.engine.change(session_id, task_type=name))

    examples = "for example implement, investigate or review_pr"
    host.open_screen(Ask("Task type", examples, value=task_type), change)


SESSION_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "send", "Say", "Send the prompt; with an open proposal, to discuss it",
        "send", ("enter",),
        when=lambda c: c.pane == "prompt" and (not c.prompt_empty or not c.proposal_kind),
        needs="text in the prompt", footer=1, palette=False,
    ),
    Action(
        "newline", "Say", "Start a new line in the prompt", "newline",
        ("shift+enter", "ctrl+j", "alt+enter"), when=lambda c: c.pane == "prompt",
        needs="focus in the prompt", palette=False,
    ),
    Action(
        "editor", "Say", "Write the prompt in your editor", "editor", ("ctrl+g",),
        run=write_in_editor, footer=13, synonyms="vim nano emacs external",
    ),
    Action(
        "history", "Say", "Search the messages you sent", "history", ("ctrl+r",),
        when=lambda c: c.pane == "prompt", needs="focus in the prompt", palette=False,
    ),
    Action(
        "stash", "Say", "Put the draft aside; in an empty prompt, take it back", "stash", ("ctrl+s",),
        when=lambda c: c.pane == "prompt", needs="focus in the prompt", palette=False,
    ),
    Action(
        "undo", "Say", "Undo in the prompt; Ctrl+Y does it again", "undo", ("ctrl+underscore",),
        when=lambda c: c.pane == "prompt", needs="focus in the prompt", palette=False,
    ),
    Action(
        "clear", "Say", "Delete to the start of the line; there, clear the prompt", "clear",
        ("ctrl+u",), when=lambda c: c.pane == "prompt", needs="focus in the prompt", palette=False,
    ),
    Action(
        "unfold_paste", "Say", "Unfold the long paste under the cursor", "unfold", ("alt+o",),
        when=lambda c: c.pane == "prompt", needs="a folded paste in the prompt", palette=False,
    ),
    Action(
        "interrupt", "Session", "Interrupt the session; press twice to quit", "interrupt",
        ("ctrl+c",), run=interrupt, when=lambda c: not c.has_selection,
        needs="no selected text in the prompt", footer=6, footer_when=lambda c: c.session_runs,
        synonyms="cancel stop abort halt",
    ),
    Action(
        "policy", "Session", "Change the approval policy", "policy", ("shift+tab",),
        run=cycle_policy, when=lambda c: c.has_session, needs="a session", command="policy",
        synonyms="approve approval permissions mode yolo automatic trust",
    ),
    Action(
        "new", "Session", "Start a new session", "new", ("f7",), run=start_new,
        when=lambda c: c.has_session, needs="a session", command="new",
        synonyms="clear reset task conversation chat begin another",
    ),
    Action(
        "model", "Session", "Change the model", "model", run=change_model, command="model",
        synonyms="provider llm settings switch anthropic openai claude gpt session",
    ),
    Action(
        "review", "Session", "Review a pull request, branch or range", "review", run=begin_review,
        when=lambda c: c.prompt_empty, needs="an empty prompt", command="review",
        synonyms="pr code diff check changes",
    ),
    Action(
        "export", "Session", "Write the session to a file", "export", run=export_session,
        when=lambda c: c.has_session, needs="a session", command="export",
        synonyms="save share markdown json svg transcript download",
    ),
    Action(
        "agent", "Session", "Start a session with an external agent", "agent", run=start_agent,
        command="agent",
        synonyms="claude codex acp opencode gemini",
    ),
    Action(
        "agent_mode", "Session", "Change the mode of the external agent", "mode", run=change_mode,
        when=lambda c: c.has_agent, needs="a session of an external agent", command="mode",
    ),
    Action(
        "agent_option", "Session", "Change an option of the external agent", "option",
        run=change_option, when=lambda c: c.has_agent, needs="a session of an external agent",
    ),
    Action(
        "fork", "Session", "Fork the session: continue from here in a second one", "fork",
        run=fork_session, when=lambda c: c.has_session, needs="a session", command="fork",
        synonyms="branch copy rewind continue",
    ),
    Action(
        "replay", "Session", "Replay the session, wave by wave", "replay", run=replay_session,
        when=lambda c: c.has_session, needs="a session", command="replay",
        synonyms="history past timeline rewind scrub",
    ),
    Action(
        "estimate", "Session", "Show the estimate of the session", "estimate", run=show_estimate,
        when=lambda c: c.has_session, needs="a session", command="estimate",
        synonyms="cost price tokens time",
    ),
    Action(
        "task_type", "Session", "Change the task type of the session", "task type",
        run=change_task_type, when=lambda c: c.has_session, needs="a session",
    ),
)  # fmt: skip
