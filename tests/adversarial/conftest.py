"""The table of attacks in ``README.md``: each row is what its test counts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent / "README.md"


@pytest.fixture
def attacks() -> Callable[..., None]:
    """Count the attacks of a class and those that came ``through``, at most ``most``; the table says so."""

    def count(kind: str, tried: int, through: Collection[object], *, most: int = 0) -> None:
        row = f"| {kind} | {tried:,} | {len(through)} |"
        print(row)
        assert len(through) <= most, (kind, through)
        if row not in PAGE.read_text(encoding="utf-8").splitlines():
            pytest.fail(f"tests/adversarial/README.md lacks the row {row!r}")

    return count
