"""The linear mode: cockpit line by line, for screen readers and for terminals that cannot be redrawn.

Nothing that was printed changes. A proposal is printed whole before it can be decided, and Enter means what
it means on the screen. Specified in ``docs/reference/screen.md``, linear mode.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from cockpit.access.user_presence import explain_absence
from cockpit.app.key_policy import (
    Approve,
    AskSecondKey,
    Discuss,
    DoNothing,
    KeyPolicy,
    LeaveMode,
    OpenDiscussion,
    Refuse,
    Send,
    Step,
)
from cockpit.app.session_runs import SessionRuns
from cockpit.app.state import proposal_queue
from cockpit.collections.choose_session import choose_session
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_project_runtime,
)
from cockpit.commands.sessions.linear_lists import (
    COMMANDS,
    DECISIONS,
    list_proposals,
    list_sessions,
    list_tasks,
)
from cockpit.commands.sessions.offline_notice import find_offline_notice
from cockpit.commands.sessions.proposal_text import WIDTH, framed, proposal_text
from cockpit.commands.sessions.screen import give_to_agent
from cockpit.commands.sessions.typed_lines import Typed, TypedLines
from cockpit.commands.terminal import SafeStream, is_terminal, output_width, ring_terminal, show
from cockpit.commands.unconfined import settle_unconfined
from cockpit.core.errors import CockpitError
from cockpit.core.text import format_total, pluralize
from cockpit.loop.decisions.approval_policy import POLICY_WIDTH, is_narrower
from cockpit.loop.permissions.question_form import parse_answer
from cockpit.loop.runtime import Runtime
from cockpit.loop.views.story import Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.details.proposals import ProposalCreated, ProposalDecided
from cockpit.store.journal.details.sessions import MessageDelta, MessageStarted, SessionWaiting
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from widgets.views import ProposalView

_YES = ("y", "yes")


Event = Typed | list[Row] | signal.Signals | None
"""A line, rows of the journal, a signal; None: the input ended."""


def open_linear(session: str | None, flags: Mapping[str, object], *, agent: str = "") -> int:
    """Run cockpit line by line until the user leaves; return the exit code.

    ``session`` is the id of a session to resume, ``last``, '' to list them first, or None for a new one;
    ``agent`` the external agent that has new sessions.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise WrongUse("--linear needs a terminal. Without one, use `cockpit run TASK`.")
    place = find_project()
    settings = give_to_agent(load_project_settings(place, flags), agent)
    ensure_root_token(place)

    async def run() -> int:
        from cockpit.access import user_presence

        await settle_unconfined(settings, None)
        async with open_project_runtime(place, settings.runtime) as runtime:
            user_presence.sit_at_screen()
            chosen = ""
            if session:
                chosen = await runtime.store.read(
                    lambda c: choose_session(c, session, with_agents=True)
                )
            linear = Linear(runtime, rings=settings.bell)
            return await linear.run(chosen, lists_sessions=session == "")

    return asyncio.run(run())


class Linear:
    """One session followed, its events printed, and lines read. At most one proposal is in front."""

    def __init__(self, runtime: Runtime, *, rings: bool = True) -> None:
        self._runtime = runtime
        self._rings = rings
        self._now = runtime.store.clock.monotonic
        self._policy = KeyPolicy(self._now)
        self._runs = SessionRuns(runtime, self._say_error, lambda: None)
        self._waiting: dict[str, str] = {}
        """The session of each proposal that waits, as far as rows were printed."""
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._background: set[asyncio.Task[None]] = set()
        self._story = Storyteller()
        self._session_id = ""
        self._front: Proposal | None = None
        self._chosen = ""
        """The proposal that the user asked for."""
        self._kept: list[str] | None = None
        self._asked_at = 0.0
        self._leaving = False
        self._lines: TypedLines | None = None

    async def run(self, session_id: str, *, lists_sessions: bool = False) -> int:
        """Follow ``session_id``, or none, until the user leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, self._events.put_nowait, number)
        self._lines = TypedLines(loop, self._events.put_nowait, self._now, sys.stdin.fileno())
        self._lines.start()
        after = await self._runtime.store.read(journal.last_seq)
        for stored in await self._runtime.store.read(proposals.select_pending):
            self._waiting[stored.proposal_id] = stored.session_id
        following = asyncio.create_task(self._follow(after))
        try:
            show("cockpit, line by line. Type a task and press Enter; /help lists the commands.")
            if agent := self._runtime.engine.settings.agent:
                show(f"{agent} has each new session.")
            if lists_sessions:
                show(await self._runtime.store.read(list_sessions))
            await self._attach(session_id)
            return await self._handle_events()
        finally:
            following.cancel()
            for number in numbers:
                loop.remove_signal_handler(number)
            await self._runs.stop()
            await asyncio.gather(following, *self._background, return_exceptions=True)

    async def _follow(self, after: int) -> None:
        async for rows in follow(self._runtime.store, after=after):
            self._events.put_nowait(rows)

    async def _handle_events(self) -> int:
        while True:
            match await self._events.get():
                case list(rows):
                    await self._print_rows(rows)
                case Typed() as typed:
                    self._leaving = False
                    if not await self._handle_line(typed):
                        return 0
                case signal.SIGINT:
                    if self._interrupt():
                        return 130
                case None:
                    return 0
                case _:
                    return 130

    def _interrupt(self) -> bool:
        """Interrupt the session; without one that runs, leave on the second time."""
        if self._session_id and self._runs.interrupt(self._session_id):
            show("Interrupted. Ctrl+C again leaves.")
        elif self._leaving:
            return True
        else:
            show("Ctrl+C again leaves; so does /quit.")
        self._leaving = True
        return False

    # What is printed

    async def _print_rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if isinstance(row.detail, ProposalCreated):
                self._waiting[row.detail.proposal_id] = row.session_id
            elif isinstance(row.detail, ProposalDecided):
                self._waiting.pop(row.detail.proposal_id, None)
            if row.session_id == self._session_id:
                self._print_row(row)
            elif isinstance(row.detail, ProposalCreated):
                created = row.detail
                about = f"{created.proposal_id} waits, {created.risk} risk"
                show("\n".join(framed(about, created.title, self._width)))
        await self._turn_to_front()

    def _print_row(self, row: Row) -> None:
        detail = row.detail
        if isinstance(detail, MessageStarted | MessageDelta):
            return  # a message is printed once, whole
        if text := self._story.tell(row):
            SafeStream(sys.stdout).write(text)
        if isinstance(detail, SessionWaiting) and detail.for_ == "person":
            show("Your turn.")

    async def _turn_to_front(self) -> None:
        """Print the proposal that is in front now, unless it is printed already."""
        ids = [key for key, session in self._waiting.items() if session == self._session_id]
        chosen = self._chosen if self._chosen in ids else ids[0] if ids else ""
        if self._front is not None and self._front.proposal_id == chosen:
            return
        self._front, self._kept, self._chosen = None, None, chosen
        self._policy.note_session(self._session_id, None)
        self._policy.note_drawn(None)
        if chosen:
            await self._print_front(chosen)

    async def _print_front(self, proposal_id: str) -> None:
        stored = await self._runtime.store.read(lambda c: proposals.load(c, proposal_id))
        self._front = stored
        if self._rings:
            ring_terminal("\a")
        show(f"\n{proposal_text(stored, width=self._width)}\n\n{_choices(stored)}")
        self._note_printed(stored)

    def _note_printed(self, stored: Proposal) -> None:
        """Note that all of it, what the digest covers, is on the terminal: from here on it can be decided."""
        view = self._view(stored)
        if self._lines is not None:
            self._lines.catch_up()
        self._policy.note_session(self._session_id, view)
        self._policy.note_covered()
        self._policy.note_drawn(view)
        self._policy.note_read(view.drawn, True)

    def _view(self, stored: Proposal) -> ProposalView:
        now = self._runtime.store.clock.now()
        return proposal_queue.proposal(proposal_queue.as_pending(stored), now, None)

    @property
    def _width(self) -> int:
        return output_width() or WIDTH

    def _say_error(self, text: str) -> None:
        show(f"Error: {text}")

    # Lines

    async def _handle_line(self, typed: Typed) -> bool:
        """Carry out a line; return False for the last one."""
        text = typed.text.strip()
        word, _, rest = text.partition(" ")
        try:
            if self._policy.second is not None:
                await self._answer_second(text, typed.at)
            elif word in COMMANDS:
                return await self._command(word, rest.strip())
            elif word in DECISIONS and self._front is not None and DECISIONS[word].takes(rest):
                await self._decide(word, rest.strip(), typed.at)
            elif word.startswith("/") and not await self._runtime.command_kind(word):
                show(f"There is no command {word}. /help lists those that there are.")
            else:
                self._note_key(typed.at)
                step = self._policy.handle_enter(text)
                if text and isinstance(step, DoNothing):
                    show(f"Not sent: {step.reason or 'something else came first'}. Type it again.")
                else:
                    await self._carry_out(step)
        except CockpitError as error:
            self._say_error(str(error))
        return True

    def _note_key(self, at: float) -> None:
        self._policy.note_key(self._now() - at)

    async def _answer_second(self, text: str, at: float) -> None:
        was_read = at > self._asked_at
        step = self._policy.handle_second_key("y" if was_read and text.lower() in _YES else "n")
        if isinstance(step, Approve):
            await self._carry_out(step)
        else:
            show("Not approved. It still waits; show prints it again.")

    async def _decide(self, word: str, rest: str, at: float) -> None:
        front = self._front
        if front is None:
            return
        if word == "show":
            await self._print_front(front.proposal_id)
        elif word == "narrow":
            self._narrow(front, rest)
        elif word == "edit":
            await self._edit(front)
        elif word == "discuss" and not rest:
            self._note_key(at)
            await self._carry_out(self._policy.handle_escape(""))
        elif word in ("approve", "discuss"):
            self._note_key(at)
            await self._carry_out(self._policy.handle_enter(rest))
        elif self._policy.is_seen:
            view = self._view(front)
            if word == "answer":
                questions = front.body.get("questions") or []
                texts = [each.strip() for each in rest.split("|")]
                if len(texts) != len(questions):
                    show(f"It asks {pluralize(len(questions), 'question')}: answer A | B | …")
                    return
                given = [parse_answer(each, t) for each, t in zip(questions, texts, strict=True)]
                runtime, shown = self._runtime, view.digest
                self._send_decision(
                    view,
                    lambda: runtime.answer(view.proposal_id, shown_digest=shown, answers=given),
                )
            else:
                await self._carry_out(Refuse(view, rest))

    async def _edit(self, front: Proposal) -> None:
        """Let the user edit the text of a proposal; the revision is printed as it comes."""
        from cockpit.app.external_editor import edit_text, editor_command

        before, suffix = await self._runtime.editable(front.proposal_id)
        argv = editor_command(os.environ)
        with self._lines.lend() if self._lines is not None else nullcontext():
            after = await asyncio.to_thread(edit_text, before, argv=argv, suffix=suffix)
        if after == before:
            show("Nothing was changed.")
            return
        await self._runtime.edit(front.proposal_id, shown_digest=front.shown_digest, text=after)

    async def _change_policy(self, rest: str) -> None:
        """Print the approval policy, or change it; a wider one has to be typed with yes behind it."""
        if not self._session_id:
            show("No session is followed. /sessions lists them.")
            return
        name = self._session_id
        session = await self._runtime.store.read(lambda c: sessions.load(c, name))
        policy, _, confirmed = rest.partition(" ")
        if not policy:
            show(f"The policy is {session.policy}. There are {', '.join(POLICY_WIDTH)}.")
        elif policy not in POLICY_WIDTH:
            show(f"There is no policy {policy}. There are {', '.join(POLICY_WIDTH)}.")
        elif is_narrower(session.policy, policy) and confirmed.strip().lower() != "yes":
            show(f"{policy} approves more without you. Type /policy {policy} yes to change it.")
        else:
            await self._runtime.change(name, policy=policy)
            show(f"The policy is {policy} from now on.")

    def _narrow(self, front: Proposal, rest: str) -> None:
        """Keep the items with these numbers, say what is left, and let the user look at it."""
        items = [each for each in front.body.get("items", ()) if not each.get("refused")]
        if front.kind != "context" or not items:
            show("There is nothing to narrow.")
            return
        numbers = [
            int(each)
            for each in rest.replace(",", " ").split()
            if each.isascii() and each.isdigit()
        ]
        kept = [items[number - 1] for number in numbers if 0 < number <= len(items)]
        for number, item in enumerate(kept or items, 1):
            show("\n".join(framed(f"{number}", str(item["item"]), self._width)))
        if not kept:
            show("narrow NUMBER NUMBER … keeps those items.")
            return
        self._kept = [str(item["item"]) for item in kept]
        total = format_total([item.get("tokens") for item in kept])
        show(
            f"Narrowed to {len(kept)} of {pluralize(len(items), 'item')}, {total}."
            " Enter approves these."
        )
        self._note_printed(front)

    async def _carry_out(self, step: Step) -> None:
        runtime = self._runtime
        match step:
            case Approve(proposal):
                if proposal.questions:
                    show("Type answer and your answer.")
                    return
                kept, shown = self._kept, proposal.digest
                self._send_decision(
                    proposal,
                    lambda: runtime.approve(
                        proposal.proposal_id, shown_digest=shown, narrowed=kept
                    ),
                )
            case AskSecondKey(proposal):
                show(f"{proposal.risk} risk. Type yes to approve it; anything else leaves it.")
                if self._lines is not None:
                    self._lines.catch_up()
                self._asked_at = self._now()
            case OpenDiscussion():
                show("Type what you want to say; discuss again takes it back.")
            case LeaveMode():
                show("It is not discussed, and still waits.")
            case Discuss(proposal, text):
                shown = proposal.digest
                self._send_decision(
                    proposal,
                    lambda: runtime.discuss(proposal.proposal_id, shown_digest=shown, words=text),
                )
                if not proposal.session:
                    show("Put aside: nothing happens.")
            case Refuse(proposal, text):
                shown = proposal.digest
                self._send_decision(
                    proposal,
                    lambda: runtime.reject(proposal.proposal_id, shown_digest=shown, reason=text),
                )
            case Send(text, session):
                await self._send(session, text)
            case DoNothing() if self._policy.discussing is not None:
                show("Type what you want to say.")
            case DoNothing(reason) if reason:
                show(
                    "Not decided: too soon after it was printed, or after your last line. Press Enter again."
                )
            case _:
                return

    def _send_decision(
        self, proposal: ProposalView, call: Callable[[], Coroutine[Any, Any, object]]
    ) -> None:
        self._policy.lock(proposal)

        async def decide() -> None:
            try:
                await call()
            except CockpitError as error:
                self._policy.unlock(proposal)
                self._say_error(str(error))
                return
            is_ours = proposal.session == self._session_id and bool(proposal.session)
            if (
                is_ours
                and proposal.kind != "permission"
                and not self._runs.is_running(proposal.session)
            ):
                await self._runs.resume(proposal.session)

        self._start_task(decide())

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Sessions

    async def _send(self, session_id: str, text: str) -> None:
        """Send a message, or begin a session with it; its rows are printed from the first one on."""
        if not text:
            return
        try:
            if session_id:
                await self._runtime.say(session_id, text)
            else:
                if notice := await find_offline_notice(self._runtime, text):
                    show(notice)
                session_id = await self._runtime.start(text, is_typed=not explain_absence())
                await self._attach(session_id, is_new=True)
        except Exception as error:
            # A model or a program may fail with an error of its own; its text is for the user too.
            self._say_error(str(error) or type(error).__name__)
            return
        self._runs.ensure_running(session_id)

    async def _attach(self, session_id: str, *, is_new: bool = False, chosen: str = "") -> None:
        """Follow a session, or none: what it did before is printed by /history."""
        if session_id:
            session = await self._runtime.store.read(lambda c: sessions.load(c, session_id))
            self._story = self._teller(session)
            if not is_new:
                show("\n".join(framed(f"Session {session_id}, {session.status}", session.title)))
        self._session_id, self._chosen, self._front = session_id, chosen, None
        await self._turn_to_front()

    def _teller(self, session: sessions.Session) -> Storyteller:
        agents = bool(session.agent)
        return Storyteller(hints=False, agents=agents, width=self._width, signs=False)

    async def _command(self, word: str, rest: str) -> bool:
        store = self._runtime.store
        match word:
            case "/quit":
                return False
            case "/help":
                lines = [f"{name} {each.arguments}".strip() + f": {each.says}"
                         for name, each in {**DECISIONS, **COMMANDS}.items()]  # fmt: skip
                show("\n".join(lines))
            case "/new":
                await self._attach("")
                show("The next message begins a session.")
                await self._send("", rest)
            case "/sessions":
                show(await store.read(list_sessions))
            case "/session":
                chosen = await store.read(
                    lambda c: choose_session(c, rest or "last", with_agents=True)
                )
                await self._attach(chosen)
                self._start_task(self._runs.resume(chosen))
            case "/history":
                await self._print_history()
            case "/proposals":
                show(await store.read(list_proposals))
            case "/proposal":
                asker = self._waiting.get(rest)
                if asker is None:
                    show("That proposal does not wait. /proposals lists those that do.")
                elif asker != self._session_id:
                    await self._attach(asker, chosen=rest)
                else:
                    self._chosen, self._front = rest, None
                    await self._turn_to_front()
            case "/policy":
                await self._change_policy(rest)
            case "/tasks":
                show(await store.read(list_tasks))
            case _:
                self._interrupt()
        return True

    async def _print_history(self) -> None:
        if not self._session_id:
            show("No session is followed. /sessions lists them.")
            return
        name = self._session_id
        session = await self._runtime.store.read(lambda c: sessions.load(c, name))
        teller, after = self._teller(session), 0
        while rows := await self._runtime.store.read(
            lambda c, after=after: journal.rows(c, after=after, session_id=name)  # type: ignore[misc]
        ):
            for row in rows:
                if not isinstance(row.detail, MessageStarted | MessageDelta):
                    SafeStream(sys.stdout).write(teller.tell(row))
            after = rows[-1].seq


def _choices(stored: Proposal) -> str:
    """Say what can be done with a proposal."""
    if stored.body.get("questions"):
        return "Type answer and your answer, or reject."
    more = {"context": "narrow, ", "action": "edit, ", "permission": "edit, "}.get(stored.kind, "")
    return f"Enter approves it. Or type discuss, {more}reject or show."
