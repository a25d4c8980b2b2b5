"""The way back: sessions that the user came from, and the task that is followed from role to role."""

from __future__ import annotations

from cockpit.app.state.chains import Chains, Run


class SessionTrail:
    """Remember where the user was before attaching to a session of the work pane."""

    def __init__(self) -> None:
        self._came_from: list[tuple[str, str]] = []
        self._run: Run | None = None
        self._run_session = ""

    @property
    def can_go_back(self) -> bool:
        """True after attaching to a session, until the user is back or chose another session."""
        return bool(self._came_from)

    def push(self, session_id: str, row_key: str) -> None:
        """Remember the session that was followed, and the row of the work pane that was opened."""
        self._came_from.append((session_id, row_key))

    def pop(self) -> tuple[str, str]:
        """Return the session and the row to go back to, and forget them."""
        self._run = None
        return self._came_from.pop()

    def clear(self) -> None:
        """Forget everything: the user chose a session in another way."""
        self._came_from.clear()
        self._run = None

    def follow_run(self, run: Run | None, session_id: str) -> None:
        """Remember that ``session_id`` is followed as part of a task's run."""
        self._run, self._run_session = run, session_id

    def next_role_session(self, followed: str, chains: Chains) -> str:
        """Return the session in which the followed task continues with its next role; empty for none.

        ``followed`` is the session on the screen: after the user chose another one, the task is forgotten.
        """
        if self._run is None:
            return ""
        if followed != self._run_session:
            self._run = None
            return ""
        chain = chains.chains.get(self._run.chain_id)
        run = chain.runs.get(self._run.task_id) if chain is not None else None
        if run is None or run.session_id == self._run_session:
            return ""
        self._run_session = run.session_id
        return self._run_session
