"""An external agent as a model: its answers are the calls that it makes over MCP.

To the engine it is a model like any other. Guards, proposals, outbox, receipts and packets are the same as
for the built-in agent. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from cockpit.decide.model import Done, ModelEvent, Prompt, ToolCall, Usage

PREFIX = "outside:"
"""What the names of such models begin with."""


class OutsideModel:
    """Answers a prompt with the call that the outside agent made, and else with nothing.

    ``name`` is ``outside:`` and what the client calls itself. Where the agent is not connected there is
    nothing but what was proposed before: its session can still be seen through to its rest.
    """

    def __init__(self, client: str) -> None:
        self.name = f"{PREFIX}{client}"
        self._call: ToolCall | None = None

    def take(self, call: ToolCall) -> None:
        """The agent's next answer."""
        self._call = call

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """The call that was taken, once; without one the agent has nothing more to say."""
        call, self._call = self._call, None
        if call is not None:
            yield call
        yield Done(Usage(), "end" if call is None else "tool")
