"""The README, the tutorials and the how-tos do what they say: their blocks are run, in their order."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from page_blocks import read_blocks
from page_world import World
from sandbox_here import CONFINES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
READERS = {
    "json": json.loads,
    "toml": tomllib.loads,
    "python": lambda text: compile(text, "", "exec"),
}
OTHERS = ("text", "markdown", "yaml", "ini")
"""Languages of blocks that nothing reads here: what a user writes or sees."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def can_run(page: Path) -> bool:
    """Without a sandbox no tool runs, and no chain under the policy ``all``."""
    text = page.read_text(encoding="utf-8")
    return CONFINES or not re.search(
        r"^ *\$ cockpit (trust [a-z_]+|work .*--approve all)", text, re.M
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if can_run(page)], ids=name)
def test_the_blocks_of_a_page(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = World(tmp_path)
    request.addfinalizer(world.close)
    for block in read_blocks(page):
        if "file" in block.says:
            world.write(block.says["file"], block.text)
        if block.language in READERS:
            READERS[block.language](block.text)
        elif block.language == "console":
            if "no-run" not in block.says:
                world.follow(block)
        else:
            assert block.language in OTHERS, f"{name(page)}:{block.line} names no language"


def test_nearly_every_command_of_a_page_is_run() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page) if block.language == "console"]
    left = [block for block in blocks if "no-run" in block.says]
    assert all(block.says["no-run"] for block in left)
    assert len(left) * 10 <= len(blocks), f"{len(left)} of {len(blocks)} are not run"
