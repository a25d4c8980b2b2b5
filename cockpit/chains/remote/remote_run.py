"""One run on a worker: a clone of its own, the task in a store of its own, its steps before the merge.

While it goes on its journal rows and proposals are sent, and decisions taken. See
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from cockpit.chains.remote.cancel_surely import end_coroutines
from cockpit.chains.remote.jetstream_queue import MessageQueue
from cockpit.chains.remote.message_types import (
    BackMessage,
    DecisionAnswer,
    DecisionMessage,
    JournalRows,
    ProposalNotice,
    RunMessage,
    RunResult,
    StepResult,
    decode,
    encode,
    work_branch,
)
from cockpit.chains.remote.run_message import import_run, read_work
from cockpit.chains.remote.shared_repository import ask_shared, is_unreachable
from cockpit.core.clock import Clock
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.decisions.approval_policy import is_narrower
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import tasks
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.db.database import Store
from cockpit.store.journal.export_rows import select_exported
from cockpit.store.journal.head_anchor import find_anchor_file
from cockpit.store.sessions import proposals
from cockpit.tasks.git import WorktreeError, commit_of, git, shared_git
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, TaskOutcome, WorkSettings

SEND_S = 1.0
"""Seconds between two looks at new rows and proposals of a run."""
ROWS = 500
"""Rows of one message."""
MOST_BASES = 64
"""Commits at which runs began that a machine's copy names; their objects stay."""
_CHAIN_BRANCH = "cockpit-base"
_BASES = "refs/cockpit/base"

Send = Callable[[BackMessage, str], Awaitable[None]]


class WorkerSetup(Struct, frozen=True):
    """What a worker is started with."""

    name: str
    """Its name in journals, for example ``machine-1``."""
    repository: str
    """The repository that all machines can reach, as this machine names it."""
    folder: Path
    """Where it keeps its copy of the repository, and the runs that it does."""
    slots: int
    """Runs that it does at the same time."""
    policy: str
    """The widest approval policy that it takes from a chain."""
    load_settings: Callable[[Path, RunMessage], tuple[RuntimeSettings, WorkSettings]]
    """Loads this machine's settings for a run in a clone."""
    clock: Clock


class RunPlace(Struct, frozen=True):
    """Where a run is done."""

    folder: Path
    """The run's own folder, which does not exist before and after it."""
    mirror: Path
    """The machine's copy of the repository, for all runs."""
    repository: str

    @property
    def clone(self) -> Path:
        return self.folder / "clone"


class RunNotBegun(CockpitError):
    """This machine cannot begin the run now; another one may."""

    code = "worktree"


async def do_run(
    run: RunMessage,
    fence: int,
    place: RunPlace,
    setup: WorkerSetup,
    queue: MessageQueue,
    send: Send,
    stop: asyncio.Event,
) -> RunResult:
    """Do the run's steps before the merge, push its branch, and return its result.

    Everything else, its rows and proposals, is sent by ``send`` while it goes on. Raises
    :class:`RunNotBegun` where this machine cannot get at the repository, ``WorktreeError``,
    ``MessageInvalid`` and the store's errors: nothing of the run counts then.
    """
    try:
        await _clone(run, place)
    except WorktreeError as error:
        if is_unreachable(error):
            raise RunNotBegun(f"The shared repository cannot be reached: {error}") from error
        raise
    paths = ProjectPaths(root=place.clone, home=place.clone, git=True)
    paths.prepare()
    settings, own_work = setup.load_settings(place.clone, run)
    approve = setup.policy if is_narrower(setup.policy, run.approve) else run.approve
    try:
        # In a thread: while the loop waits, nobody renews the lease. The store ends with the run.
        opening = partial(Store.open, paths.database, durable=False)
        with await asyncio.to_thread(opening) as store:
            await store.write(lambda tx: import_run(tx, run))
            context = TaskContext(
                store=store,
                place=paths,
                settings=settings,
                chain_id="",
                ordinal=0,
                chain_branch=_CHAIN_BRANCH,
                approve=approve,
                model=run.model or settings.model.model,
                runner=run.runner,
                work=read_work(run, own_work),
                stops_before_merge=True,
                stop=asyncio.Event(),
            )
            forwarder = _Forwarder(run, fence, setup.name, store, send)
            async with (
                _following(stop, context.stop),
                runtime_over(store, paths, settings) as runtime,
            ):
                taker = _DecisionTaker(runtime, context.stop)
                subject = queue.subjects.decide(run.task_id, run.run, fence)
                answering = queue.answer(subject, taker.take)
                async with answering, forwarder.running():
                    outcome = await run_task(context, run.task_id)
            await forwarder.send_new()
            result = await _result(run, fence, place, setup.name, store, outcome)
            return msgspec.structs.replace(result, last_row=forwarder.last_row)
    finally:
        await asyncio.to_thread(_remove_state, paths)


def _remove_state(paths: ProjectPaths) -> None:
    """Remove the run's store, and what tells whether it was replaced."""
    if (anchor := find_anchor_file(paths.database)) is not None:
        anchor.unlink(missing_ok=True)
    shutil.rmtree(paths.state, ignore_errors=True)


async def _clone(run: RunMessage, place: RunPlace) -> None:
    """Make the run's clone at its base commit; objects are shared with the machine's copy."""
    if not place.mirror.is_dir():
        partial = place.mirror.with_name(f"{place.folder.name}.mirror")
        await shared_git(
            place.mirror.parent, "clone", "--quiet", "--bare", place.repository, str(partial)
        )
        if place.mirror.is_dir():  # another run of this machine was first
            await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        else:
            partial.rename(place.mirror)
    held = place.mirror / _BASES / run.base_commit
    if not held.is_file():
        await shared_git(
            place.mirror, "--git-dir=.", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
            place.repository, f"+refs/heads/{run.base_branch}:{_BASES}/{place.folder.name}",
        )  # fmt: skip
        await asyncio.to_thread(_keep_base, held, held.with_name(place.folder.name))
    place.folder.mkdir(parents=True, exist_ok=True)
    await shared_git(
        place.folder,
        "clone",
        "--quiet",
        "--shared",
        "--no-checkout",
        str(place.mirror),
        str(place.clone),
    )
    try:
        await git(place.clone, "checkout", "--quiet", "-B", _CHAIN_BRANCH, run.base_commit)
    except WorktreeError:
        held.unlink(missing_ok=True)  # the branch did not have that commit
        raise
    await git(place.clone, "switch", "--quiet", "--detach")


def _keep_base(held: Path, fetched: Path) -> None:
    """Let other runs that begin at this commit find it without a fetch; the oldest of many go."""
    with suppress(FileNotFoundError):  # another kind of storage, or another run was first
        fetched.replace(held)
        bases = sorted(held.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in bases[:-MOST_BASES]:
            path.unlink(missing_ok=True)


async def _result(
    run: RunMessage,
    fence: int,
    place: RunPlace,
    worker: str,
    store: Store,
    outcome: TaskOutcome,
) -> RunResult:
    """Push the branch and return what the run brought."""
    tree = store.read_now(lambda c: worktrees.find(c, run.task_id))
    steps = store.read_now(lambda c: task_runs.select_steps(c, run.task_id))
    task = store.read_now(lambda c: tasks.load(c, run.task_id))
    branch = commit = ""
    if tree is not None:
        commit = await commit_of(place.clone, f"refs/heads/{tree.branch}") or ""
    if commit and commit != run.base_commit:
        branch = work_branch(run.task_id, run.run, fence)
        words = ("push", "--quiet", "--force", place.repository, f"{commit}:refs/heads/{branch}")
        await ask_shared(store.clock, place.clone, *words)
    return RunResult(
        task_id=run.task_id,
        run=run.run,
        fence=fence,
        worker=worker,
        status=outcome.status if outcome.status in ("ready", "interrupted") else "failed",
        summary=outcome.summary[:2_000],
        reason=outcome.reason,
        branch=branch,
        commit=commit,
        steps=tuple(
            StepResult(step.step, step.outcome or "", dict(step.detail))
            for step in steps
            if not step.open
        ),
        progress=dict(task.wip or {}),
        tokens=outcome.tokens,
        cost_usd=outcome.cost_usd,
    )


class _DecisionTaker:
    """Decides a run's proposals as the user did at the coordinator, or ends the run after its step."""

    def __init__(self, runtime: Runtime, stop: asyncio.Event) -> None:
        self._runtime = runtime
        self._stop = stop
        self._taken: dict[str, DecisionMessage] = {}

    async def take(self, data: bytes) -> bytes:
        """Take a decision and return the answer; one whose answer was lost comes again, and counts once."""
        decision = decode(DecisionMessage, data)
        if self._taken.get(decision.proposal_id) == decision:
            return encode(DecisionAnswer(True))
        self._taken[decision.proposal_id] = decision
        try:
            await self._decide(decision)
        except CockpitError as error:
            del self._taken[decision.proposal_id]
            return encode(DecisionAnswer(False, str(error)[:2_000]))
        return encode(DecisionAnswer(True))

    async def _decide(self, decision: DecisionMessage) -> None:
        named, shown, words = decision.proposal_id, decision.shown_digest, decision.words
        runtime = self._runtime
        match decision.verdict:
            case "stop":
                self._stop.set()
            case "approved":
                await runtime.approve(named, shown_digest=shown, by="person")
            case "discussed":
                await runtime.discuss(named, shown_digest=shown, words=words, by="person")
            case _:
                await runtime.reject(named, shown_digest=shown, reason=words, by="person")


@asynccontextmanager
async def _following(outer: asyncio.Event, inner: asyncio.Event) -> AsyncIterator[None]:
    """Set ``inner`` once ``outer`` is set."""

    async def follow() -> None:
        await outer.wait()
        inner.set()

    following = asyncio.create_task(follow())
    try:
        yield
    finally:
        following.cancel()


class _Forwarder:
    """Sends the rows and the proposals of a run's store as they come."""

    def __init__(self, run: RunMessage, fence: int, worker: str, store: Store, send: Send) -> None:
        self._sender = {
            "task_id": run.task_id,
            "run": run.run,
            "fence": fence,
            "worker": worker,
        }
        self._store = store
        self._send = send
        self._after = 0
        self._shown: set[str] = set()
        self._sending = asyncio.Lock()

    @property
    def last_row(self) -> int:
        """The number of the last row that was sent."""
        return self._after

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send within the block what comes."""

        async def forward() -> None:
            while True:
                await self.send_new()
                await self._store.clock.sleep(SEND_S)

        forwarding = asyncio.create_task(forward())
        try:
            yield
        finally:
            await end_coroutines([forwarding])
            await asyncio.gather(forwarding, return_exceptions=True)

    async def send_new(self) -> None:
        """Send what is new. A row that may have been sent is sent again: it counts once."""
        async with self._sending:
            while rows := self._store.read_now(self._select):
                await self._send_rows([line for _, line in rows])
                self._after = rows[-1][0]
            for proposal in self._store.read_now(proposals.select_pending):
                if proposal.proposal_id not in self._shown:
                    await self._send(self._notice(proposal), "proposal")
                    self._shown.add(proposal.proposal_id)

    def _select(self, connection: object) -> Sequence[tuple[int, str]]:
        return select_exported(
            connection,  # type: ignore[arg-type]
            after=self._after,
            session_id=None,
            limit=ROWS,
            provisional=False,
        )

    async def _send_rows(self, lines: Sequence[str]) -> None:
        rows = JournalRows(**self._sender, after=self._after, lines=tuple(lines))  # type: ignore[arg-type]
        await self._send(rows, "rows")

    def _notice(self, proposal: proposals.Proposal) -> ProposalNotice:
        return ProposalNotice(
            **self._sender,  # type: ignore[arg-type]
            proposal_id=proposal.proposal_id,
            shown_digest=proposal.shown_digest,
            kind=proposal.kind,
            title=proposal.title,
            risk=proposal.risk,
            body=dict(proposal.body),
        )
