"""The meaning of the keys at this moment, as text: footer, keys under a proposal, border of the prompt."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.app.actions.action import AnyAction
from cockpit.app.actions.context import ActionContext, Pane
from cockpit.app.key_policy import KeyPolicy
from cockpit.app.state.header import SessionState
from widgets.views import KeyHintView, QueueView

_STRONG = ("approve", "second", "discuss")
_OF_SEVERAL = {
    "approve": "approve all {}",
    "discuss": "discuss the first",
    "reject": "reject the first",
    "next": "one by one",
}
"""What keys say while several proposals that are alike are in front."""
_DECIDING = ("approve", "discuss", "narrow", "edit", "reject", "next")


class PromptText(msgspec.Struct, frozen=True):
    """The text in and around the prompt."""

    placeholder: str
    above: str
    """In the upper border."""
    below: str
    """In the lower border."""
    on_enter: str = ""
    """What Enter does with an empty prompt, where it sends nothing."""


def footer_hints(
    actions: Sequence[AnyAction], context: ActionContext, on_enter: str = ""
) -> list[KeyHintView]:
    """Return the footer: the keys that are valid now, the most important first.

    ``on_enter``: what Enter does while the prompt is empty; without it, it sends.
    """
    shown = [
        action
        for action in actions
        if action.footer and action.key and action.when(context) and action.footer_when(context)
    ]
    labels = {"send": on_enter} if on_enter and context.prompt_empty else {}
    return [
        KeyHintView(
            action.key,
            labels.get(action.id) or _label(action, context),
            action.id in _STRONG,
            action.press,
        )
        for action in sorted(shown, key=lambda action: action.footer)
    ]


def _label(action: AnyAction, context: ActionContext) -> str:
    """Return what a key says; Escape answers a permission, whose agent waits, or the first of several."""
    if action.id == "discuss" and context.discussing:
        return "take it back"
    if action.id == "approve" and not context.is_read:
        return "read on"
    if context.alike and action.id in _OF_SEVERAL:
        return _OF_SEVERAL[action.id].format(context.alike + 1)
    if action.id == "discuss" and context.proposal_kind == "permission":
        return "no, and why"
    if action.id == "approve" and context.is_question:
        return "answer"
    return action.label


def proposal_hints(
    actions: Sequence[AnyAction],
    queue: QueueView,
    *,
    pane: Pane = "prompt",
    has_text: bool = False,
    second: bool = False,
    discussing: bool = False,
    is_read: bool = True,
) -> tuple[KeyHintView, ...]:
    """Return the keys under a proposal, as they work in ``pane``.

    ``has_text``: the prompt is not empty; ``second``: the first of two keys was pressed; ``discussing``: the
    prompt asks for words; ``is_read``: all of it was on the screen.
    """
    front = queue.front
    if front is None:
        turns = [each for each in actions if each.id == "next" and queue.others]
        return tuple(KeyHintView(each.key, "goes there", True, each.press) for each in turns)
    if discussing:
        sends = "says no with your words" if front.kind == "permission" else "sends your words"
        return (
            KeyHintView("⏎", sends, True, "enter"),
            KeyHintView("esc", "takes it back", True, "escape"),
        )
    if second:
        return (
            KeyHintView("y", "approve", True, "y"),
            KeyHintView("any other key", "cancel", press="escape"),
        )
    if has_text:
        sends = "sends your text" if pane == "prompt" else "decides once the prompt is empty"
        return (KeyHintView("⏎", sends, pane == "prompt", "enter"),)
    decides = pane in ("prompt", "proposals", "")
    context = ActionContext(
        pane="proposals",
        proposal_count=queue.total,
        is_read=is_read,
    ).about(front)
    hints = []
    for action in actions:
        if action.id not in _DECIDING or not action.when(context):
            continue
        if action.id in _STRONG and not decides:
            continue  # Enter and Escape are for the pane that has the focus
        label = _label(action, context)
        if action.id == "approve" and is_read and front.second_key and not front.questions:
            label = "then y approve"
        elif action.id == "next" and not front.alike:
            label = f"next ({queue.total})"
        hints.append(KeyHintView(action.key, label, action.id in _STRONG, action.press))
    if not decides:
        hints.insert(0, KeyHintView("esc", "back, to decide", True, "escape"))
    return tuple(hints)


def prompt_text(
    context: ActionContext,
    key_policy: KeyPolicy,
    session: SessionState | None,
    *,
    note: str,
    wider_policy: str,
    starting: bool,
    queue: QueueView,
    review: str = "",
) -> PromptText:
    """Return the text of the prompt.

    ``note`` is shown until the next key. ``wider_policy`` waits for its second key. ``starting``: a
    session is being created. Without a proposal in view, Enter goes to one of ``queue``. ``review`` is what
    can be reviewed here.
    """
    policy = session.policy if session is not None else ""
    start = (
        f"type a task: /review {review}, words" if review else "type a task: words, / for commands"
    )
    placeholder = _placeholder(context, session, starting, is_read=key_policy.is_read) or start
    on_enter = ""
    if queue.front is not None and key_policy.front is None:
        placeholder, on_enter = "a proposal waits: ⏎ shows it", "show it"
    elif queue.front is None and queue.others:
        what = "a task" if session is None else "a message"
        waits = "1 proposal" if queue.others == 1 else f"{queue.others} proposals"
        placeholder, on_enter = f"type {what} · ⏎ goes to {waits} elsewhere", "go there"
    return PromptText(
        placeholder=placeholder,
        above=note or _above(context, key_policy, wider_policy),
        below=f"policy: {policy} · ⇧⇥" if policy else "",
        on_enter=on_enter,
    )


def _placeholder(
    context: ActionContext, session: SessionState | None, starting: bool, *, is_read: bool
) -> str:
    if context.asking_second_key:
        return "y approves, any other key cancels"
    if context.discussing and context.proposal_kind == "permission":
        return "type why not, or ⏎ for a plain no"
    if context.discussing:
        return "type your reply"
    if context.proposal_kind and not is_read:
        return "type a reply, or ⏎ to read on"
    if context.is_question:
        return "⏎ opens the form for your answers"
    if context.proposal_kind and not context.has_session:
        return "type a new task, or ⏎ to approve"
    if context.proposal_kind == "permission":
        return "type why not, or ⏎ to approve"
    if context.alike:
        return f"type a reply to the first, or ⏎ to approve all {context.alike + 1}"
    if context.proposal_kind:
        return "type a reply, or ⏎ to approve"
    if starting:
        return "starting…"
    if session is None:
        return ""
    if session.agent and not session.has_agent:
        if session.in_chain:
            return "this agent works for a chain: decide here what it asks"
        return "this agent works in a terminal of yours: write to it there"
    if session.status == "running":
        return f"type a message for the next {'turn' if session.agent else 'wave'}"
    return f"type {'a reply' if session.status == 'waiting' else 'a message'} to continue"


def _above(context: ActionContext, key_policy: KeyPolicy, wider_policy: str) -> str:
    if wider_policy:
        return f"widen the policy to {wider_policy}?  ^y yes · ⇧⇥ next"
    if context.asking_second_key:
        return "⏎ pressed: press y to approve"
    about = key_policy.discussing
    if about is not None:
        what = "no" if about.kind == "permission" else "discussing"
        return f"{what}: {about.title} · esc takes it back"
    front = key_policy.open
    is_reply = not (context.prompt_empty or context.prompt_command)
    if front is not None and is_reply and context.has_session:
        if front.kind == "permission":
            return f"⏎ says no, with this as the reason: {front.title}"
        return f"⏎ sends this to discuss: {front.title}"
    if context.narrowing:
        return "space keeps or drops · ⏎ approves the ticked items · esc back"
    return ""
