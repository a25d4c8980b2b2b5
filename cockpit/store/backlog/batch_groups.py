"""Which tasks can run at the same time: groups whose members claim no path in common.

A claim is a path below which a task works: a package, a file or a directory that the task declared,
or that it or an earlier attempt modified. Two claims conflict when they are equal or one contains
the other. Groups are filled first-fit in the order of the queue, so the same queue always gives the
same groups. Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field

_WILD = re.compile(r"[*?\[{]")


def claim_paths(*paths: Iterable[str]) -> tuple[str, ...]:
    """Turn packages and files into claims, sorted and each once.

    A pattern claims the directory in front of its first wildcard; the project's root is ``""``.
    """
    return tuple(sorted({_claim(path) for group in paths for path in group if path.strip()}))


def find_conflict(ours: Collection[str], theirs: Collection[str]) -> str | None:
    """Return the first claim of ``ours`` that conflicts with one of ``theirs``, or None."""
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
    """Assign each ready task a group, from 1, in the order given.

    Running tasks occupy group 1 with their claims. ``paths`` maps a task to those that it depends
    on through others: two such tasks never share a group, nor does one join group 1 while the other
    runs.
    """
    claim_map = ClaimMap()
    numbers: dict[str, int] = {}
    for task_id, claims in running:
        claim_map.add(claims, 1)
        numbers[task_id] = 1
    linked: dict[str, set[str]] = {}
    for task_id, others in paths.items():
        for other in others:
            linked.setdefault(task_id, set()).add(other)
            linked.setdefault(other, set()).add(task_id)
    groups: dict[str, int] = {}
    for task_id, claims in ready:
        conflicts = claim_map.conflicting_groups(claims)
        for other in linked.get(task_id, ()):
            if other in numbers:
                conflicts |= 1 << (numbers[other] - 1)
        # The lowest bit that is clear.
        number = (~conflicts & (conflicts + 1)).bit_length()
        claim_map.add(claims, number)
        numbers[task_id] = groups[task_id] = number
    return groups


class ClaimMap(Struct):
    """The groups that claim each path, as bits; groups count from 1."""

    at: dict[str, int] = field(default_factory=dict)
    """Groups that claim exactly this path."""
    within: dict[str, int] = field(default_factory=dict)
    """Groups that claim this path or something inside it."""

    def conflicting_groups(self, claims: Iterable[str]) -> int:
        """The groups, as bits, with a claim that conflicts with one of these; 0: none."""
        bits = 0
        for claim in claims:
            bits |= self.within.get(claim, 0)
            for above in _above(claim):
                bits |= self.at.get(above, 0)
        return bits

    def add(self, claims: Iterable[str], number: int) -> None:
        """Record that the group of that number makes these claims."""
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
    """The directories that contain the claim, the project's root included."""
    if not claim:
        return ()
    parts = claim.split("/")
    return ("", *("/".join(parts[:length]) for length in range(1, len(parts))))
