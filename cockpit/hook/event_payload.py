"""The payload that an agent writes to a hook's standard input, reduced to the parts that are stored.

Claude Code and Codex share field names (``hook_event_name``, ``session_id``, ``cwd``, ``tool_name``,
``tool_input``, ``tool_response``); they differ in the form of a tool's response and of a failed
command. Texts of files never leave this module. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import json
import os

from cockpit.loop.permissions.tool_names import SHELLS, join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGENTS = ("claude", "codex")

KNOWN = frozenset(
    (
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "PostCompact",
        "SubagentStart",
        "SubagentStop",
        "Notification",
        "Stop",
    )
)
"""Events that are understood; most need nothing done. Any other is noted in the log."""

URGENT = frozenset(("PreCompact", "Stop", "SessionEnd", "SessionStart", "UserPromptSubmit"))
"""After these the agent may forget, or be gone, or the board shows another state: what is pending is
absorbed at once."""

EDITS = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))
PATCHES = frozenset(("apply_patch",))
READS = frozenset(("Read",))
"""Tools that read one file; their calls change nothing."""
_STATUS = "__update_task_status"

_COMMAND = 16_000
_PROMPT = 4_000
_HEAD, _TAIL = 8_000, 24_000
"""Characters kept of an output: what went wrong first, and the summary at its end."""
_LARGEST = 64_000_000
_PLAIN_ID, _DIGITS = 36, frozenset("0123456789abcdef-")


class Malformed(ValueError):
    """The input is not a hook's payload; the message says why, without repeating it."""


class Event:
    """One hook event. ``tool`` and ``arguments`` are empty where no tool is involved.

    Not a dataclass: importing those takes as long as everything else in a hook call.
    """

    __slots__ = ("agent", "arguments", "cwd", "name", "payload", "session", "tool")

    def __init__(self, agent: str, payload: dict[str, Any]) -> None:
        tool_input = payload.get("tool_input")
        self.agent = agent
        self.payload = payload
        self.name = _text(payload, "hook_event_name")
        self.session = _identify(_text(payload, "session_id"))
        self.cwd = _text(payload, "cwd")
        self.tool = _text(payload, "tool_name")
        self.arguments: dict[str, Any] = tool_input if isinstance(tool_input, dict) else {}

    @property
    def command(self) -> str:
        """Return the command line of a shell tool; '' for any other tool."""
        if self.tool not in SHELLS:
            return ""
        value = self.arguments.get("command", self.arguments.get("cmd", ""))
        if isinstance(value, list):
            return join_words([word for word in value if isinstance(word, str)])
        return value if isinstance(value, str) else ""

    def body(self) -> dict[str, Any] | None:
        """Return the part of the event that is stored until it is ingested; None for nothing."""
        if self.name == "SessionStart":
            return {"reason": _text(self.payload, "source")}
        if self.name == "SessionEnd":
            return {"reason": _text(self.payload, "reason")}
        if self.name == "PreCompact":
            return {"reason": _text(self.payload, "trigger")}
        if self.name == "Stop":
            return {}
        if self.name == "UserPromptSubmit":
            return {"prompt": _text(self.payload, "prompt")[:_PROMPT]}
        if self.name == "Notification":
            kind = _text(self.payload, "notification_type")[:60]
            return {"message": _text(self.payload, "message")[:500], "kind": kind}
        if self.name not in ("PostToolUse", "PostToolUseFailure"):
            return None
        arguments = self._kept()
        if arguments is None:
            return None
        output, code = self._result()
        return {
            "tool": self.tool,
            "arguments": arguments,
            "output": output,
            "exit_code": code,
            "failed": self.name == "PostToolUseFailure",
            "cwd": self.cwd,
        }

    def urgent(self, body: dict[str, Any]) -> bool:
        """Whether pending events are to be ingested without waiting for more."""
        command = body.get("arguments", {}).get("command", "")
        return self.name in URGENT or ("git" in command and "commit" in command)

    def _kept(self) -> dict[str, Any] | None:
        """Return the arguments that describe the work, without the texts of files."""
        if self.payload.get("is_interrupt") is True:
            return None  # the user stopped it, which says nothing about the work
        if self.tool in SHELLS:
            return {"command": self.command[:_COMMAND]}
        if self.tool in READS:
            kept = {each: self.arguments.get(each) for each in ("file_path", "offset", "limit")}
            return kept if isinstance(kept["file_path"], str) else None
        if self.tool in PATCHES:
            return {"input": _envelope(self.arguments)}
        if self.tool in EDITS:
            path = self.arguments.get("file_path", self.arguments.get("notebook_path"))
            return {"file_path": path} if isinstance(path, str) and path else None
        if self.tool.endswith(_STATUS) and self.name == "PostToolUse":
            response = self.payload.get("tool_response")
            if isinstance(response, dict) and response.get("isError"):
                return None
            names = ("task_id", "status")
            values = {name: self.arguments.get(name) for name in names}
            return values if all(isinstance(value, str) for value in values.values()) else None
        return None

    def _result(self) -> tuple[str, int | None]:
        """Return the tool's output, shortened, and its exit status where the agent gives it."""
        if self.name == "PostToolUseFailure":
            error = self.payload.get("error")
            text = error if isinstance(error, str) else ""
            code = _code_in(text)
            return _bounded(text), 1 if code is None else code
        if self.tool not in SHELLS:
            return "", None
        return _response(self.payload.get("tool_response"), self.agent)


def read_payload(raw: bytes, agent: str) -> Event:
    """Return the event in ``raw``. ``agent`` is the agent that the hook was installed for; '' detects it.

    Raises :class:`Malformed`.
    """
    if len(raw) > _LARGEST:
        raise Malformed(f"a payload of more than {_LARGEST} bytes")
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a payload of {len(raw)} bytes that is not JSON") from error
    if not isinstance(payload, dict):
        raise Malformed("a payload that is not a JSON object")
    event = Event(agent if agent in AGENTS else _agent(payload), payload)
    if not event.name or not event.session:
        raise Malformed("a payload without hook_event_name or session_id")
    return event


def _agent(payload: dict[str, Any]) -> str:
    transcript = _text(payload, "transcript_path")
    # Codex tells the turn with whatever happens in one, and keeps its transcripts under its name.
    return "codex" if "turn_id" in payload or "/.codex/" in transcript else "claude"


def _response(response: Any, agent: str) -> tuple[str, int | None]:
    if isinstance(response, str):
        inner = _object(response)
        if inner is not None:
            return _response(inner, agent)
        return _bounded(response), _code_in(response)
    if not isinstance(response, dict):
        return "", None
    code: int | None = None
    about = response.get("metadata")
    for place in (response, about if isinstance(about, dict) else {}):
        for name in ("exit_code", "exitCode", "returnCode"):
            value = place.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                code = value
    texts = [response.get(name) for name in ("stdout", "stderr", "output", "aggregated_output")]
    text = "\n".join(text for text in texts if isinstance(text, str) and text)
    ended = not (response.get("interrupted") or response.get("backgroundTaskId"))
    if code is None and agent == "claude" and ended:
        code = 0  # a command that fails there is an event of its own
    return _bounded(text), code


def _object(text: str) -> dict[str, Any] | None:
    """Parse a response that is an object written as text, as some versions send it."""
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and {"output", "metadata"} & set(value) else None


_SAYINGS = ("exit code", "exited with code", "exited with non-zero status code")


def _code_in(text: str) -> int | None:
    """Return the exit status in the first lines, which both agents write in words."""
    for line in text[:400].splitlines()[:6]:
        lowered = line.lower().strip()
        for saying in _SAYINGS:
            at = lowered.find(saying)
            if at < 0 or len(lowered) > 120:
                continue
            number = lowered[at + len(saying) :].lstrip(" :").split(" ")[0].rstrip(".,)")
            if number.lstrip("-").isdigit():
                return int(number)
    return None


def _envelope(arguments: dict[str, Any]) -> str:
    """Return the lines of a patch that name its files."""
    for name in ("command", "input", "patch"):
        text = arguments.get(name)
        if isinstance(text, list):
            text = next((part for part in text if isinstance(part, str) and "*** " in part), "")
        if isinstance(text, str) and "*** " in text:
            named = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
            return "\n".join(line for line in text.splitlines() if line.startswith(named))[
                :_COMMAND
            ]
    return ""


def _bounded(text: str) -> str:
    if len(text) <= _HEAD + _TAIL:
        return text
    from cockpit.core.failure_lines import pick_failure_lines

    kept = pick_failure_lines(text[_HEAD:-_TAIL])
    return "\n".join([text[:_HEAD], "[…]", *kept, *(["[…]"] if kept else []), text[-_TAIL:]])


def _text(payload: dict[str, Any], name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str):
        return ""
    # Half of a pair of surrogates can be written in JSON and stored nowhere.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _identify(session: str) -> str:
    """Return an agent's id of its session; by a digest, where it has the form of a secret."""
    if len(session) <= _PLAIN_ID and set(session) <= _DIGITS:
        return session  # as agents make them; whether it is a secret takes longer to tell than all else
    from cockpit.core.secrets import mask

    if mask(session) == session:
        return session
    import hashlib

    return f"[masked:session-{hashlib.sha256(session.encode()).hexdigest()[:16]}]"


def session_folder(event: Event | None) -> str:
    """Return the folder of the agent's session: its project's folder, else its working directory."""
    named = os.environ.get("CLAUDE_PROJECT_DIR", "")
    for path in (named, event.cwd if event else ""):
        if path and os.path.isdir(path):
            return path
    return os.getcwd()
