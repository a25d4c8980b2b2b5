"""The views of the four panes, the header and the prompt: frozen records that the widgets draw.

A widget takes views in and posts messages out; it knows no store and no cockpit. Every string here
may be hostile: widgets pass each one through :mod:`widgets.text.clean` before it reaches the terminal.
Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from widgets.work.chain_tree_views import ChainRowView
from widgets.work.task_card_views import TaskLineView

Phase = Literal["created", "observe", "orient", "decide", "act", "learn", "done", "failed"]
Risk = Literal["low", "medium", "high"]
Kind = Literal["context", "action", "profile", "skill", "permission"]
Fate = Literal["kept", "shortened", "dropped", "added", "removed", "changed"]


class HeaderView(msgspec.Struct, frozen=True):
    """The header: project, task, wave and phase or agent and turn, model, spend."""

    project: str
    branch: str = ""
    task: str = ""
    task_type: str = ""
    wave: int = 0
    phase: Phase = "created"
    model: str = ""
    tokens: int = 0
    cost_usd: float | None = None
    pending: int = 0
    state: str = ""
    """The state of the session as text: 'waits for you', 'running', 'done', ''."""
    end_sign: str = ""
    """The sign of how the session ended, drawn with ``state`` in the place of the phase; empty before."""
    end_tone: Literal["dim", "good", "bad", "warn", "accent", "plain"] = "plain"
    warning: str = ""
    """What is wrong with the project's records; it comes first and stays in any width."""
    mode: str = ""
    """The mode of an external agent."""
    plan: str = ""
    """How far an external agent's plan is."""
    context: str = ""
    """How full an external agent's context window is."""
    agent: str = ""
    """The external agent that has the session: it has turns, and no waves."""
    turn: int = 0
    """The turn of an external agent, from 1."""
    of_waves: int = 0
    """How many waves the session is likely to take; 0 where that is not estimated."""


class LineView(msgspec.Struct, frozen=True):
    """One dim, indented line inside a turn: a proposal decided, a packet compiled, a receipt."""

    sign: str
    text: str
    tone: Literal["dim", "good", "bad", "warn", "accent", "plain"] = "dim"
    right: str = ""


class TurnView(msgspec.Struct, frozen=True):
    """One block of the conversation, in the order of the journal.

    ``key`` is stable: the same turn keeps its key while it grows. ``role`` 'wave' draws a rule with
    ``text`` as its label ('wave 7 · decide'); 'note' draws only ``lines``; 'thought' is what the agent
    thought, drawn as one line while it is ``folded``; 'tool' draws ``lines``, and ``text``, what the tool
    changed or said, below them unless it is ``folded``. A new turn goes above the turn that ``before`` names,
    where that is among the last ones, and else below all.
    """

    key: str
    role: Literal["person", "agent", "thought", "tool", "wave", "note", "error"]
    text: str = ""
    lines: tuple[LineView, ...] = ()
    streaming: bool = False
    interrupted: bool = False
    folded: bool = False
    before: str = ""
    speaker: str = ""
    """Who speaks, where a turn of a person was not typed by the user; else it is ``you``."""


class BandView(msgspec.Struct, frozen=True):
    """One budget band: all numbers are tokens."""

    name: str
    used: int
    floor: int
    target: int
    ceiling: int
    facts: int = 0
    dropped: int = 0
    cost: str = ""
    """What its tokens cost in the last call, by their share; empty where no price is known."""


class CacheView(msgspec.Struct, frozen=True):
    """What a provider's cache has of a prompt, in tokens.

    ``cost`` is what the call cost, ``costs`` what the cached and the new tokens did, empty where it is not
    known.
    """

    cached: int
    new: int
    cost: str = ""
    costs: tuple[str, str] = ("", "")


class WaveUseView(msgspec.Struct, frozen=True):
    """The packet of one wave: the tokens of each band, in the order of the bands."""

    wave: int
    used: tuple[tuple[str, int], ...]
    cached: int = 0
    """Tokens of its prompt that the provider had in its cache, or was expected to have."""
    prompt: int = 0
    """Tokens of the prompt; 0 where it was not measured."""
    is_fresh: bool = False
    """Whether the packet was compiled afresh, and not appended to the one before."""
    cost: str = ""


class MeterView(msgspec.Struct, frozen=True):
    """The packet of the current wave, band by band."""

    bands: tuple[BandView, ...] = ()
    token_sent: int = 0
    """Tokens of the prompt."""
    token_budget: int = 0
    digest: str = ""
    facts: int = 0
    dropped: int = 0
    profile: str = ""
    waves_left: int | None = None
    cache: CacheView | None = None
    history: tuple[WaveUseView, ...] = ()
    """The packets of the session's waves, this one included, oldest first."""
    empty: str = "No context yet: the first wave brings it."
    """What stands in place of the bands while there are none."""
    explains: bool = True
    """Whether what the bands hold is explained below ``empty``."""


class ItemView(msgspec.Struct, frozen=True):
    """One item of a context request: what the agent wants to read, and its size in tokens.

    ``tokens`` is None where nobody knows the size before the item is read.
    """

    item: str
    tokens: int | None
    band: str
    level: str = "full"
    refused: str = ""
    note: str = ""


class FileDiffView(msgspec.Struct, frozen=True):
    """One file before and after; ``before`` None means the file is new, ``after`` None removed."""

    path: str
    before: str | None
    after: str | None


class FactView(msgspec.Struct, frozen=True):
    """One fact of a packet, or one difference between two packets.

    ``tokens`` is its size in the packet, or its full size when it was dropped. ``utility`` is fixed
    point: 1,000,000 is one, None is unknown. ``why`` is a word or two. ``pinned`` applies to the next
    packet.
    """

    key: str
    fate: Fate
    source_ref: str
    tokens: int
    level: str = ""
    why: str = ""
    utility: int | None = None
    band: str = ""
    pinned: bool = False


class BandChangeView(msgspec.Struct, frozen=True):
    """A band before and after a profile change: (floor, target, ceiling), in tokens."""

    name: str
    before: tuple[int, int, int]
    after: tuple[int, int, int]


class RuleChangeView(msgspec.Struct, frozen=True):
    """An attention rule before and after, as text; empty without one."""

    name: str
    before: str
    after: str


class GuardCheckView(msgspec.Struct, frozen=True):
    """One check of the guard: its code, whether it passed, and why."""

    code: str
    ok: bool
    message: str = ""


class ProfileChangeView(msgspec.Struct, frozen=True):
    """A profile change: the profile before and after, and the checks of the guard.

    ``duration`` is text ("for the next 3 waves"), ``budget`` the tokens before and after.
    """

    base: str
    duration: str
    reason: str = ""
    budget: tuple[int, int] = (0, 0)
    bands: tuple[BandChangeView, ...] = ()
    rules: tuple[RuleChangeView, ...] = ()
    reads: tuple[str, ...] = ()
    """What sessions would read without asking, a line for each rule."""
    verdict: tuple[GuardCheckView, ...] = ()


class QuestionView(msgspec.Struct, frozen=True):
    """One question of an agent: options as labels with their meaning, or a line of text.

    ``kind`` is ``choice``, ``text``, ``number``, ``integer`` or ``yes_no``; ``other``: a text of the user's
    own may take the place of an option.
    """

    text: str
    header: str = ""
    kind: str = "text"
    options: tuple[tuple[str, str], ...] = ()
    several: bool = False
    other: bool = False
    required: bool = False
    default: str = ""


class ProposalView(msgspec.Struct, frozen=True):
    """One proposal as the user decides it. ``digest`` covers everything that is drawn."""

    proposal_id: str
    kind: Kind
    title: str
    risk: Risk
    digest: str
    session: str = ""
    task: str = ""
    role: str = ""
    age_s: int = 0
    left_s: int | None = None
    revises: str = ""
    changes: tuple[str, ...] = ()
    """The differences from the previous revision, one line each."""
    purpose: str = ""
    question: str = ""
    escalation: str = ""
    items: tuple[ItemView, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    """Parsed fields in order: ('argv', …), ('cwd', …), ('sandbox', …), ('verdict', …)."""
    body: str = ""
    """Markdown body (a review, a commit message), scrolls."""
    diffs: tuple[FileDiffView, ...] = ()
    notes: tuple[str, ...] = ()
    shift: ProfileChangeView | None = None
    """Set for a change of the attention profile."""
    second_key: bool = False
    """True: approving asks for a second, different key (high risk, widening)."""
    chain: str = ""
    """The worker that asks, as text: ``ch-3 s2``."""
    agent: str = ""
    """The external agent that asks for a permission; empty for the built-in one."""
    project: str = ""
    branch: str = ""
    editable: bool = False
    """Whether the user may change it before it is approved."""
    questions: tuple[QuestionView, ...] = ()
    """What the agent asks; Enter opens the form for the answers."""
    rule: str = ""
    """What the user may allow from now on; empty where nothing may be."""
    card_rule: str = ""
    """The rule by which it is drawn as a short card; empty where it is drawn in full."""
    alike: tuple[ProposalView, ...] = ()
    """Others of the same answer that are drawn below it, whole, and approved with it."""

    @property
    def together(self) -> tuple[ProposalView, ...]:
        """All that one Enter approves: itself and what is alike, in order."""
        return (self, *self.alike)

    @property
    def drawn(self) -> str:
        """The revisions that are drawn, by id and digest: what was read of others is not read of these."""
        return " ".join(f"{each.proposal_id}:{each.digest}" for each in self.together)


class WaitingView(msgspec.Struct, frozen=True):
    """One row of the queue: who asks, where, since when, and what for."""

    proposal_id: str
    kind: Kind
    risk: Risk
    who: str
    """Agent, project and branch; the session where no external agent asks."""
    title: str
    age_s: int = 0


class QueueView(msgspec.Struct, frozen=True):
    """The proposal queue: the one in front, of the followed session, its place and how many there are."""

    front: ProposalView | None = None
    index: int = 0
    total: int = 0
    waiting: tuple[WaitingView, ...] = ()
    """The proposals around the one in front, in order; empty while it is the only one."""
    others: int = 0
    """How many are of other sessions."""


class WorkRowView(msgspec.Struct, frozen=True):
    """One row of the work pane: a session or a chain. ``depth`` indents the tree."""

    key: str
    sign: str
    tone: Literal["dim", "good", "bad", "warn", "accent", "plain"]
    title: str
    state: str
    detail: str = ""
    depth: int = 0
    current: bool = False


class WorkPaneView(msgspec.Struct, frozen=True):
    """The work pane.

    ``chains`` are the rows of chain trees. ``work`` sums up the backlog; ``tasks`` are active tasks that
    are in no tree. ``summary`` sums up other sessions; ``rows`` list them.
    """

    summary: str = ""
    rows: tuple[WorkRowView, ...] = ()
    work: str = ""
    tasks: tuple[TaskLineView, ...] = ()
    chains: tuple[ChainRowView, ...] = ()


class KeyHintView(msgspec.Struct, frozen=True):
    """One entry of the footer: a key as people write it, and its current meaning."""

    key: str
    label: str
    strong: bool = False
    press: str = ""
    """The key that a click on it presses, as Textual names it; empty: a click does nothing."""


class CompletionView(msgspec.Struct, frozen=True):
    """One completion in the prompt: the inserted text, and a dim hint next to it."""

    text: str
    hint: str = ""
