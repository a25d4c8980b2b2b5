"""The example of workers in containers names only what cockpit, the NATS server and the repository have."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import yaml

from cockpit.commands.chains.remote_worker import worker

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "compose.yaml"
PAGE = ROOT / "docs" / "how-to" / "many-machines.md"


def example() -> dict[str, Any]:
    body: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return body


def test_the_worker_is_started_as_cockpit_takes_it():
    service = example()["services"]["worker"]
    command, *words = service["command"]
    assert command == worker.name
    given = worker.make_context(worker.name, list(words)).params
    host = re.fullmatch(r"nats://(\w+):4222/shop", given["connect"])
    assert host is not None and host[1] in example()["services"]
    mounted = [volume.split(":")[1] for volume in service["volumes"]]
    assert given["repository"] in mounted
    build = service["build"]
    assert (
        EXAMPLE.parent / build["context"] / build["dockerfile"]
    ).resolve() == ROOT / "Containerfile"
    image = (ROOT / "Containerfile").read_text()
    assert 'ENTRYPOINT ["cockpit"]' in image and "nats" in image
    providers = "".join(path.read_text() for path in (ROOT / "cockpit" / "decide").rglob("*.py"))
    for name in service["environment"]:
        assert f'"{name}"' in providers, name


def test_the_server_takes_its_options(tmp_path: Path):
    words = [
        str(tmp_path) if word == "/data" else word
        for word in example()["services"]["nats"]["command"]
    ]
    server = Path(sys.executable).with_name("nats-server")
    started = [str(server), *words, "-a", "127.0.0.1", "-p", "-1"]  # on a port that is free
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        assert any("Server is ready" in line for line in lines), "it ended at once"
        running.kill()


def test_the_page_shows_the_example_and_configures_what_it_has():
    page = PAGE.read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert shown == EXAMPLE.read_text()
    _, *configured = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (scale,) = (tomllib.loads(textwrap.dedent(text))["scale"] for text in configured)
    services = example()["services"]
    (published,) = services["nats"]["ports"]
    address, inside = published.rsplit(":", 1)
    assert (scale["server"], inside) == (f"nats://{address}/shop", "4222")
    given = worker.make_context(worker.name, services["worker"]["command"][1:]).params
    assert given["connect"] == "nats://nats:4222/shop"
    (mounted,) = services["worker"]["volumes"]
    assert mounted == f"./{Path(scale['git']).name}:{given['repository']}"
