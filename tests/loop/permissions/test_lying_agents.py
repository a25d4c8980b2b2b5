"""An agent over ACP that says one thing and does another, or hides a second thing: it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cockpit.loop.permissions.judge_request import judge_request
from cockpit.loop.permissions.judge_tool import ToolRisk
from cockpit.loop.permissions.read_tool_request import read_acp_tool


def judge(root: Path, earlier: dict[str, Any] | None = None, **call: Any) -> ToolRisk:
    request = read_acp_tool(
        {"toolCallId": "c", **call}, agent="kimi", earlier=earlier, cwd=str(root)
    )
    return judge_request(request, root.resolve())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("x\n")
    (tmp_path / ".env").write_text("x\n")
    return tmp_path


HARMLESS = {"command": "cat a.py"}


@pytest.mark.parametrize(
    "extra",
    [
        {"script": "rm -rf ."},
        {"\u0441ommand": "rm -rf ."},  # a Cyrillic letter
        {"Command": "rm -rf ."},
        {"cmd": "rm -rf ."},
        {"env": {"PATH": "."}},
        {"stdin": "rm -rf ."},
    ],
)
def test_a_second_field_never_passes_unasked(root: Path, extra: dict[str, Any]) -> None:
    assert judge(root, kind="execute", rawInput=HARMLESS).reads
    judged = judge(root, kind="execute", rawInput={**HARMLESS, **extra})
    assert (judged.risk, judged.reads, judged.waits) == ("high", False, True)


@pytest.mark.parametrize("extra", [{"paths": [".env"]}, {"file": ".env"}, {"uri": "file:.env"}])
def test_a_second_file_never_passes_unasked(root: Path, extra: dict[str, Any]) -> None:
    assert judge(root, kind="read", rawInput={"path": "a.py"}).reads
    assert judge(root, kind="read", rawInput={"path": "a.py", **extra}).risk == "high"


@pytest.mark.parametrize(
    ("announced", "asked"),
    [
        ({"kind": "edit"}, {"kind": "execute", "rawInput": HARMLESS}),
        (
            {"kind": "execute", "rawInput": {"command": "rm -rf ."}},
            {"kind": "execute", "rawInput": HARMLESS},
        ),
        (
            {"kind": "read", "locations": [{"path": ".env"}]},
            {"kind": "read", "locations": [{"path": "a.py"}]},
        ),
    ],
)
def test_what_was_announced_and_what_is_asked_must_agree(root, announced, asked):
    judged = judge(root, announced, **asked)
    assert (judged.risk, judged.waits) == ("high", True)
    assert "it was announced as another call" in "; ".join(judged.reasons)
    assert judge(root, asked, **asked).reads
