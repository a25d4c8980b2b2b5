"""A model that does a chain's tasks with the agents' own tools, over the loopback server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

from loopback.replies import Reply, Say, Use
from loopback.server import Received

TASK = re.compile(r"implementer of T-\d+: Write (part\d+)")
WORKTREE = re.compile(r"program of your own in ([^ ]+?)\. You")
VERDICT = {"verdict": "PASS", "looked_at": "the change", "findings": "Sound."}
DONE = {"status": "done", "summary": "It is there."}


def answer_claude(request: Received) -> Reply:
    """Answer Claude Code: its role's file is written, and its answers are given in their form."""
    tools = {tool.get("name") for tool in request.body.get("tools", [])}
    if "Write" not in tools:
        return Say("ok")
    text = json.dumps(request.body["messages"])
    if "reviewer of" in text:
        return Say(calls=(Use("StructuredOutput", VERDICT),))
    if '"tool_result"' in text:
        return Say(calls=(Use("StructuredOutput", DONE),))
    part, folder = _task(text)
    path = f"{folder}/{part}.py"
    return Say(calls=(Use("Write", {"file_path": path, "content": f"# {part}\n"}),))


def _task(text: str) -> tuple[str, str]:
    part, folder = TASK.search(text), WORKTREE.search(text)
    assert part is not None and folder is not None, text[:2_000]
    return part[1], folder[1]


def answer_codex_over_acp(request: Received) -> Reply:
    """Answer Codex where its answers are words."""
    text = json.dumps(request.body.get("input", ""))
    if "reviewer of" in text:
        return Say("VERDICT: PASS\nLOOKED AT: the change\nSound.")
    if "call_output" in text:
        return Say("STATUS: done\nIt is there.")
    part, _ = _task(text)
    command = f"cp calc.py {part}.py"
    asks = {"sandbox_permissions": "require_escalated", "justification": "to write"}
    return Say(calls=(Use("exec_command", {"cmd": command, **asks}),))


def _in_words(
    tool: str, argument: str, result: str, request: Received, *, content: str = "content"
) -> Reply:
    tools = [
        entry.get("name") or entry.get("function", {}).get("name")
        for entry in request.body.get("tools", [])
    ]
    if tool not in tools:
        return Say("ok")
    text = json.dumps(request.body["messages"])
    if "reviewer of" in text:
        return Say("VERDICT: PASS\nLOOKED AT: the change\nSound.")
    if result in text:
        return Say("STATUS: done\nIt is there.")
    part, folder = _task(text)
    written = {argument: f"{folder}/{part}.py", content: f"# {part}\n"}
    return Say(calls=(Use(tool, written),))


IN_WORDS: dict[str, Callable[[Received], Reply]] = {
    "acp:claude": partial(_in_words, "Write", "file_path", '"tool_result"'),
    "acp:opencode": partial(_in_words, "write", "filePath", '"tool_result"'),
    "acp:vibe": partial(_in_words, "write_file", "path", '"tool_call_id"'),
    "acp:qwen": partial(_in_words, "write_file", "file_path", '"tool_call_id"'),
    "acp:copilot": partial(_in_words, "create", "path", '"tool_call_id"', content="file_text"),
    "acp:kimi": partial(_in_words, "Write", "path", '"tool_call_id"'),
}
"""What answers the agents whose answers are words, by runner."""


def claim(request: Received) -> Reply:
    """Say that the task is done, and do nothing: in words, or in the form that the request carries."""
    tools = [tool.get("name") for tool in request.body.get("tools", [])]
    if "StructuredOutput" in tools:
        return Say(calls=(Use("StructuredOutput", DONE),))
    if "json_schema" in json.dumps(request.body.get("text", "")):
        return Say(json.dumps(DONE))
    return Say("STATUS: done\nIt is there.")
