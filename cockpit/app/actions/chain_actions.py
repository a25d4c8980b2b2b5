"""Actions in the work pane: sessions attached to and peeked at, chains opened, drained and gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.actions.action import Moment
from cockpit.app.actions.task_actions import TaskActs
from cockpit.app.projection.chain_trees import Trees
from cockpit.app.projection.chains import ChainState, Run
from widgets.forms.pick_list import PickRow
from widgets.text.clean import clean
from widgets.views import TurnView

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen
    from cockpit.store.db.transaction import Tx

_PEEK_TURNS = 6
_TELL_S = 4.0


class ChainActs(TaskActs):
    """The part of :class:`~cockpit.app.actions.screen_actions.Acts` that is about chains and other sessions.

    What is to happen to a chain is written into its row; the processes that work in it read it there,
    and the screen learns of it from the journal like everybody else.
    """

    def __init__(self, screen: CockpitScreen) -> None:
        super().__init__(screen)
        self.trees = Trees()
        self._came_from: list[tuple[str, str]] = []
        self._with: tuple[Run, str] | None = None

    # Where the cursor stands

    @property
    def row(self) -> str:
        """The key of the row under the cursor of the work pane, while it has the keys."""
        board = self._screen.panes.board
        return board.at_cursor if board.has_focus else ""

    @property
    def chain(self) -> ChainState | None:
        """The chain in whose tree the cursor stands."""
        return self._cockpit.feed.state.chains.found.get(self.row.partition("/")[0])

    @property
    def moment(self) -> Moment:
        """What of the validity of actions depends on the row under the cursor."""
        chain = self.chain
        return Moment(
            task=self.task_status,
            chain=chain.status if chain is not None else "",
            lively=bool(self._session_of(self.row)),
            attached=bool(self._came_from),
        )

    def _run_at(self, key: str) -> Run | None:
        """The task in a chain that a row stands for: of a head or a session the one that moved last."""
        head, _, rest = key.partition("/")
        chain = self._cockpit.feed.state.chains.found.get(head)
        if chain is None:
            return None
        if rest in chain.runs:
            return chain.runs[rest]
        at_work = [
            each
            for each in chain.runs.values()
            if each.session_id and not each.ended and rest in ("", f"s{each.ordinal}")
        ]
        return max(at_work, key=lambda each: each.seq, default=None) if chain.working else None

    def _session_of(self, key: str) -> str:
        """The session that Enter follows from a row; empty where there is none."""
        run = self._run_at(key)
        if run is not None:
            return run.session_id if not run.ended else ""
        return key if key in self._cockpit.feed.state.sessions else ""

    # Following

    def open_row(self, key: str) -> None:
        """A row of the work pane: follow its session, else see its task, else open its tree."""
        session_id, run = self._session_of(key), self._run_at(key)
        if session_id:
            self._follow(session_id, key)
            self._with = (run, session_id) if run is not None else None
        elif key.rpartition("/")[2] in self._work.tasks:
            self.open(key.rpartition("/")[2])
        else:
            self.unfold()

    def open(self, task_id: str) -> None:
        """See a task in full."""
        from cockpit.app.screens.task_screen import TaskScreen

        self._cockpit.push_screen(TaskScreen(self._screen, task_id))

    def _follow(self, session_id: str, key: str) -> None:
        if session_id != self._cockpit.followed:
            self._came_from.append((self._cockpit.followed, key))
        self._cockpit.attach(session_id)
        self._screen.panes.turn_to("conversation")
        self._screen.prompt.focus()

    def back(self) -> None:
        """Come back to what was followed before, and to the row that one came from."""
        if not self._came_from:
            return
        before, key = self._came_from.pop()
        self._with = None
        self._cockpit.attach(before)
        self._screen.panes.turn_to("work")
        self._screen.panes.board.focus()
        self._screen.panes.board.turn_to(key)

    def forget_way(self) -> None:
        """The person chose what is followed in another way: there is no way back from it."""
        self._came_from.clear()
        self._with = None

    def keep_up(self) -> None:
        """A task that is followed goes on in the session of its next role: follow that one."""
        if self._with is None:
            return
        run, session_id = self._with
        if self._cockpit.followed != session_id:
            self._with = None
        elif run.session_id != session_id:
            self._with = (run, run.session_id)
            self._cockpit.attach(run.session_id)

    def followable(self) -> Iterator[PickRow]:
        """Sessions that can be followed: those at work in chains, then others."""
        state = self._cockpit.feed.state
        for chain in state.chains.newest(0):
            for run in chain.runs.values():
                if run.session_id and not run.ended:
                    where = state.chains.words_of(run.session_id) or chain.chain_id
                    known = state.sessions.get(run.session_id)
                    role = known.role.replace("_", " ") if known is not None else ""
                    name = known.name if known is not None else run.task_id
                    yield run.session_id, name, " · ".join(filter(None, (where, role, run.step)))
        for row in self._screen.panes.board.view.rows:
            if row.key in state.sessions:
                yield row.key, row.title, f"{row.state} · {row.key}"

    # Peeking

    def peek(self, key: str) -> None:
        """A glance at a session or an agent without following it, or at a task's work in progress."""
        from cockpit.app.dialogs.peek_session import Peek

        state = self._cockpit.feed.state
        if state.agents.turns(key) is not None:
            self._cockpit.push_screen(Peek(partial(self._agent_turns, key)))
        elif self._session_of(key):
            self._cockpit.push_screen(Peek(partial(self._last_turns, key, self._session_of(key))))
        elif (task_id := key.rpartition("/")[2]) in state.work.tasks:
            self.glance(task_id)

    def glance(self, task_id: str) -> None:
        """The work in progress of a task."""
        from cockpit.app.dialogs.task_memory import WipInspector

        self._cockpit.push_screen(WipInspector(self._screen, task_id))

    def _agent_turns(self, key: str) -> tuple[str, tuple[TurnView, ...]]:
        return self._cockpit.feed.state.agents.turns(key) or ("", ())

    def _last_turns(self, key: str, first: str) -> tuple[str, tuple[TurnView, ...]]:
        """The last turns of the session at a row now; once nothing runs there, of the first one."""
        state = self._cockpit.feed.state
        session_id = self._session_of(key) or first
        session = state.sessions.get(session_id)
        words = [state.chains.words_of(session_id)]
        if session is not None:
            words += [session.role.replace("_", " "), session.name]
        turns = state.conversation(session_id).changed()[-_PEEK_TURNS:]
        return " · ".join(filter(None, words)), turns

    # Trees

    def unfold(self) -> None:
        """Open the tree under the cursor by a step."""
        self._turn_tree(1)

    def fold(self) -> None:
        """Fold the tree under the cursor by a step."""
        self._turn_tree(-1)

    def _turn_tree(self, step: int) -> None:
        chain = self.chain
        if chain is None:
            return
        held = self.row
        if self.trees.turn(chain, step):
            self._screen.paint()
        board = self._screen.panes.board
        if not board.turn_to(held):
            board.turn_to(chain.chain_id)

    # Chains

    def drain(self) -> None:
        """Let the chain come to rest when what is under way is finished."""
        self._to_rest(now=False)

    def stop_chain(self) -> None:
        """Stop the chain now."""
        self._to_rest(now=True)

    def _to_rest(self, *, now: bool) -> None:
        if (chain := self.chain) is None:
            return
        chain_id = chain.chain_id

        def step(tx: Tx) -> None:
            from cockpit.chains.supervisor import request_stop

            request_stop(tx, chain_id, now=now)

        self._keep(step)

    def retry(self) -> None:
        """Unblock the task under the cursor, and go on with its chain where that rests."""
        chain, task = self.chain, self.task
        if chain is None:
            return
        chain_id = chain.chain_id if not chain.live else ""
        task_id = task.task_id if task is not None and task.status == "blocked" else ""
        self._cockpit.ask(partial(self._again, chain_id, task_id))

    async def _again(self, chain_id: str, task_id: str) -> None:
        from cockpit.app.actions import resume_chain, task_writes

        engine = self._cockpit.engine
        if task_id:
            self.tell_reached(await engine.store.write(lambda tx: task_writes.unblock(tx, task_id)))
        if chain_id:
            self._cockpit.notify(clean(f"{chain_id} goes on"), timeout=_TELL_S, markup=False)
            await resume_chain.go_on(engine.place, chain_id, engine.store.clock)
