"""What ``docs/reference/profile-changes.md`` says is what the guard does."""

from __future__ import annotations

import re
from pathlib import Path

from cockpit.access.token_scopes import SCOPES
from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
from cockpit.orient.profile_changes.guard import CODES, CRITICAL, check_change, create_admin_policy
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context.profile_model import WEIGHT_ONE, load_shipped

PAGE = (
    Path(__file__).resolve().parents[3] / "docs" / "reference" / "profile-changes.md"
).read_text("utf-8")


def section(title):
    return PAGE.partition(f"## {title}")[2].partition("\n## ")[0]


def test_the_example_is_a_change_that_an_agent_may_make():
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    admin = create_admin_policy(150_000, horizon_max=50, floor_percent=100)
    assert (
        check_change(parse_change(example), load_shipped(), admin, AGENT_LIMITS, "agent/s-1") == ()
    )


def test_every_code_is_explained_once_and_in_order():
    listed = re.findall(r"^\| `(\w+)` \|", section("What is refused"), re.MULTILINE)
    assert listed == list(CODES)


def test_every_critical_source_and_scope_is_named():
    assert [name for name in CRITICAL if f"`{name}`" not in section("What is refused")] == []
    assert [scope for scope in SCOPES if f"`{scope}`" not in section("Who may")] == []


def test_the_envelope_is_the_one_that_holds():
    words = " ".join(section("Who may").split())
    assert f"at most {AGENT_LIMITS.horizon_max} waves" in words
    low, high = AGENT_LIMITS.priority_min / WEIGHT_ONE, AGENT_LIMITS.priority_max / WEIGHT_ONE
    assert f"priorities from {low:g} to {high:g}" in words
    assert (AGENT_LIMITS.band_percent, "within half of their present values" in words) == (50, True)
