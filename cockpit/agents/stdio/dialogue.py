"""A protocol that an agent and cockpit speak over the agent's standard streams, one JSON object a line.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cockpit.agents.stdio.permissions import Permissions
from cockpit.agents.streams.stream_formats import Stream

LONGEST_KEY = 200
"""Characters of an agent's own id of a request."""


class Wire:
    """The agent's standard input. What is written after its end is dropped."""

    def __init__(self, write: Callable[[bytes], object], close: Callable[[], object]) -> None:
        self._write, self._close = write, close

    def send(self, body: Mapping[str, Any]) -> None:
        """Write one JSON object."""
        self._write(json.dumps(body, separators=(",", ":")).encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """Say that nothing more comes; the agent then ends."""
        self._close()


class Dialogue(Stream, Protocol):
    """A stream that answers."""

    permissions: Permissions

    def begin(self, wire: Wire) -> None:
        """Greet the agent and give it its prompt; called once, when it has started."""
        ...

    def interrupt(self) -> None:
        """Ask the agent to stop what it does; its process is ended soon after."""
        ...
