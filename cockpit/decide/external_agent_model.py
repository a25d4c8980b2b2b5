"""An external agent as a model: its answers are the calls that it makes over MCP.

To the engine it is a model like any other. Guards, proposals, outbox, receipts and packets are the same as
for the built-in agent. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from cockpit.decide.model import Done, ModelEvent, Prompt, ToolCall, Usage

PREFIX = "outside:"
"""The prefix of the names of such models."""


class ExternalAgentModel:
    """Answers a prompt with the call that the external agent made, or with nothing.

    ``name`` is ``outside:`` and the name that the client gives itself. Without a connected agent only its
    earlier proposals remain, and its session can still run to its end.
    """

    def __init__(self, client: str) -> None:
        self.name = f"{PREFIX}{client}"
        self._call: ToolCall | None = None

    def take(self, call: ToolCall) -> None:
        """Make ``call`` the agent's next answer."""
        self._call = call

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Yield the call that was taken, once; without a call the answer is empty."""
        call, self._call = self._call, None
        if call is not None:
            yield call
        yield Done(Usage(), "end" if call is None else "tool")
