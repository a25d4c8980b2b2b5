"""The same facts give the same bytes: in another process, folder and hash seed, and as recorded."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.compile_packet import ALGORITHM, ALGORITHMS, UnknownAlgorithm, compile_packet
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packets import REASONS
from cockpit.store.context.profile_model import (
    BANDS,
    Band,
    Profile,
    Rule,
    check,
    load_shipped,
    parse_predicate,
    scale,
)

pytestmark = pytest.mark.slow

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))
CURRENT = [path for path in HISTORIES if ALGORITHM.replace("/", "-") in path.name]
CASES = 150

ANOTHER = """
import gzip, json, sys
sys.path.insert(0, sys.argv[1])
from test_orient_replay import cases, compiled
for path in sys.argv[2:]:
    print(compiled(json.loads(gzip.decompress(open(path, "rb").read())), backwards=True).digest)
for made in cases(backwards=True):
    print(made)
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
                Rule(rule_id, source, parse_predicate(when), *weights)
                for rule_id, source, when, *weights in body["rules"]
            ),
        )
    )
    facts = [SessionFact(*fields) for fields in history["facts"]]
    return compile_packet(
        facts[::-1] if backwards else facts,
        profile,
        history["ordinal"],
        algorithm=json.loads(history["packet"])["algorithm"],
    )


@lru_cache
def cases(*, backwards: bool = False) -> list[str]:
    """The digests of some hundred made packets, of each algorithm."""
    found = []
    for case in range(CASES):
        dice = random.Random(case)
        most = dice.choice((90, 900, 9_000))
        facts = [
            SessionFact(
                f"f-{number:024x}",
                kind := dice.choice(("file", "diff", "note", "log")),
                f"{kind}:{dice.randrange(12)}",
                dice.choice(BANDS),
                dice.randrange(1, 5),
                number,
                False,
                dice.randrange(9) == 0,
                dice.randrange(1, 20) * 50_000,
                (dice.randrange(1, most), dice.randrange(most // 3), dice.randrange(9)),
                dice.choice(("", "", "k1", "k2")),
            )
            for number in range(dice.randrange(60))
        ]
        shape = replace(scale(load_shipped(), 9_000), ranking=dice.choice(("utility", "density")))
        found += [
            compile_packet(facts[::-1] if backwards else facts, shape, 4, algorithm=name).digest
            for name in ALGORITHMS
        ]
    return found


def recorded(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))  # type: ignore[no-any-return]


def test_there_are_histories_of_the_algorithm_in_use() -> None:
    assert len(CURRENT) >= 3
    reasons = {
        reason for path in CURRENT for reason in json.loads(recorded(path)["packet"])["drops"]
    }
    assert reasons == set(REASONS)


def test_every_algorithm_has_its_histories() -> None:
    made = {json.loads(recorded(path)["packet"])["algorithm"] for path in HISTORIES}
    assert made == set(ALGORITHMS)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.name)
def test_a_recorded_packet_compiles_to_the_same_bytes(path: Path) -> None:
    history = recorded(path)
    packet = compiled(history)
    assert canonical_json(packet.body()) == history["packet"]
    assert packet.digest == history["digest"]


def test_an_algorithm_that_is_gone_is_named() -> None:
    with pytest.raises(UnknownAlgorithm, match=r"bands/0.*bands/1, bands/2"):
        compile_packet([], load_shipped(), 1, algorithm="bands/0")


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_gives_the_same_digests(seed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, str(Path(__file__).parent), *map(str, HISTORIES)],
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
    told = done.stdout.split()
    assert told[: len(HISTORIES)] == [recorded(path)["digest"] for path in HISTORIES]
    assert told[len(HISTORIES) :] == cases()


def test_nothing_of_the_machine_is_loaded_to_compile(tmp_path: Path) -> None:
    probe = (
        "import sys; import cockpit.orient; assert 'numpy' not in sys.modules;"
        "import cockpit.orient.compile_packet, cockpit.orient.verify_packet;"
        "print([name for name in ('textual', 'pydantic_ai', 'anthropic', 'openai')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
