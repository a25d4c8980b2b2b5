"""What crosses machines: a task's run, who takes it up, its rows, proposals and result.

No message carries a key of a provider or an address of a repository: each worker has its own. Specified in
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from cockpit.core.errors import CockpitError
from cockpit.core.read_record import decode_json

M = TypeVar("M", bound=msgspec.Struct)

_TASK = re.compile(r"T-[0-9]{1,12}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMBERS = (
    *(("run", 1), ("fence", 0), ("tokens", 0), ("after", 0)),
    *(("last_row", 0), ("message", 0), ("delivery", 0)),
)
"""Fields that hold a number, each with the least that it may be."""
_MOST = 2**53
"""The largest number that a message may hold where it is counted or stored."""


class MessageInvalid(CockpitError):
    """A message is not of the shape that it must have."""

    code = "message"


class MessageEarly(CockpitError):
    """A message came before one that it follows: the server gave it out again, in another order."""

    code = "message"


class RunMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task's run, for any worker of the queue."""

    task_id: str
    run: int
    chain_id: str
    base_branch: str
    """The branch of the shared repository that holds :attr:`base_commit`."""
    base_commit: str
    approve: str
    """The chain's approval policy; a worker may have a narrower one."""
    model: str | None
    runner: str | None
    work: Mapping[str, Any]
    """The coordinator's ``[work]`` settings."""
    backlog: tuple[Mapping[str, Any], ...]
    """The task, what it depends on, their stories and epics, as lines of an export."""
    handoffs: tuple[Mapping[str, Any], ...]
    """The handoffs of the tasks that it depends on."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worker asks for a run that it got from the queue."""

    task_id: str
    run: int
    worker: str
    message: int = 0
    """The number that the run's message has at the server."""
    delivery: int = 0
    """How often the server has given that message out."""


class ClaimAnswer(msgspec.Struct, frozen=True):
    """The answer: the number under which the worker has the run; 0 where the run is over."""

    fence: int


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which worker sends something, and under which number it has the run."""

    task_id: str
    run: int
    fence: int
    worker: str


class StepResult(msgspec.Struct, frozen=True):
    """A step that the worker took, with its outcome."""

    step: str
    outcome: str
    detail: Mapping[str, Any]


class RunResult(Sender, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a run ended on the worker."""

    status: str
    """``ready`` (every step before the merge is over), ``interrupted`` or ``failed``."""
    summary: str
    reason: str = ""
    branch: str = ""
    """The branch of the shared repository with the work; empty where there is none."""
    commit: str = ""
    """Its last commit."""
    steps: tuple[StepResult, ...] = ()
    progress: Mapping[str, Any] = {}
    """The work in progress as the worker's store has it."""
    tokens: int = 0
    cost_usd: float | None = None
    last_row: int = 0
    """The last row of the worker's journal that was sent; without it the result does not count."""


class JournalRows(Sender, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rows of the worker's own journal, as lines of an export, in order."""

    after: int = 0
    """The last row that was sent before these; 0 for none."""
    lines: tuple[str, ...]


class ProposalNotice(Sender, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A proposal of the worker that waits for the user."""

    proposal_id: str
    shown_digest: str
    kind: str
    title: str
    risk: str
    body: Mapping[str, Any]


class DecisionMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's decision, bound to the digest of what was shown."""

    proposal_id: str
    shown_digest: str
    verdict: str
    """``approved``, ``discussed`` or ``rejected``."""
    words: str = ""


class DecisionAnswer(msgspec.Struct, frozen=True):
    """Whether the worker took the decision; ``error`` says why not."""

    taken: bool
    error: str = ""


BackMessage = RunResult | JournalRows | ProposalNotice
"""What workers send to the coordinator."""
KINDS: Mapping[str, type[RunResult | JournalRows | ProposalNotice]] = {
    "result": RunResult,
    "rows": JournalRows,
    "proposal": ProposalNotice,
}


def encode(message: msgspec.Struct) -> bytes:
    """Return a message as JSON."""
    return msgspec.json.encode(message)


def decode(kind: type[M], data: bytes) -> M:
    """Read a message. Raises :class:`MessageInvalid` for another shape, and for names that are none."""
    try:
        message = decode_json(data, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageInvalid(f"A message is no {kind.__name__}: {error}.") from error
    for field, form in (("task_id", _TASK), ("worker", _NAME)):
        value = getattr(message, field, None)
        if value is not None and not form.fullmatch(value):
            raise MessageInvalid(f"A {kind.__name__} has the {field} {str(value)[:80]!r}.")
    for field in ("base_commit", "commit"):
        value = getattr(message, field, "")
        if value and not _COMMIT.fullmatch(value):
            raise MessageInvalid(f"A {kind.__name__} has the {field} {str(value)[:80]!r}.")
    for field, least in _NUMBERS:
        if not least <= getattr(message, field, least) <= _MOST:
            raise MessageInvalid(f"A {kind.__name__} has a {field} below {least} or above {_MOST}.")
    return message


def check_worker_name(name: str) -> str:
    """Return a worker's name. Raises :class:`MessageInvalid` for one that is none."""
    if not _NAME.fullmatch(name):
        raise MessageInvalid(
            f"{name[:80]!r} is not a name of a worker: use letters, digits, - and _, at most 64."
        )
    return name


SHARED_PREFIX = "cockpit-remote/"
"""The start of branches in the shared repository. Git keeps none below ``cockpit``, which may be a user's."""


def work_branch(task_id: str, run: int, fence: int) -> str:
    """Return the branch of the shared repository for what a worker did under ``fence``."""
    return f"{SHARED_PREFIX}{task_id}-{run}-{fence}"


def base_branch(chain_id: str) -> str:
    """Return the branch of the shared repository that holds the commits which a chain's tasks start from."""
    return f"{SHARED_PREFIX}base-{chain_id}"
