"""One session that a client has open: its turns, what the client sees of it, and the questions it is asked.

A proposal waits in the queue as every other does, and the client is asked about it as well. Whoever decides
first counts; the question is withdrawn elsewhere. See ``docs/reference/acp.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct

from cockpit.access import user_presence
from cockpit.acp_server.client_link import CANCELLED, ClientLink
from cockpit.acp_server.session_updates import SessionUpdates, Update, Wording
from cockpit.core.errors import AlreadyDecided, CockpitError, NotFound, Stale
from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal
from cockpit.store.journal.details.proposals import ProposalCreated, ProposalDecided
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session

ALLOW, REJECT, DISCUSS = "allow", "reject", "discuss"
OPTIONS = [
    {"optionId": ALLOW, "name": "Approve", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
    {"optionId": DISCUSS, "name": "Discuss: my next message says why", "kind": "reject_once"},
]


class TurnEnd(Struct, frozen=True):
    """How a turn ended: the protocol's reason, and the session; None where it has none yet."""

    stop_reason: str
    session: Session | None


class ServedSession:
    """A session of ``runtime`` under the id ``session_id``, stored or not yet."""

    def __init__(
        self, runtime: Runtime, session_id: str, link: ClientLink, wording: Wording, policy: str
    ) -> None:
        self.runtime = runtime
        self.session_id = session_id
        self.policy = policy
        """The approval policy; of a session that is not stored yet the one that it begins with."""
        self._link = link
        self._wording = wording
        self._updates = SessionUpdates(runtime.place.root, wording)
        self._is_stored = False
        self._policy_is_chosen = False
        self._starting = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._generation = 0
        self._work: asyncio.Task[Session] | None = None
        self._is_discussed = False
        self._seen = 0
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._answered: set[str] = set()

    async def attach(self, *, replay: bool) -> Session:
        """Read the stored session; with ``replay`` the client gets its whole history. Raises ``NotFound``."""
        store = self.runtime.store
        session = await store.read(lambda connection: sessions.load(connection, self.session_id))
        if session.agent or session.transport or session.task_type == sessions.EXTERNAL_AGENT:
            raise NotFound(
                f"{self.session_id} is a session of an external agent. Resume it on cockpit's screen."
            )
        if session.role and session.task_id:
            raise NotFound(
                f"{self.session_id} is the {session.role} of {session.task_id} and works in that task's"
                f" worktree. Run `cockpit work --task {session.task_id}`."
            )
        self.policy, self._is_stored = session.policy, True
        async for row in self._new_rows():
            if isinstance(row.detail, ProposalCreated):
                updates = [await self._show_proposal(row.detail.proposal_id)] if replay else []
            else:
                updates = self._updates.read_row(row, replays=True)
            if replay:
                await self._send(updates)
        return session

    async def prompt(self, text: str) -> TurnEnd:
        """Send the user's message and run the session until it ends or waits for the user.

        A message that comes while a turn runs is the session's next one; it is answered in that turn or after
        it. Raises ``CockpitError`` and ``ModelError``.
        """
        generation = self._generation
        async with self._starting:
            await self._send_message(text)
        async with self._turn:
            if generation != self._generation:
                return TurnEnd(CANCELLED, await self._load())
            return await self._run()

    async def cancel(self) -> None:
        """Stop the turn that runs and those that wait for it. What is stored stays, and can be resumed."""
        self._generation += 1
        self._is_discussed = False
        if self._work is not None:
            self._work.cancel()

    async def close(self) -> None:
        """Stop the turn, and wait until it has stopped."""
        await self.cancel()
        async with self._starting, self._turn:
            await self._withdraw_questions()

    async def change_policy(self, policy: str) -> None:
        """Give the session another approval policy. Raises ``NotAllowed`` and ``IllegalTransition``."""
        async with self._starting:
            if self._is_stored:
                await self.runtime.change(self.session_id, policy=policy)
            elif policy != "ask":
                user_presence.require_no_agent(f"the approval policy {policy}")
            self.policy, self._policy_is_chosen = policy, True

    async def _send_message(self, text: str) -> None:
        if self._is_stored:
            self._updates.own_messages += 1
            try:
                await self.runtime.say(self.session_id, text)
            except BaseException:
                self._updates.own_messages -= 1
                raise
            return
        await self.runtime.start(
            text,
            session_id=self.session_id,
            policy=self.policy if self._policy_is_chosen else None,
        )
        self._updates.own_messages += 1
        self._is_stored = True

    async def _run(self) -> TurnEnd:
        work = asyncio.create_task(
            self.runtime.run(self.session_id, interactive=True), name=f"run {self.session_id}"
        )
        self._work, self._is_discussed = work, False
        showing = asyncio.create_task(self._show(), name=f"show {self.session_id}")
        try:
            await asyncio.wait({work, showing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._work = None
            failed = showing.done() and not work.done()
            work.cancel()
            showing.cancel()
            await asyncio.gather(work, showing, return_exceptions=True)
            await self._withdraw_questions()
        if failed and (failure := showing.exception()) is not None:
            raise failure  # nobody would be asked: the session is stopped, and can be resumed
        async for row in self._new_rows():
            await self._show_row(row, asks=False)
        session = await self._load()
        if session is not None:
            self.policy = session.policy
        if work.cancelled():
            return TurnEnd("end_turn" if self._is_discussed else CANCELLED, session)
        if (error := work.exception()) is not None:
            raise error
        is_limit = work.result().result.get("status") == "limit"
        ended_at_limit = is_limit and work.result().status == "completed"
        return TurnEnd("max_turn_requests" if ended_at_limit else "end_turn", session)

    async def _load(self) -> Session | None:
        if not self._is_stored:
            return None
        return await self.runtime.store.read(
            lambda connection: sessions.load(connection, self.session_id)
        )

    async def _show(self) -> None:
        """Send the session's rows to the client as they are written, and ask about its proposals."""
        for proposal in await self.runtime.store.read(
            lambda connection: proposals.select_for_session(connection, self.session_id)
        ):
            if proposal.status == "pending":
                self._ask(proposal.proposal_id)
        async for rows in follow(self.runtime.store, after=self._seen, session_id=self.session_id):
            for row in rows:
                await self._show_row(row)

    async def _new_rows(self) -> AsyncIterator[journal.Row]:
        """Yield the stored rows of the session that were not seen yet."""
        while rows := await self.runtime.store.read(
            lambda connection: journal.rows(
                connection, after=self._seen, session_id=self.session_id
            )
        ):
            for row in rows:
                self._seen = row.seq
                yield row

    async def _show_row(self, row: journal.Row, *, asks: bool = True) -> None:
        self._seen = row.seq
        detail = row.detail
        if isinstance(detail, ProposalCreated):
            if asks:
                self._ask(detail.proposal_id)
            else:
                await self._send([await self._show_proposal(detail.proposal_id)])
            return
        if isinstance(detail, ProposalDecided):
            question = self._questions.pop(detail.proposal_id, None)
            if question is not None:
                question.cancel()
                await asyncio.gather(question, return_exceptions=True)
        await self._send(self._updates.read_row(row))

    async def _send(self, updates: Sequence[Update]) -> None:
        for update in updates:
            await self._link.update(self.session_id, update)

    async def _load_proposal(self, proposal_id: str) -> Proposal:
        return await self.runtime.store.read(
            lambda connection: proposals.load(connection, proposal_id)
        )

    async def _show_proposal(self, proposal_id: str) -> Update:
        proposal = await self._load_proposal(proposal_id)
        call = self._updates.start_call(proposal, self._wording.describe(proposal))
        return self._updates.update_call(call)

    def _ask(self, proposal_id: str) -> None:
        if proposal_id not in self._questions:
            question = asyncio.create_task(self._question(proposal_id), name=f"ask {proposal_id}")
            self._questions[proposal_id] = question

    async def _withdraw_questions(self) -> None:
        questions = list(self._questions.values())
        self._questions.clear()
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)

    async def _question(self, proposal_id: str) -> None:
        try:
            await self._ask_client(proposal_id)
        except Exception as error:
            # Else the turn would wait for an answer that nobody is asked for.
            await self._say_where_to_decide(proposal_id, f"the question failed: {error}")

    async def _ask_client(self, proposal_id: str) -> None:
        """Show a proposal, ask the user through the client, and decide what they chose."""
        proposal = await self._load_proposal(proposal_id)
        if proposal.status != "pending":
            return
        call = self._updates.start_call(proposal, self._wording.describe(proposal))
        await self._send([self._updates.update_call(call)])
        if absence := await asyncio.to_thread(user_presence.explain_absence):
            await self._say_where_to_decide(proposal_id, absence)
            return
        try:
            choice = await self._link.ask_permission(self.session_id, call, OPTIONS)
        except ConnectionError:
            return
        except asyncio.CancelledError:
            raise
        except (
            Exception
        ) as error:  # the library's RequestError: this client answers no such question
            await self._say_where_to_decide(proposal_id, f"the client refused to ask you: {error}")
            return
        # From here on the decision is ours: its own row withdraws nothing.
        self._questions.pop(proposal_id, None)
        if choice not in (ALLOW, REJECT, DISCUSS):
            await self._say_where_to_decide(proposal_id, "you closed the question")
            return
        try:
            await self._decide(proposal, choice)
        except (AlreadyDecided, Stale) as error:
            await self._note(str(error))
        except CockpitError as error:
            await self._say_where_to_decide(proposal_id, str(error))

    async def _decide(self, proposal: Proposal, choice: str) -> None:
        runtime, shown = self.runtime, proposal.shown_digest
        if choice == ALLOW:
            await runtime.approve(proposal.proposal_id, shown_digest=shown)
        elif choice == REJECT:
            await runtime.reject(proposal.proposal_id, shown_digest=shown)
        else:
            await runtime.discuss(proposal.proposal_id, shown_digest=shown)
            # The session waits for the user's words now. They are the next prompt, so this turn ends.
            self._is_discussed = True
            if self._work is not None:
                self._work.cancel()

    async def _say_where_to_decide(self, proposal_id: str, why: str) -> None:
        await self._note(
            f"{proposal_id} waits for you, and cannot be decided here: {why.rstrip('.')}. Decide on"
            f" cockpit's screen, or with `cockpit proposals approve {proposal_id}` in a terminal of your own."
        )

    async def _note(self, words: str) -> None:
        text = f"\n> {self._updates.line(words)}\n\n"
        with contextlib.suppress(ConnectionError):
            await self._send(
                [
                    {
                        "sessionUpdate": "agent_message_chunk",
                        "content": {"type": "text", "text": text},
                    }
                ]
            )
