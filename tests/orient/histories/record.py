"""Record a history: the facts of a wave, its profile, and the packet that was compiled from them.

    python tests/orient/histories/record.py

writes every history whose file is not there yet. A recorded file is never written again: when the
compiler's results are meant to change, its ``ALGORITHM`` gets a new name, and new histories join the
old ones.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.orient.compile_packet import ALGORITHM, compile_packet
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.profile_model import Profile, load_shipped, scale

HERE = Path(__file__).parent


def review() -> tuple[list[SessionFact], Profile, int]:
    """Wave 4 of a small review: everything fits, one file was read twice, one was pinned."""
    return list(_review()), load_shipped(), 4


def _review() -> Iterator[SessionFact]:
    place = 0

    def seen(
        kind: str,
        ref: str,
        band: str,
        tokens: tuple[int, int, int],
        ordinal: int = 1,
        *,
        key: str = "",
        pinned: bool = False,
        superseded: bool = False,
        utility: int = 700_000,
    ) -> SessionFact:
        nonlocal place
        place += 1
        identity = f"f-{text_digest(f'{ref} {place}')[:24]}"
        return SessionFact(
            identity, kind, ref, band, ordinal, place, pinned, superseded, utility, tokens, key
        )

    yield seen("rule", "rule:user", "identity", (180, 0, 9), pinned=True)
    yield seen("preamble", "preamble:cockpit", "identity", (640, 0, 8))
    yield seen("project", "project:AGENTS.md", "identity", (2_210, 300, 11), key="AGENTS.md")
    yield seen("task", "task:review", "objectives", (95, 0, 10), pinned=True)
    yield seen("dod", "dod:review_pr", "objectives", (240, 0, 12), pinned=True)
    yield seen("tools", "tools:review_pr", "capabilities", (1_480, 220, 9))
    for number, tokens in enumerate((2_400, 310, 5_900, 44)):
        ref = "diff:main..HEAD"
        path = f"src/part_{number}.py"
        yield seen("diff", ref, "situational", (tokens, tokens // 6, 14), key=f"diff {path}")
    yield seen(
        "file",
        "file:src/part_2.py",
        "situational",
        (9_100, 700, 12),
        2,
        key="src/part_2.py",
        superseded=True,
    )
    yield seen("exchange", "exchange:1", "situational", (130, 0, 15), 2)
    yield seen("person", "person:2", "objectives", (22, 0, 12), 3, pinned=True)
    yield seen(
        "file", "file:src/part_2.py", "situational", (9_240, 710, 12), 3, key="src/part_2.py"
    )
    yield seen("symbol", "symbol:retry", "situational", (860, 120, 10), 3, pinned=True)
    yield seen("search", "search:backoff", "situational", (1_900, 0, 11), 3, utility=400_000)
    yield seen("exchange", "exchange:2", "situational", (210, 0, 15), 3)
    yield seen("receipt", "receipt:run", "situational", (640, 90, 13), 4)
    yield seen("note", "note:retry", "exploration", (330, 0, 12), 4, utility=300_000)


def crowded() -> tuple[list[SessionFact], Profile, int]:
    """1,200 facts of twelve kinds for a budget of 40,000: levels, caps, ages and every drop reason."""
    dice = random.Random(20_260)
    kinds = {
        "identity": ("project", "rule"),
        "objectives": ("task", "plan", "person"),
        "capabilities": ("tools", "skill"),
        "situational": ("file", "diff", "search", "exchange", "log"),
        "exploration": ("docs", "note"),
    }
    facts = []
    for number in range(1_200):
        band = dice.choice([*kinds, "situational", "situational"])
        kind = dice.choice(kinds[band])
        full = dice.randrange(8, 900)
        key = f"place-{dice.randrange(300)}" if dice.randrange(3) == 0 else ""
        facts.append(
            SessionFact(
                f"f-{dice.getrandbits(96):024x}",
                kind,
                f"{kind}:{key}" if dice.randrange(4) == 0 else f"{kind}:{dice.randrange(60)}",
                band if dice.randrange(200) else "reserve",
                1 + number * 9 // 1_200,
                1 + number,
                dice.randrange(150) == 0,
                dice.randrange(12) == 0,
                dice.randrange(1_000_001) if dice.randrange(40) else 0,
                (full, full // 5 if dice.randrange(2) else 0, dice.randrange(5, 20)),
                key,
            )
        )
    dice.shuffle(facts)
    return facts, scale(load_shipped(), 40_000), 9


def dense() -> tuple[list[SessionFact], Profile, int]:
    """The same facts, ranked by value per fact."""
    facts, profile, ordinal = crowded()
    return facts, replace(profile, ranking="density"), ordinal


def lumpy() -> tuple[list[SessionFact], Profile, int]:
    """240 facts of thousands of tokens: few fit, some are larger than their source's share."""
    dice = random.Random(4_000)
    facts = [
        SessionFact(
            f"f-{dice.getrandbits(96):024x}",
            kind := dice.choice(("file", "diff", "docs", "log", "search")),
            f"{kind}:{dice.randrange(90)}",
            dice.choice(("identity", "objectives", "capabilities", "situational", "exploration")),
            1 + number // 60,
            1 + number,
            dice.randrange(80) == 0,
            dice.randrange(15) == 0,
            dice.randrange(1, 1_000_001),
            (tokens := dice.randrange(1_500, 9_000), tokens // 9 if dice.randrange(3) else 0, 12),
            "",
        )
        for number in range(240)
    ]
    return facts, load_shipped(), 4


SCENES: dict[str, Callable[[], tuple[list[SessionFact], Profile, int]]] = {
    "review": review,
    "crowded": crowded,
    "dense": dense,
    "lumpy": lumpy,
}


def main() -> None:
    for name, scene in SCENES.items():
        path = HERE / f"{name}.{ALGORITHM.replace('/', '-')}.json.gz"
        if path.exists():
            continue
        facts, profile, ordinal = scene()
        packet = compile_packet(facts, profile, ordinal)
        history = {
            "ordinal": ordinal,
            "profile_id": profile.profile_id,
            "profile_version": profile.version,
            "profile": profile.digest_body(),
            "facts": [[getattr(fact, field) for field in SessionFact.__slots__] for fact in facts],
            "packet": canonical_json(packet.body()),
            "digest": packet.digest,
        }
        path.write_bytes(gzip.compress(json.dumps(history, indent=0).encode(), mtime=0))
        print(path.name, packet.digest[:12], packet.facts, dict(packet.drops))


if __name__ == "__main__":
    main()
