"""The dialogue with a runner's agent, and how its permissions are asked for.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from cockpit.agents.stdio.answer_schema import AnswerForm
from cockpit.agents.stdio.claude_dialogue import ClaudeDialogue
from cockpit.agents.stdio.codex_dialogue import CodexDialogue
from cockpit.agents.stdio.dialogue import Dialogue, Wire
from cockpit.agents.stdio.permissions import Ask, Permissions
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.permissions.ask_permission import PermissionAnswer, ask_permission
from cockpit.loop.permissions.tool_request import ToolRequest
from cockpit.loop.permissions.withdrawal import Withdrawal
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions


def ask_in_queue(store: Store, settings: RuntimeSettings, session_id: str, root: Path) -> Ask:
    """Return what asks for a permission of the session in the one queue, under the session's policy."""
    waiter = ChangeWaiter(store)

    async def ask(request: ToolRequest, withdrawn: Withdrawal) -> PermissionAnswer:
        session = await store.read(lambda connection: sessions.load(connection, session_id))
        return await ask_permission(
            store,
            settings,
            waiter,
            request,
            session_id=session_id,
            root=root,
            # The user may have narrowed it meanwhile.
            policy=session.policy,
            deadline_s=session.limits.get("deadline_s", settings.limits.deadline_s),
            withdrawn=withdrawn,
        )

    return ask


def open_dialogue(
    runner: RunnerSettings,
    prompt: str,
    ask: Ask,
    *,
    worktree: Path,
    works: bool,
    form: AnswerForm,
    confined: bool,
) -> Dialogue | None:
    """Return the dialogue of the runner's protocol; None for a runner that only writes a stream.

    ``works`` is False for a role that only reads, ``confined`` True in cockpit's sandbox.
    """
    permissions, cwd = Permissions(ask, works=works), str(worktree)
    match runner.protocol:
        case "stdio":
            return ClaudeDialogue(prompt, permissions, cwd=cwd)
        case "app-server":
            return CodexDialogue(prompt, permissions, cwd=cwd, form=form, confined=confined)
    return None


class DialogueTalk:
    """A dialogue as the process of its agent sees it."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    def begin(self, stdin: asyncio.StreamWriter) -> None:
        """Greet the agent. What is written after its end is dropped."""

        def write(data: bytes) -> None:
            if not stdin.is_closing():
                stdin.write(data)

        self._dialogue.begin(Wire(write, stdin.close))

    def interrupt(self) -> None:
        """Ask the agent to stop."""
        self._dialogue.interrupt()

    def waited_s(self) -> float:
        """Return the seconds that it waited for the user."""
        return self._dialogue.permissions.waited_s()
