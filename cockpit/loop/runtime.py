"""The runtime: what every face (screen, command line, later HTTP and MCP) calls.

Faces have no logic of their own; they start, run, say and decide here, and draw what the journal says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any

from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.act.workspace import stand_on
from cockpit.core.clock import Clock, Ids
from cockpit.core.errors import IllegalTransition
from cockpit.core.project_paths import ProjectPaths
from cockpit.learn.judge_waves import spoken
from cockpit.learn.resume_text import briefing
from cockpit.loop.change_waiter import Pulse
from cockpit.loop.decisions import edit_action
from cockpit.loop.decisions.decide_proposal import Ruling, rule
from cockpit.loop.decisions.profile_change_results import Outcome
from cockpit.loop.intake.first_message import Opening, opening
from cockpit.loop.intake.intent import Task, resolve
from cockpit.loop.intake.review_target import Repository
from cockpit.loop.intake.task_types import load_task_types
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.loop.session_loop import SAID, SUBMITTED, run_session
from cockpit.loop.views import packet_inspection
from cockpit.loop.views.log_lines import logged
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog import tasks
from cockpit.store.context import pins, profiles
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages, proposals, sessions
from cockpit.store.sessions.sessions import Session

COMPLETIONS = 50


@asynccontextmanager
async def open_runtime(
    place: ProjectPaths,
    settings: RuntimeSettings,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> AsyncIterator[Runtime]:
    """Open the project's store and everything above it; all of it ends with the context.

    Raises the store's typed errors and ``TaskTypeInvalid``.
    """
    place.prepare()
    with Store.open(place.database, clock, ids) as store:
        async with runtime_over(store, place, settings) as runtime:
            yield runtime


@asynccontextmanager
async def runtime_over(
    store: Store, place: ProjectPaths, settings: RuntimeSettings
) -> AsyncIterator[Runtime]:
    """Everything above a store that is open, and stays so. Raises ``TaskTypeInvalid``."""
    types = load_task_types(place.root, settings.user_dir)
    ground_repo = await _repository(place)
    ground = await stand_on(place.root, repo=ground_repo)
    async with logged(store, settings.log_json):
        yield Runtime(Engine(store, place, settings, types, ground, Pulse(store), ground_repo))


class Runtime:
    """One open project. Every method raises ``CockpitError`` with words for the person."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = engine.store
        self.place = engine.place
        self._files: tuple[str, ...] | None = None

    async def start(
        self,
        words: str,
        *,
        model: str | None = None,
        policy: str | None = None,
        interactive: bool = True,
        limits: Limits | None = None,
        task_type: str | None = None,
        task_id: str | None = None,
    ) -> str:
        """A new session for what the person asks; returns its id. Nothing runs yet.

        With ``task_id`` it is about that task of the backlog: what is to be done and where it was
        left stands in its objectives, and what the session does is kept as work in progress there.
        Without ``words`` the task's title says what to do. Raises ``NotFound`` for no such task.

        The task type's deterministic context is fetched first: when that fails nothing is stored
        (ADR-10, error handling). Raises ``IntentUnclear``, ``OpeningFailed``, ``ModelError``.
        """
        engine = self.engine
        given = None
        if task_id is not None:
            given = self.store.read_now(lambda found: tasks.load(found, task_id))
            words = words.strip() or given.title
        task = await resolve(words, engine.types, Repository(self.place.root))
        if task_type is not None:
            task = Task(task_type, task.title, task.words, task.target)
        kind = engine.types[task.task_type]
        chosen = engine.model(model).name
        opened = await opening(task, kind, self.place)
        if given is not None:
            opened = replace(opened, text=f"{opened.text}\n\n{briefing(given)}")
        branch = await _branch(self.place)
        caps = {
            name: value
            for name, value in asdict(limits or engine.settings.limits).items()
            if value is not None
        }

        def step(tx: Tx) -> str:
            profile = profiles.ensure_default(tx, engine.settings.token_budget)
            session = sessions.create(
                tx,
                task_type=task.task_type,
                title=task.title,
                words=task.words,
                target=opened.target,
                model=chosen,
                policy=policy or engine.settings.policy,
                interactive=interactive,
                root=self.place.root,
                rev=opened.rev,
                profile_id=profile.profile_id,
                limits=caps,
                project=engine.repo or self.place.root.name,
                branch=branch,
                task_id=None if given is None else given.task_id,
            )
            _submit(tx, session, task, opened)
            return session.session_id

        return await self.store.write(step)

    async def run(self, session_id: str, *, interactive: bool | None = None) -> Session:
        """Drive waves until the session ends or waits for the person's words. Cancel to interrupt.

        ``interactive`` says whether a person sits before it from now on; None leaves it as it was.
        """
        return await run_session(self.engine, session_id, interactive=interactive)

    async def say(self, session_id: str, text: str) -> None:
        """The person's words: pinned in the next wave. Wakes a session that waits for them."""
        await self.store.write(lambda tx: _say(tx, session_id, text))

    async def approve(
        self,
        proposal_id: str,
        *,
        shown_digest: str | None = None,
        narrowed: Sequence[str] | None = None,
    ) -> None:
        """Approve what was shown (``narrowed``: only these items of a context request).

        Raises ``ChangeNotMade`` for a profile change that the guard does no longer let through.
        """
        await self._rule(proposal_id, "approved", shown_digest=shown_digest, narrowed=narrowed)

    async def discuss(
        self, proposal_id: str, *, shown_digest: str | None = None, words: str = ""
    ) -> None:
        """End this revision; ``words`` (may follow later by :meth:`say`) go to the agent."""
        await self._rule(proposal_id, "discussed", shown_digest=shown_digest, reason=words)

    async def reject(
        self, proposal_id: str, *, shown_digest: str | None = None, reason: str = ""
    ) -> None:
        """Refuse a proposal, with a reason for the agent."""
        await self._rule(proposal_id, "rejected", shown_digest=shown_digest, reason=reason)

    async def _rule(self, proposal_id: str, verdict: Ruling, **given: Any) -> None:
        def step(tx: Tx) -> Outcome:
            outcome = rule(tx, self.engine.settings, proposal_id, verdict, **given)
            session_id = proposals.load(tx.connection, proposal_id).session_id
            if verdict == "discussed" and given["reason"] and session_id:
                _say(tx, session_id, given["reason"])
            return outcome

        # What the guard refused is kept as refused: it is told after the commit.
        (await self.store.write(step)).granted()

    async def editable(self, proposal_id: str) -> tuple[str, str]:
        """The text of an action that the person may edit, and a suffix for the editor's file."""
        return await edit_action.editable(self.engine, proposal_id)

    async def edit(self, proposal_id: str, *, shown_digest: str, text: str) -> str:
        """Put the person's text in place; returns the id of the revision to decide."""
        return (await edit_action.edit(self.engine, proposal_id, shown_digest, text)).proposal_id

    async def feedback(self, wave_id: str, verdict: str, words: str = "") -> Feedback:
        """The person's verdict on a wave, ``good`` or ``bad``; a newer one replaces it.

        Raises ``FeedbackRefused``, and ``NotFound`` for a wave that has no packet.
        """
        return await self.store.write(lambda tx: spoken(tx, wave_id, verdict, words))

    async def explain(
        self, session_id: str, ordinal: int | None = None, *, band: str = ""
    ) -> packet_inspection.Explanation:
        """Why each fact of a wave was kept, shortened or dropped; of the newest packet without one."""
        return await self.store.read(
            lambda found: packet_inspection.explained(found, session_id, ordinal, band=band)
        )

    async def packet_diff(
        self, session_id: str, before: int, after: int
    ) -> packet_inspection.Difference:
        """What changed in the packet between two waves of a session."""
        return await self.store.read(
            lambda found: packet_inspection.difference(found, session_id, before, after)
        )

    async def pin(self, session_id: str, fact_id: str) -> pins.Pin:
        """Keep a fact in every packet from the next wave on."""
        return await self.store.write(lambda tx: pins.pin(tx, session_id, fact_id))

    async def unpin(self, session_id: str, fact_id: str) -> pins.Pin:
        """Let a fact be chosen by its worth again, from the next wave on."""
        return await self.store.write(lambda tx: pins.unpin(tx, session_id, fact_id))

    async def change(
        self,
        session_id: str,
        *,
        policy: str | None = None,
        model: str | None = None,
        task_type: str | None = None,
        limits: Limits | None = None,
    ) -> Session:
        """Change how a session goes on, from its next phase."""
        fields: dict[str, Any] = {}
        if policy is not None:
            if policy not in sessions.POLICIES:
                names = ", ".join(sessions.POLICIES)
                raise IllegalTransition(f"There is no policy {policy!r}; there are {names}.")
            fields["policy"] = policy
        if model is not None:
            fields["model"] = self.engine.model(model).name
        if task_type is not None:
            if task_type not in self.engine.types:
                names = ", ".join(sorted(self.engine.types))
                raise IllegalTransition(f"There is no task type {task_type!r}; there are {names}.")
            fields["task_type"] = task_type
        if limits is not None:
            caps = asdict(limits)
            fields["limits"] = {name: value for name, value in caps.items() if value is not None}
        return await self.store.write(lambda tx: sessions.change(tx, session_id, **fields))

    async def default_model(self) -> str:
        """The full name of the model that a new session would get. Raises ``ModelError``."""
        return self.engine.model(None).name

    async def last_session(self) -> Session | None:
        """The session of its own that changed last, or None in a new project."""
        return await self.store.read(sessions.find_latest)

    async def complete(self, kind: str, prefix: str) -> list[tuple[str, str]]:
        """Completions for the prompt: ``/`` task commands, ``@`` files of the project."""
        if kind == "/":
            found = [
                (task.command, task.arguments)
                for task in self.engine.types.values()
                if task.command.startswith(prefix)
            ]
            return sorted(found)[:COMPLETIONS]
        if self._files is None:
            self._files = await _files(self.place)
        wanted = prefix.removeprefix("@").casefold()
        hits = [path for path in self._files if wanted in path.casefold()]
        hits.sort(key=lambda path: (not path.casefold().startswith(wanted), len(path), path))
        return [(f"@{path}", "") for path in hits[:COMPLETIONS]]


def _submit(tx: Tx, session: Session, task: Task, opened: Opening) -> None:
    messages.complete(tx, session_id=session.session_id, role="person", text=task.words)
    if opened.notice:
        messages.complete(tx, session_id=session.session_id, role="notice", text=opened.notice)
    events.ingest(
        tx,
        source=session.source,
        source_event_id="task",
        event_type=SUBMITTED,
        trace_id=session.trace_id,
        payload={
            "text": opened.text,
            "scope_items": list(opened.scope_items),
            "included": bool(opened.target),
        },
    )


def _say(tx: Tx, session_id: str, text: str) -> None:
    session = sessions.load(tx.connection, session_id)
    message_id = messages.complete(tx, session_id=session_id, role="person", text=text)
    events.ingest(
        tx,
        source=session.source,
        source_event_id=message_id,
        event_type=SAID,
        payload={"message_id": message_id},
        trace_id=session.trace_id,
        tier=0,
    )


async def _repository(place: ProjectPaths) -> str | None:
    """``owner/name`` of the project's one remote on a forge, if there is exactly one."""
    if not place.git:
        return None
    names = await Repository(place.root).repositories()
    return next(iter(names)) if len(names) == 1 else None


async def _branch(place: ProjectPaths) -> str:
    if not place.git:
        return ""
    for arguments in (("symbolic-ref", "--quiet", "--short", "HEAD"), ("rev-parse", "HEAD")):
        try:
            ended = await run_git(*arguments, cwd=place.root)
        except ProgramMissing:
            return ""
        if ended.ok:
            return ended.text.strip()[:40]
    return ""


async def _files(place: ProjectPaths) -> tuple[str, ...]:
    if not place.git:
        return ()
    ended = await run_git(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=place.root
    )
    return tuple(path for path in ended.text.split("\0") if path)[:50_000]
