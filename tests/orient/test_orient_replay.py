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

from cockpit.orient.compile import ALGORITHM, UnknownAlgorithm, compile_packet
from cockpit.store.attention import Band, Profile, Rule, check, read_predicate, shipped
from cockpit.store.canonical import canonical_json
from cockpit.store.facts import Linked
from cockpit.store.packets import REASONS

HISTORIES = sorted((Path(__file__).parents[1] / "histories").glob("*.json.gz"))
CURRENT = [path for path in HISTORIES if ALGORITHM.replace("/", "-") in path.name]

ANOTHER = """
import gzip, json, sys
sys.path.insert(0, sys.argv[2])
from test_orient_replay import compiled
print(compiled(json.loads(gzip.decompress(open(sys.argv[1], "rb").read())), backwards=True).digest)
"""


def compiled(history: dict[str, Any], *, backwards: bool = False) -> Any:
    """The packet of a recorded history, compiled now."""
    body = history["profile"]
    profile = check(
        Profile(
            history["profile_id"],
            history["profile_version"],
            body["total_token_budget"],
            0,
            "active",
            body["ranking"],
            tuple(Band(*band) for band in body["bands"]),
            tuple(
                Rule(rule_id, source, read_predicate(when), *weights)
                for rule_id, source, when, *weights in body["rules"]
            ),
        )
    )
    facts = [Linked(*fields) for fields in history["facts"]]
    return compile_packet(facts[::-1] if backwards else facts, profile, history["ordinal"])


def recorded(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))  # type: ignore[no-any-return]


def test_there_are_histories_of_the_algorithm_in_use() -> None:
    assert len(CURRENT) >= 3
    reasons = {
        reason for path in CURRENT for reason in json.loads(recorded(path)["packet"])["drops"]
    }
    assert reasons == set(REASONS)


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.name)
def test_a_recorded_packet_compiles_to_the_same_bytes(path: Path) -> None:
    history = recorded(path)
    packet = compiled(history)
    assert canonical_json(packet.body()) == history["packet"]
    assert packet.digest == history["digest"]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.name)
def test_an_algorithm_that_is_gone_is_named(path: Path) -> None:
    algorithm = json.loads(recorded(path)["packet"])["algorithm"]
    if algorithm == ALGORITHM:
        algorithm = "bands/0"
    with pytest.raises(UnknownAlgorithm, match=algorithm):
        compile_packet([], shipped(), 1, algorithm=algorithm)


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_gives_the_same_digest(seed: str, tmp_path: Path) -> None:
    path = CURRENT[0]
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, str(path), str(Path(__file__).parent)],
        env={
            **os.environ,
            "PYTHONHASHSEED": seed,
            "TZ": "Pacific/Auckland",
            "COLUMNS": "7",
            "COCKPIT_TOKEN_BUDGET": "5",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == recorded(path)["digest"]


def test_nothing_of_the_machine_is_loaded_to_compile(tmp_path: Path) -> None:
    probe = (
        "import sys; import cockpit.orient; assert 'numpy' not in sys.modules;"
        "import cockpit.orient.compile, cockpit.orient.verify;"
        "print([name for name in ('textual', 'pydantic_ai', 'anthropic', 'openai')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
