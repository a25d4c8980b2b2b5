"""Packets to compile in one process and another: recorded ones, and made ones. It loads nothing of pytest."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from cockpit.orient.compile_packet import compile_packet
from cockpit.store.context.facts import SessionFact
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

CASES = 30


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
    return compile_packet(facts[::-1] if backwards else facts, profile, history["ordinal"])


@lru_cache
def cases(*, backwards: bool = False) -> list[str]:
    """The digests of made packets."""
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
        found.append(compile_packet(facts[::-1] if backwards else facts, shape, 4).digest)
    return found
