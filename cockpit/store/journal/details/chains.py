"""Details of chains, their workers and their batches."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail, Part


class Progress(Part, frozen=True):
    """How many tasks of a chain's scope are in which status; archived tasks do not count."""

    total: int
    """All tasks."""
    done: int
    """The tasks done."""
    blocked: int
    """The tasks blocked."""
    under_way: int
    """The tasks in progress or in review."""
    ready: int
    """The tasks that can start."""


class ChainChanged(Detail, frozen=True, kw_only=True):
    """A chain was created, resumed, asked to stop, or ended, or its report was written."""

    chain_id: str
    what: str
    """``created``, ``resumed``, ``draining``, ``ended`` or ``reported``."""
    scope: str
    """The part of the backlog that it works on, in words."""
    status: str
    """``running``, ``draining``, ``completed``, ``stopped``, ``failed`` or ``limited``."""
    reason: str
    """Why it ended."""
    stop_now: bool
    """Whether it stops without waiting for the steps in progress."""
    approve: str
    """The approval policy."""
    model: str | None
    """The model, where one was named."""
    runner: str | None
    """The external agent, where one was named."""
    max_cost: float | None
    """The most cost, in US dollars."""
    branch: str
    """The branch that it merges to."""
    report_path: str | None
    """The report's file, once it is written."""
    progress: Progress
    """How the tasks in its scope are."""


class ChainNoted(Detail, frozen=True, kw_only=True):
    """Why a chain was started or resumed where the user did not do that, or what of it runs unconfined."""

    chain_id: str
    what: str
    """``followed`` an external agent's session, ``requested`` by a program over HTTP (the actor is its
    principal), or ``unconfined``: something of it runs outside the sandbox."""
    subject: str = ""
    """Of what is unconfined: ``commands``, or the runner of an external agent."""
    reason: str = ""
    """Why the agent's session ended, or why it cannot be confined."""
    after: int = 0
    """The row that says that the agent's session ended."""
    agent: str = ""
    """The external agent."""
    agent_session: str = ""
    """The agent's own name of the session."""
    request: str = ""
    """The request's id: a repeat of the request finds the chain by it."""


class WorkerChanged(Detail, frozen=True, kw_only=True):
    """A worker of a chain started, ended in order, or was found dead."""

    chain_id: str
    ordinal: int
    """The worker's number in its chain, from 1."""
    pid: int
    """The worker's process."""
    status: str
    """``running``, ``clean``, ``stopped`` or ``crashed``."""
    reason: str
    """Why it ended: ``pressure`` (its token limit), ``quota``, ``empty``, ``drained``, ``limit``, ``held``,
    ``no model: …``, or why it counts as crashed."""
    tokens: int
    """The tokens used."""
    token_limit: int
    """The tokens after which it hands over to the next worker."""
    dropped_share: float
    """The share of facts left out of its packets, 0 to 1."""
    cost_usd: float | None
    """Its cost in US dollars."""
    batches: int
    """How many batches it worked on."""
    started_at: str
    """When it started."""
    beat_at: str
    """Its last heartbeat."""
    ended_at: str | None
    """When it ended."""
    freed: tuple[str, ...] = ()
    """The tasks whose leases it had when it ended; another worker resumes those of one that died."""
    progress: Progress
    """How the tasks in the chain's scope are."""


class ChainDelayed(Detail, frozen=True, kw_only=True):
    """A worker or a step of a task waits: the worker before died, the step broke off for a reason outside its
    task, or a provider's limit has not ended."""

    chain_id: str
    ordinal: int
    """The number of the worker that waits, or whose step does, from 1."""
    task_id: str = ""
    """The task of a step that waits."""
    step: str = ""
    """The step that broke off."""
    attempt: int
    """Which try comes next: 2 after the first failure in a row."""
    delay_s: float
    """The seconds that it waits."""
    starts_at: str
    """When it starts."""
    reason: str
    """Why: how the one before ended, or ``limit until: TIME``."""


class BatchChanged(Detail, frozen=True, kw_only=True):
    """A worker began a batch of tasks, or ended it."""

    chain_id: str
    ordinal: int
    """The worker's number in its chain."""
    batch: int
    """The batch's number in its worker, from 1."""
    size: int
    """The most tasks in the batch."""
    outcome: str = ""
    """``completed``, ``interrupted`` or ``failed``; empty where it begins."""
    task_ids: tuple[str, ...] = ()
    """The tasks claimed for a batch that begins."""
    done: tuple[str, ...] = ()
    """The tasks done."""
    blocked: tuple[str, ...] = ()
    """The tasks blocked."""
    interrupted: tuple[str, ...] = ()
    """The tasks left for the next worker."""
    review_failures: int = 0
    """How many reviews failed."""
    tokens: int = 0
    """The tokens used in this batch."""
    next_size: int = 0
    """The most tasks in the next batch."""


class RemoteRun(Detail, frozen=True, kw_only=True):
    """An event of a task's run on another machine."""

    task_id: str
    run: int
    """Which run of the task it is, from 1."""
    fence: int
    """How often the run was claimed, from 1; messages with a lower number are void. 0: not yet."""
    worker: str
    """The worker, by the name that it gave itself."""


class RemoteRunChanged(RemoteRun, frozen=True, kw_only=True):
    """A run was sent, claimed, returned or withdrawn, or a message of a worker was void."""

    status: str
    """``sent`` into the queue, ``claimed`` by a worker, ``returned`` with a result, ``withdrawn`` from the
    queue before a worker claimed it; or ``void``, where a worker's message was refused: another worker has
    the run, or it is over."""
    commit: str = ""
    """The commit that a run that was sent starts from; the last one of a returned run's branch, if any."""
    outcome: str = ""
    """Of a result: ``ready`` (all steps up to the merge), ``interrupted`` or ``failed``."""
    tokens: int = 0
    """Tokens that the roles of a returned run spent."""
    cost_usd: float | None = None
    """US dollars of a returned run; null where no price is known."""
    summary: str = ""
    """How a returned run ended, in words; of what is void: ``result``, ``rows`` or ``proposal``."""
    current: int = 0
    """The number that would have been accepted of what is void; 0 where the run is over."""


class RemoteRowsReceived(RemoteRun, frozen=True, kw_only=True):
    """Rows of the worker's own journal arrived, and follow from those before them."""

    first: int
    """The first row's number in the worker's journal."""
    last: int
    """The last row's number."""
    digest: str
    """The digest of the worker's chain up to the last row."""
