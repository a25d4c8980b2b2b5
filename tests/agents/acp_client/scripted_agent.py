"""An ACP agent for tests: a real process that speaks the protocol and does what the prompt names.

The first word of the prompt is the act; what follows are its arguments. It uses the standard library alone,
so that it starts in no time. ``SCRIPTED`` in its environment is a JSON object of switches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SWITCHES = json.loads(os.environ.get("SCRIPTED", "{}"))
ALLOW = [
    {"optionId": "always-1", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes-2", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no-3", "name": "No", "kind": "reject_once"},
]


def absolute(path: str) -> str:
    return str(Path(path).absolute())


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


class Cancelled(Exception):
    """The client cancelled the prompt."""


class Agent:
    """One process of the agent."""

    def __init__(self) -> None:
        self.number = 1000
        self.answers: dict[Any, dict[str, Any]] = {}
        self.session = ""
        self.blocks: list[dict[str, Any]] = []
        self.cancelled = False
        self.queue: list[dict[str, Any]] = []

    def write(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def raw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)

    def update(self, update: str, /, **body: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": update, **body}}
        self.write({"method": "session/update", "params": params})

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content=words(text))

    def ask(self, method: str, **params: Any) -> int:
        self.number += 1
        params = {"sessionId": self.session, **params}
        self.write({"id": self.number, "method": method, "params": params})
        return self.number

    def wait(self, number: int) -> dict[str, Any]:
        """Wait for the answer to a request of ours; a cancellation is noted."""
        while number not in self.answers:
            message = self.read()
            if "method" not in message:
                self.answers[message["id"]] = message
            elif message["method"] == "session/cancel":
                self.cancelled = True
                if SWITCHES.get("cancel") != "ignored" and number not in self.answers:
                    # As the protocol asks, the client still answers what is open.
                    continue
            else:
                self.queue.append(message)
        return self.answers.pop(number)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.wait(self.ask(method, **params))

    def permission(self, call: dict[str, Any], options: Any = None) -> int:
        return self.ask("session/request_permission", toolCall=call, options=options or ALLOW)

    def allowed(self, answer: dict[str, Any]) -> bool:
        outcome = answer.get("result", {}).get("outcome", {})
        if outcome.get("outcome") == "cancelled":
            raise Cancelled
        return outcome.get("optionId", "").startswith("yes")

    # -- the protocol

    def main(self) -> None:
        while True:
            message = self.queue.pop(0) if self.queue else self.read()
            if "method" not in message:
                continue
            number, method = message.get("id"), message["method"]
            if number is None:
                continue
            once = SWITCHES.get("dies_once")
            if SWITCHES.get("dies") == method or (once and not Path(once).exists()):
                if once:
                    Path(once).touch()
                sys.stderr.write("\x1b[31mthe model's key is sk-ant-api03-" + "a" * 90 + "\n")
                sys.stderr.flush()
                os._exit(7)
            try:
                act = getattr(self, "on_" + method.replace("/", "_"))
                result = act(message.get("params") or {})
            except AttributeError:
                self.write({"id": number, "error": {"code": -32601, "message": "Method not found"}})
                continue
            except Cancelled:
                result = {"stopReason": "cancelled"}
            if isinstance(result, dict) and "__error__" in result:
                self.write({"id": number, "error": result["__error__"]})
            else:
                self.write({"id": number, "result": result})

    def on_initialize(self, params: dict[str, Any]) -> Any:
        sessions = {"fork": {}, "resume": {}}
        abilities = {"promptCapabilities": {"image": True}, "sessionCapabilities": sessions}
        login = {"id": "login", "name": "Log in with a browser"}
        return {
            "protocolVersion": SWITCHES.get("protocol", 1),
            "agentCapabilities": {"loadSession": True, **abilities},
            "agentInfo": {"name": "scripted", "version": "1.2.3"},
            "authMethods": [login, *SWITCHES.get("ways", [])],
        }

    def on_authenticate(self, params: dict[str, Any]) -> Any:
        if params["methodId"] != "login":
            return {"__error__": {"code": -32603, "message": "The browser was closed"}}
        Path("logged-in").touch()
        return {}

    def _state(self) -> dict[str, Any]:
        modes = [{"id": "auto", "name": "Auto"}, {"id": "ask", "name": "Ask"}]
        models = [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}]
        return {
            "modes": {"currentModeId": "auto", "availableModes": modes},
            "models": {"currentModelId": "small", "availableModels": models},
        }

    def on_session_new(self, params: dict[str, Any]) -> Any:
        if SWITCHES.get("login"):
            return {"__error__": {"code": -32000, "message": "Authentication required"}}
        self.session = "agent-session-1"
        self._keep(self.session)
        os.chdir(params["cwd"])
        return {"sessionId": self.session, **self._state()}

    def on_session_load(self, params: dict[str, Any]) -> Any:
        if self._is_gone(params["sessionId"]):
            return {"__error__": {"code": -32603, "message": "no such session"}}
        self.session = params["sessionId"]
        os.chdir(params["cwd"])
        self.update("user_message_chunk", content=words("an earlier prompt"))
        self.say("an earlier answer")
        return self._state()

    def _keep(self, session: str) -> None:
        """Keep a session in the home, as agents do."""
        if SWITCHES.get("keeps"):
            folder = Path.home() / ".scripted"
            folder.mkdir(exist_ok=True)
            (folder / session).touch()

    def _is_gone(self, session: str) -> bool:
        return bool(SWITCHES.get("keeps")) and not (Path.home() / ".scripted" / session).exists()

    def on_session_resume(self, params: dict[str, Any]) -> Any:
        if self._is_gone(params["sessionId"]) or SWITCHES.get("resume") == "refused":
            return {"__error__": {"code": -32603, "message": "no such session"}}
        self.session = params["sessionId"]
        os.chdir(params["cwd"])
        return self._state()

    def on_session_fork(self, params: dict[str, Any]) -> Any:
        forked = params["sessionId"] + "-fork"
        self._keep(forked)
        return {"sessionId": forked}

    def on_session_set_mode(self, params: dict[str, Any]) -> Any:
        self.update("current_mode_update", currentModeId=params["modeId"])
        return {}

    def on_session_set_model(self, params: dict[str, Any]) -> Any:
        return {}

    def on_session_prompt(self, params: dict[str, Any]) -> Any:
        self.cancelled = False
        text = "".join(block.get("text", "") for block in params["prompt"])
        act, _, rest = text.partition(" ")
        self.blocks = params["prompt"]
        reads = int(rest) if act == "spend" else 100
        reason = getattr(self, "act_" + act, self.act_answer)(rest)
        usage = {"inputTokens": reads, "outputTokens": 20, "cachedReadTokens": 40}
        usage["totalTokens"] = reads + 20
        return {"stopReason": reason or "end_turn", "usage": usage}

    # -- acts

    def act_answer(self, rest: str) -> None:
        self.update("agent_thought_chunk", content=words("Let me think.\n"))
        self.say(f"You said: {rest}")

    def act_blocks(self, rest: str) -> None:
        """Say what the prompt had beside its text."""
        shown = [
            " ".join([each["type"], each.get("mimeType") or each["name"], each.get("data", "")])
            for each in self.blocks[1:]
        ]
        self.say("\n".join(shown))

    def act_do(self, rest: str) -> None:
        done = subprocess.run(rest, shell=True, capture_output=True, text=True, check=False)
        self.say(f"Done: {done.returncode}. {done.stderr}")

    def act_everything(self, rest: str) -> None:
        seen = {"content": "look", "priority": "high", "status": "completed"}
        self.update("plan", entries=[seen, {**seen, "content": "write", "status": "pending"}])
        compact = {"name": "compact", "description": "Shorten the history"}
        self.update("available_commands_update", availableCommands=[compact])
        self.update("agent_thought_chunk", content=words("First I look.\n"))
        call = {"toolCallId": "c1", "title": "Read room.py", "kind": "read"}
        places = [{"path": absolute("room.py"), "line": 3}]
        self.update("tool_call", status="in_progress", locations=places, **call)
        content = [{"type": "content", "content": words("def area(): ...")}]
        self.update("tool_call_update", toolCallId="c1", status="completed", content=content)
        self.update("usage_update", used=500, size=200000, cost={"amount": 0.25, "currency": "USD"})
        self.update("something_new", wonder=True)
        self.say("All seen.")

    def act_costly(self, rest: str) -> None:
        """Say what it cost so far, and work for ever."""
        self.update("usage_update", used=500, size=200000, cost={"amount": 0.25, "currency": "USD"})
        self.act_hang(rest)

    def act_play(self, rest: str) -> str | None:
        """Send what a file lists: updates, requests for permission (each waits for its answer), errors."""
        for step in json.loads(Path(rest.partition("\n")[0]).read_text(encoding="utf-8")):
            if "permission" in step:
                self.wait(self.permission(step["permission"], step["options"]))
            elif "request" in step:
                self.call(step["request"], **step["params"])
            elif "fail" in step:
                sys.stderr.write(step["fail"] + "\n")
                sys.stderr.flush()
                return step["fail"]
            else:
                self.update(step.pop("update"), **step)
        return None

    def act_edit(self, rest: str) -> None:
        path, after = Path(absolute(rest or "note.txt")), "written by the agent\n"
        before = path.read_text(encoding="utf-8") if path.exists() else None
        diff = [{"type": "diff", "path": str(path), "oldText": before, "newText": after}]
        given = {"file_path": str(path), "content": after}
        call = {
            "toolCallId": "e1", "title": f"Write {path.name}", "kind": "edit", "rawInput": given,
        }  # fmt: skip
        self.update("tool_call", status="pending", content=diff, **call)
        asked = {"toolCallId": "e1"} if SWITCHES.get("bare") else {**call, "content": diff}
        if not self.allowed(self.wait(self.permission(asked))):
            self.update("tool_call_update", toolCallId="e1", status="failed")
            self.say("I was not allowed to.")
            return
        if SWITCHES.get("writes") == "fs":
            answer = self.call("fs/write_text_file", path=str(path), content=after)
            self.say("failed" if "error" in answer else "written")
        else:
            path.write_text(after, encoding="utf-8")
        self.update("tool_call_update", toolCallId="e1", status="completed", content=diff)
        self.say("I wrote it.")

    def act_command(self, rest: str) -> None:
        command = rest or "echo hi"
        given = {"command": command, "description": "say hi"}
        call = {"toolCallId": "x1", "title": command, "kind": "execute", "rawInput": given}
        self.update("tool_call", status="pending", **call)
        if not self.allowed(self.wait(self.permission(call))):
            self.update("tool_call_update", toolCallId="x1", status="failed")
            self.say("It did not run.")
            return
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        content = [{"type": "content", "content": words(done.stdout)}]
        self.update("tool_call_update", toolCallId="x1", status="completed", content=content)
        self.say("It ran.")

    def act_several(self, rest: str) -> None:
        numbers = []
        for place in range(int(rest or 3)):
            command = f"echo {place}"
            call = {"toolCallId": f"s{place}", "title": command, "kind": "execute"}
            numbers.append(self.permission({**call, "rawInput": {"command": command}}))
        answers = [self.wait(number) for number in numbers]
        if self.cancelled:
            raise Cancelled
        self.say(f"allowed {sum(self.allowed(answer) for answer in answers)}")

    def act_elicit(self, rest: str) -> None:
        """Ask the user by a form, or by an address, and say what came back."""
        if rest == "url":
            form = {"mode": "url", "url": "https://id.example/login?x=1", "elicitationId": "e-1"}
        else:
            red, blue = (
                {"const": "red", "title": "red — like a rose"},
                {"const": "blue", "title": "Blue"},
            )
            colours = [red, blue]
            properties = {
                "question_0": {"type": "string", "title": "Colour", "oneOf": colours},
                "question_0_custom": {"type": "string", "title": "Other"},
                "tests": {"type": "array", "title": "Tests", "items": {"anyOf": colours}},
                "count": {"type": "integer", "minimum": 1, "maximum": 9, "title": "How many"},
                "sure": {"type": "boolean", "title": "Sure", "default": True},
            }
            schema = {"type": "object", "properties": properties, "required": ["count"]}
            form = {"mode": "form", "requestedSchema": schema}
        answer = self.call("elicitation/create", message="How shall I paint it?", **form)
        self.say(json.dumps(answer.get("result", answer.get("error"))))

    def act_leave(self, rest: str) -> None:
        """Ask, and end the turn or die once a file is there, without an answer."""
        self.permission({"toolCallId": "l1", "title": "rm", "rawInput": {"command": "rm x"}})
        while not Path("go").exists():
            time.sleep(0.01)
        if rest == "dying":
            os._exit(9)

    def act_fs(self, rest: str) -> None:
        act, path, *more = rest.split()
        if act == "read":
            extra = {"line": int(more[0]), "limit": int(more[1])} if more else {}
            answer = self.call("fs/read_text_file", path=absolute(path), **extra)
            self.say(json.dumps(answer.get("result", answer.get("error"))))
        else:
            answer = self.call("fs/write_text_file", path=absolute(path), content=" ".join(more))
            self.say("error: " + answer["error"]["message"] if "error" in answer else "written")

    def act_terminal(self, rest: str) -> None:
        command, *given = rest.split()
        made = self.call("terminal/create", command=command, args=given, outputByteLimit=1000)
        if "error" in made:
            self.say("error: " + made["error"]["message"])
            return
        name = made["result"]["terminalId"]
        call = {"toolCallId": "t1", "title": rest, "kind": "execute", "status": "in_progress"}
        self.update("tool_call", content=[{"type": "terminal", "terminalId": name}], **call)
        if SWITCHES.get("kills"):
            self.call("terminal/kill", terminalId=name)
        ended = self.call("terminal/wait_for_exit", terminalId=name)
        output = self.call("terminal/output", terminalId=name)
        self.call("terminal/release", terminalId=name)
        gone = self.call("terminal/output", terminalId=name)
        self.say(json.dumps([ended.get("result"), output.get("result"), "error" in gone]))

    def act_flood(self, rest: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": words("more and more " * 10)}
        params = {"sessionId": self.session, "update": update}
        line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + "\n"
        self.raw(line * int(rest))

    def act_calls(self, rest: str) -> None:
        for place in range(int(rest)):
            self.update("tool_call", toolCallId=f"f{place}", title="again", kind="other")
            self.update("tool_call_update", toolCallId="f0", status="in_progress", title=f"{place}")
        self.say("done")

    def act_garbage(self, rest: str) -> None:
        self.raw("not json\n[1,2]\n{\n{}\n\n\x00\xff\n")
        self.raw("[" * 100_000 + "\n" + '{"a":' * 100_000 + "\n")
        self.update("agent_message_chunk", content="not an object")
        self.update("agent_message_chunk")
        self.update("tool_call", toolCallId=7, title=["x"], locations="y", content={"a": 1})
        self.update("plan", entries="none")
        for body in (
            *(
                '"id":{"a":1},"result":1',
                '"id":99999,"result":{}',
                '"method":42',
                '"method":"no/such"',
            ),
            *(
                '"id":[1],"method":"fs/read_text_file"',
                '"method":"session/update","params":{"update":7}',
            ),
            '"id":"q","method":"no/such/request","params":{"x":1e999}',
            '"id":"r","method":"session/request_permission","params":[1]',
            '"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk",'
            '"content":{"type":"text","text":"half \\ud800 a pair"}}}',
        ):
            self.raw(f'{{"jsonrpc":"2.0",{body}}}\n')
        self.say("\x1b]0;owned\x07\x1b[2Jstill \u202ehere")

    def act_other(self, rest: str) -> None:
        mine, self.session = self.session, "another-session"
        self.say("words of another session")
        answer = self.call("fs/read_text_file", path=absolute("calc.py"))
        self.session = mine
        self.say(f"refused: {'error' in answer}")

    def act_long(self, rest: str) -> None:
        piece = "x" * 1_000_000
        self.raw('{"jsonrpc":"2.0","method":"session/update","params":{"update":"')
        for _ in range(int(rest)):
            self.raw(piece)
        self.raw('"}}\n')
        self.say("after the long line")

    def act_twice(self, rest: str) -> None:
        given = {"command": "echo"}
        call = {"toolCallId": "w1", "title": "echo", "kind": "execute", "rawInput": given}
        for _ in range(2):
            params = {"sessionId": self.session, "toolCall": call, "options": ALLOW}
            self.write({"id": 5, "method": "session/request_permission", "params": params})
        self.say("allowed" if self.allowed(self.wait(5)) else "refused")

    def act_hang(self, rest: str) -> None:
        """Work for ever, until it is cancelled."""
        self.say("I work.")
        while True:
            message = self.read()
            if message.get("method") == "session/cancel" and SWITCHES.get("cancel") != "ignored":
                raise Cancelled

    def act_die(self, rest: str) -> None:
        self.say("I die.")
        if rest == "asking":
            self.permission({"toolCallId": "d1", "title": "rm", "rawInput": {"command": "rm x"}})
            time.sleep(0.05)
        sys.stderr.write("fatal: out of luck\n")
        sys.stderr.flush()
        os._exit(9)

    def act_child(self, rest: str) -> None:
        """Leave a child behind that would live for long, and write its id."""
        child = subprocess.Popen(["sleep", "1000"])
        Path("child.pid").write_text(str(child.pid), encoding="utf-8")
        self.say("a child")


if __name__ == "__main__":
    Agent().main()
