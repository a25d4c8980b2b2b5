"""Settings of work on other machines: ``[scale]`` (``docs/reference/configuration.md``)."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct


class ScaleSettings(Struct, frozen=True):
    """``[scale]``."""

    backend: Literal["local", "nats"] = "local"
    """Who does the tasks of chains: processes of this machine, or workers of any machine."""
    server: str = "nats://127.0.0.1:4222"
    """The address of the NATS server."""
    queue: str = "cockpit"
    """The name of the queue; coordinator and workers have the same."""
    git: str = "origin"
    """The repository that all machines can reach: a remote's name, an address or a path."""
    credentials: str | None = None
    """A file with the credentials of the NATS server; None: the address says all."""
    lease_s: float = 30.0
    """Seconds without a sign of life after which another worker gets a run."""
    at_once: int = 64
    """The most runs that a chain has in the queue and with workers at the same time."""

    @property
    def server_for_people(self) -> str:
        """The server's address without a password."""
        return re.sub(r"//[^/@]*@", "//", self.server)
