"""Settings of work on other machines: ``[scale]`` (``docs/reference/configuration.md``)."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

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
    def address_for_people(self) -> str:
        """The address with the queue, as ``cockpit worker --connect`` takes it, without a password."""
        return f"{self.server_for_people}/{self.queue}"

    @property
    def server_for_people(self) -> str:
        """The server's address without a password."""
        return re.sub(r"//[^/@]*@", "//", self.server)


def read_scale(server: str | None = None, git: str = "origin") -> ScaleSettings:
    """Read the address of a NATS server, ``tls://HOST:4222/QUEUE?credentials=FILE&lease=SECONDS``.

    None is this machine alone. Raises ``ValueError``, whose text says what is wrong.
    """
    if server is None:
        return ScaleSettings(git=git)
    parts = urlsplit(server)
    given = dict(parse_qsl(parts.query))
    credentials, lease = given.pop("credentials", None), given.pop("lease", "30")
    if not parts.netloc or given:
        raise ValueError(
            "it is an address such as nats://HOST:4222/QUEUE, which may end with"
            " ?credentials=FILE&lease=SECONDS"
        )
    if not re.fullmatch(r"\d{1,4}(\.\d+)?", lease) or not 1 <= float(lease) <= 3_600:
        raise ValueError("lease is a number of seconds from 1 to 3600")
    return ScaleSettings(
        "nats",
        parts._replace(path="", query="").geturl(),
        parts.path.strip("/") or "cockpit",
        git,
        credentials,
        float(lease),
    )
