"""What was worked out of objects that never change, kept by the object itself.

A session's prompt repeats nearly all of the prompt before, and its packet the packet before: the same
records, not equal ones. To find one again by its identity takes a tenth of the time that comparing or hashing
it takes. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class KeptByIdentity(Generic[K, V]):
    """Values by object. The objects are kept, too, so that no other one can get their identity.

    ``most`` bounds the sum of what is kept, each with its weight; beyond, all are forgotten.
    """

    __slots__ = ("_kept", "_most", "_weight")

    def __init__(self, most: int) -> None:
        self._kept: dict[int, tuple[K, V]] = {}
        self._most = most
        self._weight = 0

    def get(self, key: K) -> V | None:
        """Return what was put for this very object, or None."""
        kept = self._kept.get(id(key))
        return None if kept is None else kept[1]

    def get_all(self, keys: Iterable[K]) -> list[V | None]:
        """Return what was put for each of these objects, or None in its place."""
        find = self._kept.get
        return [None if (kept := find(id(key))) is None else kept[1] for key in keys]

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Keep ``value`` for this object, and return it. ``weight``: 1, or its characters."""
        self._weight += weight
        if self._weight > self._most:
            self._kept.clear()
            self._weight = weight
        self._kept[id(key)] = key, value
        return value
