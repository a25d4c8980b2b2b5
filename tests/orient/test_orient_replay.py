"""The same facts give the same bytes: in another process, folder and hash seed, and as recorded."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from replay_cases import cases, compiled

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.compile_packet import ALGORITHM
from cockpit.store.context.packets import REASONS

pytestmark = pytest.mark.slow

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))

ANOTHER = """
import gzip, json, sys
sys.path.insert(0, sys.argv[1])
from replay_cases import cases, compiled
for path in sys.argv[2:]:
    print(compiled(json.loads(gzip.decompress(open(path, "rb").read())), backwards=True).digest)
for made in cases(backwards=True):
    print(made)
"""


def recorded(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))  # type: ignore[no-any-return]


def test_the_histories_have_every_reason() -> None:
    packets = [json.loads(recorded(path)["packet"]) for path in HISTORIES]
    assert {packet["algorithm"] for packet in packets} == {ALGORITHM}
    assert {reason for packet in packets for reason in packet["drops"]} == set(REASONS)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.name)
def test_a_recorded_packet_compiles_to_the_same_bytes(path: Path) -> None:
    history = recorded(path)
    packet = compiled(history)
    assert canonical_json(packet.body()) == history["packet"]
    assert packet.digest == history["digest"]


def test_another_process_gives_the_same_digests(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, str(Path(__file__).parent), *map(str, HISTORIES)],
        env={**os.environ, "PYTHONHASHSEED": "4242", "TZ": "Pacific/Auckland", "COLUMNS": "7"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.split()
    assert told[: len(HISTORIES)] == [recorded(path)["digest"] for path in HISTORIES]
    assert told[len(HISTORIES) :] == cases()
