"""Actions that decide proposals: approve, discuss, narrow, edit, reject, and turn to the next one.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from cockpit.app import external_editor
from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.dialogs.small_dialogs import Ask, PickOne
from cockpit.app.host import Host
from cockpit.app.key_policy import (
    Approve,
    AskSecondKey,
    Discuss,
    DoNothing,
    LeaveMode,
    OpenDiscussion,
    ReadOn,
    Refuse,
    Send,
    Step,
)
from cockpit.core.errors import CockpitError
from widgets.views import ProposalView

# The two keys


def carry_out(host: Host, step: Step, text: str = "") -> None:
    """Carry out the meaning of Enter or Escape; ``text`` was entered, and comes back if it goes nowhere."""
    match step:
        case Approve(proposal):
            approve(host, proposal)
        case Discuss(proposal, text):
            discuss(host, proposal, text)
        case Refuse(proposal, text):
            refuse(host, proposal, text)
        case Send(text, session):
            host.send_message(text, session)
        case ReadOn():
            host.main.panes.proposals.read_on()
        case OpenDiscussion():
            open_discussion(host)
        case AskSecondKey():
            host.main.flash("")
        case DoNothing(reason):
            host.restore_text(text)
            host.main.flash(reason)
        case LeaveMode():
            host.main.update_hints()


def approve(host: Host, proposal: ProposalView) -> None:
    """Approve exactly what was drawn, narrowed to the items that are still ticked.

    Each of several is decided on its own: an error of one opens that one again.
    """
    if proposal.questions:
        answer(host, proposal)
        return
    kept = host.main.kept_items
    if kept is not None and not kept:
        host.main.flash("no item is ticked: reject or discuss the request instead")
        return
    for each in proposal.together:
        _decide(
            host,
            each,
            partial(host.engine.approve, each.proposal_id, shown_digest=each.digest, narrowed=kept),
            # Taking or dropping what an agent did is not a message to it.
            resumes=not proposal.agent,
        )


def answer(host: Host, proposal: ProposalView) -> None:
    """Open the form with the agent's questions; closed without answers, the proposal stays open."""
    from cockpit.app.dialogs.answer_form import AnswerForm

    host.open_screen(AnswerForm(host, proposal))


def open_discussion(host: Host) -> None:
    """Ask for words about the proposal; it stays where it is, and goes on waiting."""
    main = host.main
    main.panes.proposals.narrowing = False
    main.kept_items = None
    main.panes.turn_to("proposals")
    main.prompt.focus()
    main.update_hints()


def discuss(host: Host, proposal: ProposalView, text: str) -> None:
    """End this revision of the proposal with words for its agent; what has no agent is put aside."""
    main, engine = host.main, host.engine

    def report() -> None:
        if not proposal.session:
            main.flash("put aside: nothing happens")

    _decide(
        host,
        proposal,
        lambda: engine.discuss(proposal.proposal_id, shown_digest=proposal.digest, words=text),
        on_success=report,
        text=text,
    )


def refuse(host: Host, proposal: ProposalView, text: str) -> None:
    """Answer a permission with no; the agent reads ``text``, which may be empty."""
    engine = host.engine
    _decide(
        host,
        proposal,
        lambda: engine.reject(proposal.proposal_id, shown_digest=proposal.digest, reason=text),
        text=text,
    )


def _decide(
    host: Host,
    proposal: ProposalView,
    call: Callable[[], Awaitable[object]],
    *,
    on_success: Callable[[], None] | None = None,
    text: str = "",
    resumes: bool = True,
) -> None:
    """Send a decision to the engine; on an error the proposal is open again and ``text`` comes back.

    ``resumes`` says whether the proposal's session goes on with the decision.
    """
    main = host.main
    main.key_policy.lock(proposal)
    main.panes.proposals.narrowing = False
    main.prompt.focus()

    async def decide() -> None:
        try:
            await call()
        except CockpitError as error:
            main.key_policy.unlock(proposal)
            host.restore_text(text)
            host.show_error(str(error))
        else:
            if on_success is not None:
                on_success()
            # The process that waits for the answer to a permission goes on by itself.
            if resumes and proposal.kind != "permission":
                host.resume_session(proposal.session)
        main.update_hints()

    host.run_in_background(decide())
    main.update_hints()


# Other keys


def toggle_narrowing(host: Host) -> None:
    """Let the user tick items of the context request; again: stop narrowing."""
    main = host.main
    panel = main.panes.proposals
    main.panes.turn_to("proposals")
    if panel.narrowing:
        panel.narrowing, main.kept_items = False, None
        main.prompt.focus()
    else:
        panel.focus()
        panel.narrowing = main.is_alone = True
        main.kept_items = panel.kept


def edit_proposal(host: Host) -> None:
    """Edit the proposed action or permission in the user's editor; the result is a revision to decide."""
    front = host.main.key_policy.open
    if front is not None:
        host.run_in_background(_edit_proposal(host, front))


async def _edit_proposal(host: Host, front: ProposalView) -> None:
    engine = host.engine
    try:
        before, suffix = await engine.editable(front.proposal_id)
        after = await host.edit_in_editor(before, suffix)
        if after is not None and after != before:
            with external_editor.save_text_on_error(after, host.show_error, suffix=suffix):
                await engine.edit(front.proposal_id, shown_digest=front.digest, text=after)
    except CockpitError as error:
        host.show_error(str(error))


def approve_always(host: Host) -> None:
    """Ask whether exactly this may be allowed from now on, then approve it with a rule."""
    front = host.main.key_policy.take_armed()
    if front is None:
        host.main.flash("read it to its end first, then press the key again")
        return

    def answer(picked: str | None) -> None:
        if picked:
            engine = host.engine
            _decide(
                host,
                front,
                lambda: engine.approve(front.proposal_id, shown_digest=front.digest, always=True),
            )

    question = f"Allow {front.agent} from now on in {front.project}?"
    host.open_screen(
        PickOne(question, [("yes", front.rule, "exactly this, without asking")]), answer
    )


def show_whole_change(host: Host) -> None:
    """Show every line of the open proposal's diffs."""
    from cockpit.app.dialogs.whole_change import WholeChange

    front = host.main.key_policy.open
    if front is not None:
        host.open_screen(WholeChange(front))


def reject(host: Host) -> None:
    """Ask for a reason, then reject the open proposal."""
    front = host.main.key_policy.open
    if front is None:
        return

    def send_rejection(reason: str | None) -> None:
        if reason is not None:
            engine = host.engine
            _decide(
                host,
                front,
                lambda: engine.reject(front.proposal_id, shown_digest=front.digest, reason=reason),
                resumes=not front.agent,
            )

    question = f"{front.title}\nThe agent reads the reason and looks for another way."
    host.open_screen(Ask("Reject: why?", question), send_rejection)


def turn_queue(host: Host, step: int) -> None:
    """Go to the next or the previous proposal; from several that are alike, to the first by itself."""
    order, front_id, front = host.pending, host.main.front_id, host.main.queue.front
    if front is not None and front.alike and step > 0:
        go_to(host, front_id)
    elif order:
        place = order.index(front_id) if front_id in order else -1 if step > 0 else 0
        go_to(host, order[(place + step) % len(order)])


def go_to(host: Host, proposal_id: str) -> None:
    """Put a proposal in front and follow its session: header, keys and words move with it."""
    main, waiting = host.main, host.state.pending.get(proposal_id)
    if waiting is None:
        return  # it was decided meanwhile
    main.front_id, main.is_alone, main.kept_items = proposal_id, True, None
    session_id = waiting.stored.session_id
    if session_id != host.session_id:
        host.trail.push(host.session_id, "")
        host.attach(session_id)
    main.panes.turn_to("proposals")
    main.prompt.focus()
    main.paint()


# Conditions


def _is_open(context: ActionContext) -> bool:
    return bool(context.proposal_kind) and not context.asking_second_key


def prompt_is_undisturbed(context: ActionContext) -> bool:
    """Return True while a chord shadows no editing key of the prompt that could be meant."""
    return context.pane != "prompt" or context.prompt_empty


def _is_undisturbed(context: ActionContext) -> bool:
    return _is_open(context) and prompt_is_undisturbed(context)


def _in_deciding_pane(context: ActionContext) -> bool:
    """Return True where Enter and Escape decide; in other panes they have another meaning."""
    return context.pane in ("prompt", "proposals", "")


def _another_waits(context: ActionContext) -> bool:
    return context.proposal_count > bool(context.proposal_kind)


_OPEN = "an open proposal, an empty prompt"

DECISION_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "approve", "Decide", "Approve the proposal in front", "approve", ("enter",),
        when=lambda c: _is_undisturbed(c) and not c.discussing, needs=_OPEN,
        footer=1, footer_when=_in_deciding_pane, palette=False,
    ),
    Action(
        "second", "Decide", "Approve a high-risk proposal, after Enter", "approve", ("y",),
        when=lambda c: c.asking_second_key, needs="Enter on a high-risk proposal",
        footer=1, palette=False,
    ),
    Action(
        "discuss", "Decide", "Discuss the proposal in front: nothing runs, you reply",
        "discuss", ("escape",), when=_is_undisturbed, needs=_OPEN,
        footer=2, footer_when=_in_deciding_pane, palette=False,
    ),
    Action(
        "narrow", "Decide", "Narrow the context request to some of its items", "narrow",
        ("ctrl+n",), ("n",), "proposals", run=toggle_narrowing,
        when=lambda c: _is_undisturbed(c) and c.can_narrow,
        needs="an open context request with several items, an empty prompt", footer=3,
    ),
    Action(
        "edit", "Decide", "Edit the proposed action in your editor", "edit", ("ctrl+e",), ("e",),
        "proposals", run=edit_proposal,
        when=lambda c: _is_undisturbed(c) and c.can_edit,
        needs="an open action, or a permission that can be changed; an empty prompt", footer=3,
    ),
    Action(
        "always", "Decide", "Approve, and allow the agent exactly this from now on", "always", (),
        ("a",), "proposals", run=approve_always,
        when=lambda c: _is_undisturbed(c) and c.can_trust,
        needs="a permission that is not sensitive",
    ),
    Action(
        "whole_change", "Decide", "Show every line of the proposed change", "whole change", (),
        ("v",), "proposals", run=show_whole_change,
        when=lambda c: _is_undisturbed(c) and c.has_diff, needs="an open proposal with a diff",
    ),
    Action(
        "reject", "Decide", "Reject the proposal in front, with a reason", "reject", ("ctrl+x",),
        ("x",), "proposals", run=reject, when=_is_undisturbed, needs=_OPEN, footer=4,
    ),
    Action(
        "next", "Decide", "Show the next proposal", "next", ("alt+n", "ctrl+down"),
        ("right_square_bracket",), "proposals", run=lambda host: turn_queue(host, 1),
        when=_another_waits, needs="another proposal that waits", footer=5,
    ),
    Action(
        "previous", "Decide", "Show the previous proposal", "previous", ("alt+p", "ctrl+up"),
        ("left_square_bracket",), "proposals", run=lambda host: turn_queue(host, -1),
        when=_another_waits, needs="another proposal that waits",
    ),
)  # fmt: skip
