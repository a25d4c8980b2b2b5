"""Everything that a person can do, once: bindings, footer, palette and help all read this list.

An action says when it is valid; what it does is the method ``act_ID`` of the screen. The user's
``[keys]`` give an action other keys (:func:`remapped`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cockpit.app.actions.action import Action, Moment, spelled
from cockpit.app.actions.backlog_registry import WORK_ACTIONS
from cockpit.app.actions.chain_registry import CHAIN_ACTIONS


def _front(moment: Moment) -> bool:
    return bool(moment.kind) and not moment.asking


def _deciding(moment: Moment) -> bool:
    """Only there Enter and Escape decide; other panes have their own use for them."""
    return moment.pane in ("prompt", "proposals", "")


def _undisturbed(moment: Moment) -> bool:
    """A chord may shadow the prompt's own editing only while there is nothing to edit."""
    return moment.pane != "prompt" or moment.empty


def _unlisted(moment: Moment) -> bool:
    return not moment.listing


def _free(moment: Moment) -> bool:
    return _front(moment) and _undisturbed(moment)


ACTIONS: tuple[Action, ...] = (
    Action(
        "approve", "Decide", "Approve the proposal in front", "approve", ("enter",),
        when=lambda m: _front(m) and _undisturbed(m) and not m.discussing,
        footer=1, told=_deciding, bound=False, palette=False,
    ),
    Action(
        "second", "Decide", "Approve what is of high risk, after Enter", "approve", ("y",),
        when=lambda m: m.asking, footer=1, bound=False, palette=False,
    ),
    Action(
        "send", "Say", "Send what stands in the prompt; it discusses an open proposal", "send",
        ("enter",), when=lambda m: m.pane == "prompt" and (not m.empty or not m.kind),
        footer=1, bound=False, palette=False,
    ),
    Action(
        "discuss", "Decide", "Discuss the proposal in front: nothing happens, say what you think",
        "discuss", ("escape",), when=lambda m: _front(m) and _undisturbed(m),
        footer=2, told=_deciding, bound=False, palette=False,
    ),
    Action(
        "narrow", "Decide", "Narrow the context request to some of its items", "narrow",
        ("ctrl+n",), ("n",), "proposals",
        when=lambda m: _free(m) and m.kind == "context", footer=3,
    ),
    Action(
        "edit", "Decide", "Edit the proposed action in your editor", "edit", ("ctrl+e",), ("e",),
        "proposals", when=lambda m: _free(m) and m.kind == "action", footer=3,
    ),
    Action(
        "reject", "Decide", "Reject the proposal in front, with a reason", "reject", ("ctrl+x",),
        ("r",), "proposals", when=_free, footer=4,
    ),
    Action(
        "next", "Decide", "Put the next proposal in front", "next", ("alt+n", "ctrl+down"),
        ("right_square_bracket",), "proposals", when=lambda m: m.waiting > 1, footer=5,
    ),
    Action(
        "previous", "Decide", "Put the previous proposal in front", "previous",
        ("alt+p", "ctrl+up"), ("left_square_bracket",), "proposals", when=lambda m: m.waiting > 1,
    ),
    Action(
        "newline", "Say", "Begin a new line in the prompt", "newline",
        ("shift+enter", "ctrl+j", "alt+enter"), when=lambda m: m.pane == "prompt",
        bound=False, palette=False,
    ),
    Action(
        "editor", "Say", "Write in your editor", "editor", ("ctrl+g",), footer=13,
    ),
    Action(
        "history", "Say", "Search what you sent before", "history", ("ctrl+r",),
        when=lambda m: m.pane == "prompt", bound=False, palette=False,
    ),
    Action(
        "interrupt", "Session", "Interrupt the session; twice to quit", "interrupt", ("ctrl+c",),
        when=lambda m: not m.selection, footer=6, told=lambda m: m.running,
    ),
    Action(
        "policy", "Session", "Change what is approved without you", "policy", ("shift+tab",),
        when=lambda m: m.session,
    ),
    Action("sessions", "Session", "Follow another session", "sessions", ("f6",)),
    Action("new", "Session", "Begin a new session", "new", ("f7",), when=lambda m: m.session),
    Action(
        "model", "Session", "Change the session's model", "model", when=lambda m: m.session,
    ),
    Action(
        "task_type", "Session", "Change the session's task type", "task type",
        when=lambda m: m.session,
    ),
    Action(
        "good", "Session", "Say that the last wave went well", "good", (), ("plus",),
        "conversation", when=lambda m: m.oriented,
    ),
    Action(
        "bad", "Session", "Say that the last wave went badly, and why", "bad", (), ("minus",),
        "conversation", when=lambda m: m.oriented,
    ),
    Action(
        "packet_diff", "Look", "What changed in the packet between two waves", "packet diff",
        ("f8",), ("d",), "bands", when=lambda m: m.oriented,
    ),
    Action(
        "panes", "Look", "Go to the next pane", "panes", ("tab",), when=_unlisted, footer=10
    ),
    Action("conversation", "Look", "Conversation alone, and back", "conversation", ("f2",)),
    Action("bands", "Look", "Bands alone, and back", "bands", ("f3",)),
    Action("proposals", "Look", "Proposals alone, and back", "proposals", ("f4",)),
    Action("work", "Look", "Chains & work alone, and back", "work", ("f5",)),
    Action("board", "Look", "The board of all tasks, and back", "board", ("ctrl+t",), footer=12),
    Action("to_work", "Look", "Go into Chains & work, and back", "work", ("alt+w",)),
    Action("expand", "Look", "Give the pane the whole screen, and back", "expand", ("ctrl+o",)),
    Action(
        "page_up", "Look", "Scroll the conversation back", "back", ("pageup",),
        when=lambda m: m.pane == "prompt", palette=False,
    ),
    Action(
        "page_down", "Look", "Scroll the conversation on", "on", ("pagedown",),
        when=lambda m: m.pane == "prompt", palette=False,
    ),
    *CHAIN_ACTIONS,
    *WORK_ACTIONS,
    Action("theme", "Look", "Change the theme", "theme"),
    Action(
        "palette", "Program", "All commands", "palette", ("ctrl+p",), when=_unlisted, footer=11,
        palette=False,
    ),
    Action("help", "Program", "Keys and commands", "help", ("f1",), footer=14),
    Action(
        "leave", "Program", "Quit, when the prompt is empty", "quit", ("ctrl+d",),
        when=_undisturbed, palette=False,
    ),
    Action("quit", "Program", "Quit", "quit"),
)  # fmt: skip

FIXED = frozenset(action.id for action in ACTIONS if not action.bound)
"""Actions whose keys belong to a widget: the two keys of decisions stay where they are."""


def remapped(keys: Mapping[str, str | Sequence[str]]) -> tuple[tuple[Action, ...], list[str]]:
    """The actions under the user's ``[keys]``, and what was wrong with them, in words.

    A key that is given to an action is taken away from any other.
    """
    wrong: list[str] = []
    given: dict[str, tuple[str, ...]] = {}
    known = {action.id for action in ACTIONS}
    taken: dict[str, str] = {key: action.id for action in ACTIONS if not action.bound
                             for key in action.keys}  # fmt: skip
    for name, value in keys.items():
        wanted = tuple(_parsed(value))
        if name not in known:
            wrong.append(f"[keys] {name}: there is no such action; F1 lists those there are")
            continue
        if name in FIXED:
            wrong.append(f"[keys] {name}: this key cannot be changed")
            continue
        for key in wanted:
            if key in taken:
                wrong.append(f"[keys] {name}: {spelled(key)} does {taken[key]} already")
        given[name] = tuple(key for key in wanted if key not in taken)
        taken |= dict.fromkeys(given[name], name)
    return tuple(_with_keys(action, given) for action in ACTIONS), wrong


def _with_keys(action: Action, given: Mapping[str, tuple[str, ...]]) -> Action:
    if action.id in given:
        return replace(action, keys=given[action.id])
    if not action.bound:
        return action
    elsewhere = {key for keys in given.values() for key in keys}
    return replace(action, keys=tuple(key for key in action.keys if key not in elsewhere))


def _parsed(value: str | Sequence[str]) -> Iterable[str]:
    listed = value.split(",") if isinstance(value, str) else value
    return (key.strip().lower() for key in listed if key.strip())
