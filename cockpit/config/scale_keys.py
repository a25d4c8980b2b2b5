"""The settings of work on other machines, ``[scale]``: a project cannot set any of them."""

from __future__ import annotations

from typing import Literal

from cockpit.config.setting import TEXT, Key, number

SCALE_KEYS: tuple[Key, ...] = (
    Key(
        "scale",
        "backend",
        field="scale.backend",
        type=Literal["local", "nats"],
        allowed="local or nats",
        default="local",
        env="COCKPIT_SCALE_BACKEND",
        purpose="Who does the tasks of chains: this machine, or workers of any machine over NATS",
        project="none",
    ),
    Key(
        "scale",
        "server",
        field="scale.server",
        type=TEXT,
        allowed="the address of a NATS server, such as nats://HOST:4222 or tls://HOST:4222",
        default="nats://127.0.0.1:4222",
        env="COCKPIT_SCALE_SERVER",
        purpose="NATS server between the machines",
        project="none",
    ),
    Key(
        "scale",
        "queue",
        field="scale.queue",
        type=TEXT,
        allowed="letters, digits, - and _, at most 64",
        default="cockpit",
        env="COCKPIT_SCALE_QUEUE",
        purpose="Name of the queue; a project's coordinator and its workers have the same",
        project="none",
    ),
    Key(
        "scale",
        "git",
        field="scale.git",
        type=TEXT,
        allowed="a remote's name, an address or a path of a repository",
        default="origin",
        env="COCKPIT_SCALE_GIT",
        purpose="Repository over which work goes between the machines",
        project="none",
    ),
    Key(
        "scale",
        "credentials",
        field="scale.credentials",
        type=TEXT,
        allowed="the path of a credentials file of NATS",
        default=None,
        env="COCKPIT_SCALE_CREDENTIALS",
        purpose="Credentials for the NATS server",
        project="none",
    ),
    Key(
        "scale",
        "lease_s",
        field="scale.lease_s",
        type=number(1, 3_600),
        allowed="a number of seconds from 1 to 3600",
        default=30.0,
        env="COCKPIT_SCALE_LEASE_S",
        purpose="Silence of a worker, in seconds, after which another one gets its run",
        project="none",
    ),
)
