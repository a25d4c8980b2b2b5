"""The registry of guards: each is documented, in the order in which they are asked."""

from __future__ import annotations

import re
from pathlib import Path

from cockpit.act.guards.guard_registry import GUARDS, standard_guards
from cockpit.act.workspace import Workspace

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "guards.md"


def test_the_page_has_every_guard_in_its_order(ground: Workspace) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE.read_text(), re.MULTILINE)
    names = [name for name, _ in rows]
    asked = [guard.name for guard in standard_guards(ground.confined)]
    assert asked == [guard.name for guard in GUARDS]
    assert names[0] == "protected_test"  # of a role, before all others
    assert names[1 : len(asked) + 1] == asked
    assert [text for _, text in rows[1 : len(asked)]] == [guard.refuses for guard in GUARDS[:-1]]
