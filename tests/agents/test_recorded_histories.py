"""What real agents said is said again: the same proposals, the same journal, the same end.

Claude Code, Codex, opencode and Mistral Vibe over ACP, and the first over its own streams, in the versions
that ``recorded/`` names. How they were recorded: ``tests/agents/histories.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents.histories import ACP, DRIVEN, RECORDED, lines_of
from agents.play_histories import play_conversation, play_run

pytestmark = pytest.mark.slow


def outcome_of(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.outcome.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ACP)
async def test_a_conversation_over_acp(name: str, tmp_path: Path) -> None:
    played = await play_conversation(tmp_path, name, RECORDED / f"{name}-acp.jsonl")
    assert lines_of(played) == lines_of(outcome_of(f"{name}-acp"))


async def test_a_run_over_claude_codes_own_protocol(tmp_path: Path) -> None:
    played = await play_run(tmp_path, RECORDED / f"{DRIVEN}.jsonl")
    assert lines_of(played) == lines_of(outcome_of(DRIVEN))
