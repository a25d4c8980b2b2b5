"""What a person can do with chains, and with the sessions that work in them."""

from __future__ import annotations

from cockpit.app.actions.action import Action, Moment, When

_OPEN = ("running", "draining")
_RESTS = ("stopped", "failed", "limited")


def _chain(*statuses: str) -> When:
    def when(moment: Moment) -> bool:
        return moment.chain in statuses

    return when


def _in_tree(moment: Moment) -> bool:
    return bool(moment.chain)


def _lively(moment: Moment) -> bool:
    return moment.lively


def _again(moment: Moment) -> bool:
    """What is blocked can be tried again, and a chain at rest go on."""
    return moment.chain in _RESTS or (bool(moment.chain) and moment.task == "blocked")


def _back(moment: Moment) -> bool:
    """In a tree the key folds; in the prompt it moves in what stands there."""
    if moment.pane in ("work", "tasks"):
        return moment.attached and not moment.chain
    return moment.attached and not moment.listing and (moment.pane != "prompt" or moment.empty)


CHAIN_ACTIONS: tuple[Action, ...] = (
    Action(
        "attach", "Chains", "Attach to the session that works there, and follow it", "attach",
        ("enter",), (), "work", when=_lively, footer=1, bound=False, palette=False,
    ),
    Action(
        "back", "Chains", "Come back from a session that you attached to", "back", ("left",),
        when=_back, footer=2, palette=False,
    ),
    Action(
        "glimpse", "Chains", "Peek at the session that works there: its last lines, live", "peek",
        ("space",), (), "work", when=_lively, footer=2, bound=False, palette=False,
    ),
    Action(
        "unfold", "Chains", "Open the chain's tree further", "open", (), ("right",), "work",
        when=_in_tree, footer=4, palette=False,
    ),
    Action(
        "fold", "Chains", "Fold the chain's tree", "fold", (), ("left",), "work",
        when=_in_tree, palette=False,
    ),
    Action(
        "drain", "Chains", "Let the chain come to rest: steps under way are finished", "drain", (), ("D",),
        "work", when=_chain("running"), footer=3,
    ),
    Action(
        "stop_chain", "Chains", "Stop the chain now; it can go on later where it stood", "stop", (),
        ("S",), "work", when=_chain(*_OPEN), footer=3,
    ),
    Action(
        "retry", "Chains", "Try a blocked task again, or go on with a chain that rests", "retry",
        (), ("R",), "work", when=_again, footer=2,
    ),
)  # fmt: skip
