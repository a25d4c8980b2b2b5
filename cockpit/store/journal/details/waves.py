"""Details of waves: their phases, the context they read, packets, model calls, plans and feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail, Part


class WaveCreated(Detail, frozen=True, kw_only=True):
    """A wave was created for an event."""

    ordinal: int
    event_id: str | None
    """The event that the wave handles."""


class WaveMoved(Detail, frozen=True, kw_only=True):
    """The wave entered its next phase."""

    ordinal: int = 0
    phase: str = ""
    """The phase that the wave entered."""


class WaveAdvanced(WaveMoved, frozen=True, kw_only=True):
    """The wave has read its context, compiled its packet, stored its plan or ended its actions, and entered
    the phase that follows."""


class WaveStarted(WaveMoved, frozen=True, kw_only=True):
    """The wave entered Observe, with a version of its profile pinned."""

    waves_left: int | UnsetType = UNSET
    """How many more waves the running temporary profile change applies to; missing without one."""
    returns: str | UnsetType = UNSET
    """Why the wave goes back to Orient for an action that was kept; missing where it does not."""


class WaveCompleted(WaveMoved, frozen=True, kw_only=True):
    """The wave is complete."""


class WaveFailed(Detail, frozen=True, kw_only=True):
    """The wave failed; the row's ``error_code`` says how."""

    ordinal: int
    phase: str
    """``failed_retryable`` or ``failed_terminal``."""
    message: str
    """The error."""


class WaveReentered(Detail, frozen=True, kw_only=True):
    """A failed wave was resumed in the phase in which it failed."""

    ordinal: int
    phase: str
    """The phase in which the wave continues."""


class ContextItem(Part, frozen=True, kw_only=True):
    """One item of a context request."""

    item: str
    """The item, for example ``file:src/retry.py``."""
    level: str | UnsetType = UNSET
    """The level of detail: ``full``, ``summary`` or ``reference``."""
    tokens: int | UnsetType | None = UNSET
    """The estimated tokens of the item; null is unknown."""
    band: str | UnsetType = UNSET
    """The band that the item's facts enter."""
    refused: str | UnsetType = UNSET
    """Why the item is refused; empty for an item that may be read."""
    note: str | UnsetType = UNSET
    """A remark for the user."""


class ContextRequested(Detail, frozen=True, kw_only=True):
    """Context was requested, by the model or by the task type."""

    request_id: str
    proposal_id: str
    """The proposal that asks for approval; empty for an automatic request."""
    purpose: str
    """Why the context is needed."""
    question: str
    """The question that the context is to answer."""
    escalation: str
    """Why more than the usual context is needed."""
    items: tuple[ContextItem, ...]
    """The items requested."""
    auto: bool
    """Whether it needs no approval: the task type or an attention rule made it, or it reads nothing."""
    rule: str | UnsetType = UNSET
    """The attention rule that made the request."""
    stored: int | UnsetType = UNSET
    """How many of the items are served from stored facts: they were read before, and nothing changed."""


class FetchedItem(Part, frozen=True, kw_only=True):
    """The result of reading one item of a context request."""

    item: str
    """The item."""
    facts: int | UnsetType = UNSET
    """How many facts it gave."""
    new: int | UnsetType = UNSET
    """How many of them the packet did not contain in full already."""
    tokens: int | UnsetType = UNSET
    """The tokens of its facts."""
    error: str | UnsetType = UNSET
    """Why the item, or part of it, could not be read; empty without an error."""


class ContextFetched(Detail, frozen=True, kw_only=True):
    """The approved items of a context request were read."""

    request_id: str
    items: tuple[FetchedItem, ...]
    """The result of each item."""
    facts: int
    """How many facts all items gave."""
    new: int | UnsetType
    """How many of them the packet did not contain in full already."""
    tokens: int
    """The tokens of all facts."""


class ContextRefused(Detail, frozen=True, kw_only=True):
    """A context request was refused."""

    message: str
    """The reason, as the model reads it."""
    request: Mapping[str, Any]
    """The request as the model made it: ``purpose``, ``question``, ``scope``, ``escalation``."""
    guard: str
    """The guard that refused; empty where a source did."""


class ObservationJobs(Detail, frozen=True, kw_only=True):
    """A wave's observation jobs ended: one row for each wave that read something."""

    planned: int
    """How many jobs were planned."""
    done: int
    """How many succeeded."""
    failed: int
    """How many failed."""
    timed_out: int
    """How many exceeded their time limit."""
    refused: Mapping[str, int]
    """How many were refused, by reason: ``job_cap``, ``source_quota``, ``source_disabled``, and
    ``fact_cap`` (facts)."""
    sources: Mapping[str, Mapping[str, int]]
    """How many jobs each source had, by status."""
    latency_ms: Mapping[str, int]
    """The latency of the jobs in milliseconds: ``p50``, ``p95`` and ``max``."""
    latency_buckets: Mapping[str, int]
    """How many jobs took how long: by upper bound in milliseconds, ``+Inf`` for longer."""
    latency_sum_ms: int
    """The latencies of all jobs together, in milliseconds."""


class BandUse(Part, frozen=True, kw_only=True):
    """One band of a packet."""

    band: str
    """The band's name."""
    used: int
    """The tokens used."""
    min: int
    """The guaranteed tokens."""
    target: int
    """The tokens aimed at."""
    max: int
    """The most tokens."""
    facts: int
    """How many facts the band contains."""
    dropped: int
    """How many facts were left out of it."""


class EpochUse(Part, frozen=True, kw_only=True):
    """How a packet stands in its epoch, in tokens of its prompt."""

    first: int
    """The wave that began the epoch."""
    reason: str
    """Why this wave began it; empty: it did not."""
    rendered_tokens: int
    """The tokens of the prompt."""
    cached_expected: int
    """Those that the provider is expected to have in its cache."""
    headroom: int
    """Those that it leaves free for the waves after it, where it begins an epoch."""


class PacketCompiled(Detail, frozen=True, kw_only=True):
    """A wave's packet was compiled."""

    digest: str
    """The packet's digest: the same facts and profile give the same one."""
    ordinal: int
    token_used: int
    """The tokens that the packet uses."""
    token_budget: int
    """The tokens that the profile allows."""
    facts: int
    """How many facts the packet contains."""
    dropped: int
    """How many facts were left out."""
    drops: Mapping[str, int]
    """How many facts were left out, by reason."""
    bands: tuple[BandUse, ...]
    """The packet's bands, in their order."""
    epoch: EpochUse | UnsetType = UNSET
    """How it stands in its epoch; left out for a packet that stands alone."""

    @property
    def sent(self) -> int:
        """The tokens of the prompt; of a packet that was not rendered those that it uses."""
        rendered = 0 if isinstance(self.epoch, UnsetType) else self.epoch.rendered_tokens
        return rendered or self.token_used


class PacketVerified(Detail, frozen=True, kw_only=True):
    """A stored packet was compiled again and compared with the stored one."""

    digest: str
    """The stored digest."""
    recompiled: str
    """The digest of the packet compiled now."""
    ok: bool
    """Whether both are the same."""


class ModelCalled(Detail, frozen=True, kw_only=True):
    """The model is called."""

    model: str
    """The model's full name."""
    attempt: int
    """Which attempt of this wave it is, from 1."""


class ModelRetried(Detail, frozen=True, kw_only=True):
    """A model call failed and is tried again."""

    model: str
    """The model's full name."""
    reason: str
    """Why the call failed."""
    attempt: int
    """Which attempt failed, from 1."""
    wait_s: float
    """Seconds until the next attempt."""


PROVIDERS = ("anthropic:", "openai:", "openai-compatible:")
"""How the names of models begin whose tokens a provider counts."""


class ModelCompleted(Detail, frozen=True, kw_only=True):
    """The model answered, or an external agent reported its usage."""

    model: str
    """The model's full name; ``runner:NAME`` for an external agent."""
    input_tokens: int
    """Tokens read."""
    output_tokens: int
    """Tokens written."""
    cached_tokens: int
    """Tokens read from the provider's cache."""
    cost_usd: float | None
    """The cost in US dollars, where a price is known."""
    stop: str
    """Why the answer ended."""
    input_usd: float | UnsetType = UNSET
    """The cost of the tokens read, in US dollars; missing where no price is known."""
    cached_usd: float | UnsetType = UNSET
    """The cost of the tokens read from the cache, in US dollars; missing where no price is known."""
    calls_as_text: int | UnsetType = UNSET
    """Calls that the model printed as text in place of making them, where it did."""


class ModelThought(Detail, frozen=True, kw_only=True):
    """The model thought before it answered."""

    text: str
    """The readable part of the thought, masked; empty where the provider encrypts it."""
    blocks: int
    """Blocks of the provider's."""
    kept: bool
    """Whether they are sent back to the provider; not if a secret is suspected in one of them."""


class ModelMalformedCall(Detail, frozen=True, kw_only=True):
    """The model called a tool in a way that could not be read."""

    tool: str
    """The tool's name."""
    message: str
    """The error, as the model reads it."""
    arguments: str
    """The call's arguments as the model wrote them, cut at 4,000 characters."""


class PlannedCall(Part, frozen=True, kw_only=True):
    """One tool call of a plan."""

    kind: str
    """The tool."""
    title: str
    """The call in one line."""
    key: str
    """The call's idempotency key."""


class PlanCommitted(Detail, frozen=True, kw_only=True):
    """A wave's plan was stored."""

    plan_id: str
    """The plan's id."""
    calls: tuple[PlannedCall, ...]
    """The calls, in their order."""


class FactPinned(Detail, frozen=True, kw_only=True):
    """The user pinned a fact, so that following packets contain it, or unpinned it."""

    fact_id: str
    """The fact's id."""
    pinned: bool
    """Whether it is pinned from now on."""
    source_ref: str
    """Where the fact comes from."""
    band: str
    """The fact's band."""
    from_wave: int
    """The first wave that the pin applies to."""


class MissedSignal(Part, frozen=True, kw_only=True):
    """Context that a wave needed and its packet did not contain."""

    item: str
    """The item that was requested later."""
    fact_id: str
    """The fact that the packet lacked."""
    source_type: str
    """The fact's kind of source."""
    source_ref: str
    """Where the fact comes from."""
    band: str
    """The fact's band."""
    held: str
    """The part of the fact that the packet contained."""
    tokens: int
    """The fact's tokens."""


class UserVerdict(Part, frozen=True, kw_only=True):
    """The user's own verdict on a wave."""

    verdict: str
    """``good`` or ``bad``."""
    words: str
    """The user's remark."""
    by: str
    """The user or principal who gave it."""


class FeedbackRecorded(Detail, frozen=True, kw_only=True):
    """A wave's decision was measured or judged; a later row of the same wave replaces an earlier one."""

    wave_id: str
    """The wave."""
    ordinal: int
    decision_quality_score: float | None
    """The quality of the decision, 0 to 1."""
    measures: Mapping[str, Any]
    """The measures behind the score, each 0 to 1."""
    missed_signals: tuple[MissedSignal, ...]
    """Facts that the packet lacked."""
    regret: bool
    """Whether the decision was taken back; true only in the first row that says so."""
    regrets: tuple[str, ...]
    """Why the decision counts as taken back."""
    operator: UserVerdict | None
    """The user's verdict."""
