"""A model that does a chain's tasks with the agents' own tools, over the loopback server."""

from __future__ import annotations

import json
import re

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


def answer_claude_over_acp(request: Received) -> Reply:
    """Answer Claude Code where its answers are words."""
    return _in_words(request, "Write", "file_path", '"tool_result"')


def answer_vibe(request: Received) -> Reply:
    """Answer Mistral Vibe, whose answers are words."""
    return _in_words(request, "write_file", "path", '"tool_call_id"')


def answer_qwen(request: Received) -> Reply:
    """Answer Qwen Code, whose answers are words."""
    return _in_words(request, "write_file", "file_path", '"tool_call_id"')


def answer_copilot(request: Received) -> Reply:
    """Answer GitHub Copilot, whose answers are words."""
    return _in_words(request, "create", "path", '"tool_call_id"', "file_text")


def answer_kimi(request: Received) -> Reply:
    """Answer Kimi Code, whose answers are words."""
    return _in_words(request, "Write", "path", '"tool_call_id"')


def _in_words(
    request: Received, tool: str, argument: str, result: str, content: str = "content"
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


def claim(request: Received) -> Reply:
    """Say that the task is done, and do nothing: in words, or in the form that the request carries."""
    tools = [tool.get("name") for tool in request.body.get("tools", [])]
    if "StructuredOutput" in tools:
        return Say(calls=(Use("StructuredOutput", DONE),))
    if "json_schema" in json.dumps(request.body.get("text", "")):
        return Say(json.dumps(DONE))
    return Say("STATUS: done\nIt is there.")


def answer_opencode(request: Received) -> Reply:
    """Answer opencode, whose answers are words."""
    return _in_words(request, "write", "filePath", '"tool_result"')
