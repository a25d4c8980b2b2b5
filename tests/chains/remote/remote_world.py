"""Chains over several machines, played on one: a real NATS server, a shared repository, worker processes."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import run_cockpit
import yaml
from chains.chain_world import WORK, Chains
from commands.cli_world import PATIENCE_S

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "compose.yaml"
"""What users start: servers and workers of the tests have the same commands, with places of their own."""
SERVER = Path(sys.executable).with_name("nats-server")
LEASE_S = 2.0


def free_port() -> int:
    """Below those that the system gives to whoever asks for any: a killed server finds its own again."""
    while True:
        port = random.SystemRandom().randint(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def command_of(service: str, places: Mapping[str, str]) -> list[str]:
    """Return the command of a service of the example; ``places`` are those here, by the example's."""
    words = yaml.safe_load(EXAMPLE.read_text())["services"][service]["command"]
    assert set(places) <= set(words)
    return [places.get(word, word) for word in words]


@dataclass
class Server:
    """A NATS server with JetStream on the loopback address; what it stores outlives it."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        own = ("-a", "127.0.0.1", "-p", str(self.port))
        words = (*command_of("nats", {"/data": str(self.folder)}), *own)
        log = self.folder.with_suffix(".log")
        log.write_bytes(b"")
        with log.open("ab") as told:
            self.process = subprocess.Popen([str(SERVER), *words], stdout=told, stderr=told)
        deadline = time.monotonic() + PATIENCE_S
        while "Server is ready" not in (said := log.read_text()):
            assert self.process.poll() is None and time.monotonic() < deadline, said
            time.sleep(0.02)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class Machines:
    """A coordinator's project, and workers with homes of their own."""

    chains: Chains
    server: Server
    shared: Path
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start_worker(self, name: str) -> None:
        """Start a worker; its state and configuration are its own machine's."""
        home = self.shared.parent / name
        (home / "config").mkdir(parents=True, exist_ok=True)
        env = {
            **self.chains.project.env,
            "HOME": str(home),
            "COCKPIT_CONFIG_DIR": str(home / "config"),
            "COCKPIT_STATE_DIR": str(home / "state"),
        }
        places = {
            "nats://nats:4222/shop": f"{self.server.url}/shop?lease={LEASE_S}",
            "/srv/shop.git": str(self.shared),
        }
        words = [*run_cockpit.PROGRAM, *command_of("worker", places), "--name", name]
        with (home / "log").open("a") as log:
            self.workers[name] = subprocess.Popen(
                words, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
            )  # fmt: skip

    def log(self, name: str) -> str:
        return (self.shared.parent / name / "log").read_text()

    def work(self, scenario: str) -> subprocess.Popen[str]:
        """Start a chain over the whole backlog."""
        return self.chains.project.start(*WORK, "--all", *self.chains.model(scenario))

    def end(self) -> None:
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.server.kill()


@contextlib.contextmanager
def machines(folder: Path, count: int) -> Iterator[Machines]:
    """A project with ``count`` tasks, whose chains are done over a queue."""
    chains = Chains.made(folder, count)
    shared = folder / "shared.git"
    chains.project.git("clone", "--quiet", "--bare", str(chains.root), str(shared))
    chains.project.git("remote", "add", "origin", str(shared))
    server = Server(folder / "jetstream")
    server.start()
    chains.project.config.mkdir(exist_ok=True)
    address = json.dumps(f"{server.url}/shop?lease={LEASE_S}")
    (chains.project.config / "config.toml").write_text(f"[scale]\nserver = {address}\n")
    world = Machines(chains, server, shared)
    try:
        yield world
    finally:
        world.end()
