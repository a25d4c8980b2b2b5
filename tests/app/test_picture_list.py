"""``snapshots/README.md`` names each picture that exists, and what it shows."""

from __future__ import annotations

import re

from app_world import SIZES, SNAPSHOTS

MOST = 130
ROW = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_list_names_each_picture_once():
    rows = ROW.findall((SNAPSHOTS / "README.md").read_text("utf-8"))
    listed = [f"{name.replace('*', size)}.svg" for name, sizes, _ in rows for size in sizes.split()]
    there = [str(path.relative_to(SNAPSHOTS)) for path in SNAPSHOTS.rglob("*.svg")]
    assert sorted(listed) == sorted(there)
    assert len(there) <= MOST
    everywhere = " ".join(f"{width}x{height}" for width, height in SIZES)
    assert len([name for name, sizes, _ in rows if sizes == everywhere]) == 8
