"""The table of states and their signs, which the documentation repeats."""

from __future__ import annotations

from pathlib import Path

import cockpit
from cockpit.loop.views.state_signs import state_signs

ROOT = Path(cockpit.__file__).parent


def test_a_state_has_one_sign_and_one_colour_wherever_it_stands():
    looks = {}
    for states in state_signs().values():
        for state, look in states.items():
            looks.setdefault(state, set()).add((look.sign, look.tone))
    assert looks["blocked"] == {("■", "bad")}
    assert {len(looks[each]) for each in ("running", "blocked", "failed", "stopped")} == {1}
    by_look = {}
    for states in state_signs().values():
        for look in states.values():
            by_look.setdefault(look.sign, set()).add(look.tone)
    assert by_look["■"] == {"bad"}
    assert by_look["✔"] == {"good"}


def test_the_documentation_has_the_table():
    page = (ROOT.parent / "docs/reference/screen.md").read_text(encoding="utf-8")
    for kind, states in state_signs().items():
        looks = ", ".join(dict.fromkeys(f"{look.sign} {look.word}" for look in states.values()))
        assert f"| {kind} | {looks} |" in page
