"""Which tasks can really run at the same time: groups whose members touch nothing in common.

A claim is a path below which a task works: a package, a file or a directory, as declared, modified
by now or changed before. Two claims meet where one is the other or lies inside it. Pure; first-fit in
the order of the queue, so that the same queue always gives the same groups.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

_WILD = re.compile(r"[*?\[{]")


def claim_paths(*paths: Iterable[str]) -> tuple[str, ...]:
    """The claims that these packages and files make, sorted, each once.

    A pattern claims the directory in front of its first wildcard; the project's root is ``""``.
    """
    return tuple(sorted({_claim(path) for group in paths for path in group if path.strip()}))


def find_conflict(ours: Collection[str], theirs: Collection[str]) -> str | None:
    """The first claim of ``ours`` that meets one of ``theirs``, or None."""
    held = set(theirs)
    roots = {above for claim in theirs for above in _above(claim)}
    for claim in ours:
        if claim in held or claim in roots or any(above in held for above in _above(claim)):
            return claim
    return None


def group_tasks(
    ready: Sequence[tuple[str, Collection[str]]],
    running: Sequence[tuple[str, Collection[str]]],
    paths: Mapping[str, Collection[str]],
) -> dict[str, int]:
    """The group of each ready task, from 1 on, in the order given.

    ``running`` tasks hold their claims against group 1. ``paths`` names for a task those that it
    depends on through others: the two are never in one group, nor in group 1 beside a running one.
    """
    claim_map = ClaimMap()
    numbers: dict[str, int] = {}
    for task_id, claims in running:
        claim_map.add(claims, 1)
        numbers[task_id] = 1
    apart: dict[str, set[str]] = {}
    for task_id, others in paths.items():
        for other in others:
            apart.setdefault(task_id, set()).add(other)
            apart.setdefault(other, set()).add(task_id)
    groups: dict[str, int] = {}
    for task_id, claims in ready:
        conflicts = claim_map.conflicting_groups(claims)
        for other in apart.get(task_id, ()):
            if other in numbers:
                conflicts |= 1 << (numbers[other] - 1)
        # The lowest bit that is clear.
        number = (~conflicts & (conflicts + 1)).bit_length()
        claim_map.add(claims, number)
        numbers[task_id] = groups[task_id] = number
    return groups


@dataclass(slots=True)
class ClaimMap:
    """For each path the groups, as bits, that claim it and that claim it or something inside it.

    Groups count from 1.
    """

    at: dict[str, int] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)

    def conflicting_groups(self, claims: Iterable[str]) -> int:
        """The groups, as bits, with a claim that meets one of these; 0: they are free."""
        bits = 0
        for claim in claims:
            bits |= self.within.get(claim, 0)
            for above in _above(claim):
                bits |= self.at.get(above, 0)
        return bits

    def add(self, claims: Iterable[str], number: int) -> None:
        """Let the group of that number make these claims."""
        bit = 1 << (number - 1)
        for claim in claims:
            self.at[claim] = self.at.get(claim, 0) | bit
            self.within[claim] = self.within.get(claim, 0) | bit
            for above in _above(claim):
                self.within[above] = self.within.get(above, 0) | bit


def _claim(path: str) -> str:
    plain = path.strip().replace("\\", "/")
    wild = _WILD.search(plain)
    if wild is not None:
        plain = plain[: wild.start()].rpartition("/")[0]
    sound = posixpath.normpath(plain).lstrip("/") if plain else ""
    return "" if sound == "." else sound


@lru_cache(maxsize=16_384)  # the same few thousand paths, hundreds of times a change
def _above(claim: str) -> tuple[str, ...]:
    """What the claim lies inside of, the project's root included."""
    if not claim:
        return ()
    parts = claim.split("/")
    return ("", *("/".join(parts[:length]) for length in range(1, len(parts))))
