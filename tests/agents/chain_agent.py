"""A small agent that speaks the protocols of real ones, and does a chain's tasks as their messages were.

Started as ``chain_agent.py stdio|acp [refused|reads]`` with whatever arguments follow. The shapes of its
messages are those that Claude Code 2.1.330 sent. ``refused``: it first asks for what a deny rule refuses,
and does the task all the same.
``reads``: it reads one line of ``calc.py`` and does nothing else.
"""

from __future__ import annotations

# ruff: noqa: PTH103, PTH109, PTH120 -- it starts as fast as it can
import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DONE = {"status": "done", "summary": "It is there."}
VERDICT = {"verdict": "PASS", "looked_at": "the change", "findings": "Sound."}


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def say(**body: Any) -> None:
    print(json.dumps(body), flush=True)


def answer_to(prompt: str) -> tuple[str, dict[str, Any]]:
    """Return the file to write, empty for none, and the answer."""
    if "reviewer of" in prompt:
        return "", VERDICT
    named = re.search(r"Write (part\d+)|`([\w./-]+)`", prompt)
    if named is None or reads():
        return "", DONE
    return f"{os.getcwd()}/{named[2] or named[1] + '.py'}", DONE


def reads() -> bool:
    return "reads" in sys.argv[2:3]


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def speak_stdio() -> None:
    greeting = hear()
    assert greeting["request"]["subtype"] == "initialize", greeting
    reply = {"subtype": "success", "request_id": greeting["request_id"], "response": {}}
    say(type="control_response", response=reply)
    prompt = hear()["message"]["content"][0]["text"]
    say(type="system", subtype="init", session_id="c-1", model="claude-sonnet-4-20250514")
    path, answer = answer_to(prompt)
    if "refused" in sys.argv[2:3]:
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "call_r"}
        asked["input"] = {"command": "sudo make install"}
        say(type="control_request", request_id="r-0", request=asked)
        assert hear()["response"]["response"]["behavior"] == "deny"
    if reads():
        given = {"file_path": f"{os.getcwd()}/calc.py", "offset": 1, "limit": 1}
        block = {"type": "tool_use", "id": "call_0", "name": "Read", "input": given}
        say(type="assistant", message={"id": "msg_0", "role": "assistant", "content": [block]})
        result = {"type": "tool_result", "tool_use_id": "call_0", "content": "def …"}
        say(type="user", message={"role": "user", "content": [result]})
    if path:
        given = {"file_path": path, "content": "x = 1\n"}
        block = {"type": "tool_use", "id": "call_0", "name": "Write", "input": given}
        usage = {"input_tokens": 10, "output_tokens": 2}
        message = {"id": "msg_1", "role": "assistant", "content": [block], "usage": usage}
        say(type="assistant", message=message, parent_tool_use_id=None)
        asked = {
            "subtype": "can_use_tool", "tool_name": "Write", "input": given, "tool_use_id": "call_0",
        }  # fmt: skip
        say(type="control_request", request_id="r-1", request=asked)
        decision = hear()["response"]["response"]
        allowed = decision["behavior"] == "allow"
        if allowed:
            write(path, decision["updatedInput"]["content"])
        text = "File created" if allowed else decision["message"]
        result = {"type": "tool_result", "tool_use_id": "call_0", "content": text}
        say(type="user", message={"role": "user", "content": [{**result, "is_error": not allowed}]})
    ended = {"result": json.dumps(answer), "structured_output": answer, "total_cost_usd": 0.25}
    used = {"input_tokens": 10, "output_tokens": 20}
    say(type="result", subtype="success", is_error=False, usage=used, **ended)
    while True:
        hear()


def speak_acp() -> None:
    def reply(heard: dict[str, Any], **result: Any) -> None:
        say(jsonrpc="2.0", id=heard["id"], result=result)

    def update(**fields: Any) -> None:
        params = {"sessionId": "s-1", "update": fields}
        say(jsonrpc="2.0", method="session/update", params=params)

    while True:
        heard = hear()
        match heard.get("method"):
            case "initialize":
                reply(heard, protocolVersion=1, agentCapabilities={}, authMethods=[])
            case "session/new":
                reply(heard, sessionId="s-1")
            case "session/prompt":
                blocks = heard["params"]["prompt"]
                path, answer = answer_to("".join(block.get("text", "") for block in blocks))
                if reads():
                    place = {"path": f"{os.getcwd()}/calc.py", "line": 1}
                    call = {"toolCallId": "call_0", "title": "Read", "kind": "read"}
                    raw = {"limit": 1}
                    update(sessionUpdate="tool_call", locations=[place], rawInput=raw, **call)
                    done = {"toolCallId": "call_0", "status": "completed"}
                    update(sessionUpdate="tool_call_update", **done)
                if path:
                    take_acp_call(path, update)
                text = f"STATUS: done\n{answer.get('summary')}"
                if "verdict" in answer:
                    text = f"VERDICT: PASS\nLOOKED AT: the change\n{answer['findings']}"
                update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
                reply(heard, stopReason="end_turn")


def take_acp_call(path: str, update: Any) -> None:
    diff = {"type": "diff", "path": path, "oldText": None, "newText": "x = 1\n"}
    call = {"toolCallId": "call_1", "title": f"Write {path}", "kind": "edit", "content": [diff]}
    update(sessionUpdate="tool_call", status="pending", **call)
    options = [
        {"optionId": "once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    params = {"sessionId": "s-1", "toolCall": call, "options": options}
    say(jsonrpc="2.0", id=77, method="session/request_permission", params=params)
    outcome = hear()["result"]["outcome"]
    allowed = outcome.get("optionId") == "once"
    if allowed:
        write(path, "x = 1\n")
    status = "completed" if allowed else "failed"
    update(sessionUpdate="tool_call_update", toolCallId="call_1", status=status)


if __name__ == "__main__":
    {"stdio": speak_stdio, "acp": speak_acp}[sys.argv[1]]()
