"""What the keys mean at this moment, in words: the footer, the panel's hints, the prompt's border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.app.actions.action import Action, Moment
from cockpit.app.key_policy import Steering
from cockpit.app.projection.header import SessionState
from widgets.views import KeyHintView, QueueView

_START = "what shall we do?  /review-pr 24 · main..HEAD · or plain words"
_STRONG = ("approve", "second", "discuss")
_DECIDING = ("approve", "discuss", "narrow", "edit", "reject", "next")


@dataclass(frozen=True, slots=True)
class PromptWords:
    """The prompt's placeholder, and the words in its upper and lower border."""

    hint: str
    above: str
    below: str


def footer(actions: Sequence[Action], moment: Moment) -> list[KeyHintView]:
    """The key bar: what is valid now, the most important first."""
    valid = [
        each
        for each in actions
        if each.footer and each.key and each.when(moment) and each.told(moment)
    ]
    return [
        KeyHintView(each.key, each.label, each.id in _STRONG)
        for each in sorted(valid, key=lambda each: each.footer)
    ]


def deciding(
    actions: Sequence[Action], queue: QueueView, *, second: bool = False
) -> tuple[KeyHintView, ...]:
    """The keys under a proposal; ``second``: the first of two keys was pressed."""
    front = queue.front
    if front is None:
        return ()
    if second:
        return (KeyHintView("y", "approve", True), KeyHintView("any other key", "does not"))
    moment = Moment(pane="proposals", kind=front.kind, waiting=queue.total)
    hints = []
    for each in actions:
        if each.id not in _DECIDING or not each.when(moment):
            continue
        label = each.label
        if each.id == "approve" and front.second_key:
            label = "then y approve"
        elif each.id == "next":
            label = f"next ({queue.total})"
        hints.append(KeyHintView(each.key, label, each.id in _STRONG))
    return tuple(hints)


def prompt(
    moment: Moment,
    steering: Steering,
    session: SessionState | None,
    *,
    note: str,
    widening: str,
    starting: bool,
    hidden: bool,
) -> PromptWords:
    """What the prompt says. ``note`` is for now only, ``widening`` a policy that waits for its
    second key, ``hidden`` tells that a proposal waits where it cannot be seen."""
    policy = session.policy if session is not None else ""
    return PromptWords(
        hint="a proposal waits: ⏎ shows it" if hidden else _hint(moment, session, starting),
        above=note or _above(moment, steering, widening),
        below=f"policy: {policy} · ⇧⇥" if policy else "",
    )


def _hint(moment: Moment, session: SessionState | None, starting: bool) -> str:
    if moment.asking:
        return "y approves, any other key does not"
    if moment.discussing:
        return "what is on your mind?"
    if moment.kind and not moment.session:
        return "begin something new, or ⏎ to approve the proposal"
    if moment.kind:
        return "say what to change, or ⏎ to approve the proposal"
    if starting:
        return "beginning…"
    if session is None:
        return _START
    if session.status == "running":
        return "say something for the next wave"
    return "your turn" if session.status == "waiting" else "say how to go on"


def _above(moment: Moment, steering: Steering, widening: str) -> str:
    if widening:
        return f"widen the policy to {widening}?  ^y yes · ⇧⇥ next"
    if moment.asking:
        return "⏎ pressed: once more, with y"
    about = steering.discussing
    if about is not None:
        return f"discussing: {about.title}"
    front = steering.open
    if front is not None and not moment.empty and moment.session:
        return f"⏎ sends this as discussion of: {front.title}"
    if moment.narrowing:
        return "space keeps or drops · ⏎ approves what is ticked · esc back"
    return ""
