"""The state of the screen on which the validity of actions depends."""

from __future__ import annotations

import msgspec

from cockpit.collections.registry import PLAIN_NAMES
from cockpit.core.text import changes_in_several_places
from widgets.views import ProposalView

LISTS = (
    "sessions",
    "requests",
    "session_state",
    "knowledge",
    "doctor",
    *(name.replace("-", "_") for name in PLAIN_NAMES),
)
"""The screens of a list, by the ids of the actions that open them."""
Pane = str
"""Which part of the screen gets the keys: ``prompt``, ``conversation``, ``bands``, ``proposals``, ``work``,
``tasks`` or a list. ``tasks`` is any place with a task under the cursor: the work pane, the board, the queue
and the screen of one task."""


class ActionContext(msgspec.Struct, frozen=True):
    """The state of the screen at the moment of a key. Conditions of actions read nothing else."""

    pane: Pane = "prompt"
    """The pane that has the focus."""
    prompt_empty: bool = True
    prompt_command: bool = False
    """True while the prompt has a command to the screen itself, which answers no proposal."""
    proposal_kind: str = ""
    """The kind of the open proposal; empty without one."""
    alike: int = 0
    """How many others are approved with it."""
    is_question: bool = False
    """True while the open proposal has questions to answer."""
    can_edit: bool = False
    """True while the open proposal is a permission whose input can be changed."""
    can_narrow: bool = False
    """True while the open proposal is a context request with several items that can be ticked."""
    can_trust: bool = False
    """True while the open proposal is a permission that a rule may allow from now on."""
    has_diff: bool = False
    """True while the open proposal has a diff."""
    has_hunks: bool = False
    """True while the open proposal changes one file in several places."""
    is_read: bool = True
    """False while lines of the open proposal have not been on the screen."""
    asking_second_key: bool = False
    """True while a high-risk proposal waits for its second key."""
    discussing: bool = False
    """True while the prompt asks for the text of a discussion."""
    narrowing: bool = False
    """True while the items of a context request can be ticked."""
    session_runs: bool = False
    """True while this process drives the followed session."""
    has_session: bool = False
    """True while a session is followed."""
    has_agent: bool = False
    """True while the followed session is one that cockpit has with an external agent."""
    has_packet: bool = False
    """True once a wave of the followed session has a packet."""
    proposal_count: int = 0
    """The number of proposals in the queue."""
    has_word: bool = False
    """True while a word is explained above the footer."""
    has_selection: bool = False
    """True while text in the prompt is selected."""
    list_open: bool = False
    """True while the prompt shows a list of completions, which then gets the keys."""
    task_status: str = ""
    """The status of the task under the cursor; empty without one."""
    on_board: bool = False
    """True on the board screen."""
    chain_status: str = ""
    """The status of the chain whose tree the cursor is in; empty outside a tree."""
    can_attach: bool = False
    """True while the row under the cursor has a session that can be followed."""
    can_go_back: bool = False
    can_fold: bool = False
    """The conversation has the focus, and shows a thought unfolded."""
    can_unfold: bool = False
    """The conversation has the focus, and shows a thought folded."""
    """True after attaching to a session, until you are back."""
    row_verbs: tuple[str, ...] = ()
    """What can be done on a screen of a list now, most with the row under the cursor."""

    def about(self, front: ProposalView | None) -> ActionContext:
        """Return the context with ``front`` as the open proposal; None is for no open proposal.

        What acts on one proposal is not valid for several that are alike.
        """
        if front is None:
            return self
        if front.alike:
            return msgspec.structs.replace(self, proposal_kind=front.kind, alike=len(front.alike))
        diff = front.diffs[0] if len(front.diffs) == 1 else None
        return msgspec.structs.replace(
            self,
            proposal_kind=front.kind,
            is_question=bool(front.questions),
            can_edit=front.editable,
            can_narrow=sum(not each.refused for each in front.items) > 1,
            can_trust=bool(front.rule),
            has_diff=bool(front.diffs),
            has_hunks=diff is not None
            and changes_in_several_places(diff.before or "", diff.after or ""),
        )
