"""Details of tasks that workers on other machines do."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class RemoteRun(Detail, frozen=True, kw_only=True):
    """An event of a task's run on another machine."""

    task_id: str
    run: int
    """Which run of the task it is, from 1."""
    fence: int
    """How often the run was taken up, from 1; what comes with a lower number is void. 0: not yet."""
    worker: str
    """The worker, by the name that it gave itself."""


class RemoteRunSent(RemoteRun, frozen=True, kw_only=True):
    """The run was put into the queue for workers on other machines."""

    base_commit: str
    """The commit that it starts from."""


class RemoteRunClaimed(RemoteRun, frozen=True, kw_only=True):
    """A worker took the run up; what an earlier one still sends is void."""


class RemoteRunReturned(RemoteRun, frozen=True, kw_only=True):
    """The worker sent the result of the run."""

    status: str
    """``ready`` (all steps up to the merge), ``interrupted`` or ``failed``."""
    commit: str
    """The last commit of its branch; empty where it made none."""
    tokens: int
    """Tokens that its roles spent."""
    cost_usd: float | None
    """US dollars; null where no price is known."""
    summary: str
    """How it ended, in words."""


class RemoteRunVoid(RemoteRun, frozen=True, kw_only=True):
    """What a worker sent was not taken: another one has the run, or it is over."""

    what: str
    """``result``, ``rows`` or ``proposal``."""
    current: int
    """The number that would have been taken; 0 where the run is over."""


class RemoteRunWithdrawn(RemoteRun, frozen=True, kw_only=True):
    """The run was taken out of the queue before a worker took it up."""


class RemoteRowsReceived(RemoteRun, frozen=True, kw_only=True):
    """Rows of the worker's own journal arrived, and follow from those before them."""

    first: int
    """The first row's number in the worker's journal."""
    last: int
    """The last row's number."""
    digest: str
    """The digest of the worker's chain up to the last row."""
