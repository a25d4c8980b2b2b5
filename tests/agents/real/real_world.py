"""The real programs that are there, how each finds its model on the loopback, and that model."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopback.replies import Reply, Say, Use
from loopback.server import Loopback, Received

from cockpit.agents.registry.known_agents import load_agents

PATHS = os.pathsep.join(
    filter(None, (os.environ.get("COCKPIT_AGENTS", ""), os.environ.get("PATH", "")))
)
"""``COCKPIT_AGENTS`` names folders of programs before the PATH."""
ALL = ("claude", "codex", "opencode", "vibe", "qwen", "copilot", "kimi")
PATIENCE_S = 180.0
"""A program that unpacks itself takes half a minute to start while others do the same."""


def find_program(name: str) -> str | None:
    """Return where a program of an agent is."""
    return shutil.which(name, path=PATHS)


INSTALLED = [name for name in ALL if find_program(load_agents().agents[name].acp.command[0])]


def prepare(name: str, home: Path, server: Loopback) -> dict[str, str]:
    """Log the agent in and point it at the loopback server; returns its variables."""
    match name:
        case "claude":
            (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
            return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-test"}
        case "codex":
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(
                'model = "gpt-5"\nmodel_provider = "lo"\n[model_providers.lo]\nname = "lo"\n'
                f'base_url = "{server.openai_url}"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            )
            return {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.openai_url}
        case "opencode":
            folder = home / ".config" / "opencode"
            folder.mkdir(parents=True)
            (folder / "opencode.json").write_text(json.dumps(opencode_settings(server)))
            return {}
        case "qwen":
            (home / ".qwen").mkdir()
            settings = {"security": {"auth": {"selectedType": "openai"}}}
            (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
            keyed = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.openai_url}
            return {**keyed, "OPENAI_MODEL": "m"}
        case "copilot":
            return {
                "COPILOT_PROVIDER_BASE_URL": server.openai_url,
                "COPILOT_PROVIDER_API_KEY": "sk-test",
                "COPILOT_MODEL": "m",
            }
        case "kimi":
            (home / ".kimi-code").mkdir()
            (home / ".kimi-code" / "config.toml").write_text(
                'default_model = "lo/m"\ntelemetry = false\n'
                f'[providers.lo]\ntype = "openai"\nbase_url = "{server.openai_url}"\n'
                'api_key = "sk-test"\n[models."lo/m"]\nprovider = "lo"\nmodel = "m"\n'
                'max_context_size = 100000\ncapabilities = ["tool_use"]\n'
            )
            return {}
        case _:
            (home / ".vibe").mkdir()
            (home / ".vibe" / "config.toml").write_text(
                'active_model = "m"\nenable_update_checks = false\nenable_telemetry = false\n'
                f'[[providers]]\nname = "lo"\napi_base = "{server.openai_url}"\n'
                'api_key_env_var = "MISTRAL_API_KEY"\nbackend = "generic"\n'
                '[[models]]\nname = "m"\nprovider = "lo"\nalias = "m"\n'
            )
            return {"MISTRAL_API_KEY": "sk-test"}


def opencode_settings(server: Loopback) -> dict[str, Any]:
    """Return opencode's configuration for a model on the server."""
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": "lo",
        "options": {"baseURL": server.openai_url, "apiKey": "k"},
        "models": {"m": {"name": "m", "limit": {"context": 100_000, "output": 8_000}}},
    }
    models = {"model": "lo/m", "small_model": "lo/m"}
    return {**models, "provider": {"lo": provider}, "autoupdate": False}


_EDITS = {
    "claude": ("Write", "file_path", "content"),
    "opencode": ("write", "filePath", "content"),
    "qwen": ("write_file", "file_path", "content"),
    "vibe": ("write_file", "path", "content"),
    "copilot": ("create", "path", "file_text"),
    "kimi": ("Write", "path", "content"),
}
"""The tool of each agent that writes a file, with its arguments for the path and the text."""


def edit_call(name: str, folder: Path, file: str = "made.txt") -> Use:
    """The tool call by which the model of this agent writes a file."""
    if name not in _EDITS:
        return command_call(name, f"touch {file}", ["exec_command"])
    tool, path, text = _EDITS[name]
    place = file if name in ("vibe", "kimi") else str(folder / file)
    return Use(tool, {path: place, text: "hi\n"}, f"call_{next(_NUMBERS)}")


def command_call(name: str, command: str, tools: list[str]) -> Use:
    """The tool call by which it runs a command."""
    call_id = f"call_{next(_NUMBERS)}"
    if name == "codex":
        asks = {"sandbox_permissions": "require_escalated", "justification": "to write"}
        return Use("exec_command", {"cmd": command, **asks}, call_id)
    if name == "qwen":
        return Use("run_shell_command", {"command": command, "is_background": False}, call_id)
    shell = next(tool for tool in tools if tool.lower() == "bash")
    arguments = {"command": command}
    if name != "vibe":
        arguments["description"] = "try"
    return Use(shell, arguments, call_id)


_NUMBERS = itertools.count(1)
_ACTS = re.compile(r"(edit|command)(?: (\S+\.txt))? now (\d+)")


_FOLDER = re.compile(r"(?:[Ww]orking|in the) directory: (/[^\s\\\"<]+)")


def model(name: str) -> Callable[[Received], Reply]:
    """A model that does what the user's last words name, once, and then says that it is done.

    ``edit [FILE] now N`` writes a file in the folder that the agent names, ``command [FILE] now N`` makes one
    in its shell.
    """
    begun: set[str] = set()

    def answer(request: Received) -> Reply:
        tools = [
            tool.get("name") or tool.get("function", {}).get("name") or ""
            for tool in request.body.get("tools", [])
        ]
        if not tools:
            return Say("A title")
        entries = request.body.get("messages") or request.body.get("input")
        while len(entries) > 1 and entries[-1].get("role") in ("system", "developer"):
            entries = entries[:-1]
        # Kimi Code adds reminders of its own behind what the user said.
        said = [place for place, each in enumerate(entries) if each.get("role") == "assistant"]
        text = json.dumps(entries[max(said[-1] + 1 if said else 0, len(entries) - 4) :])
        # Agents join the results of tools and later words as they like, so each word counts once.
        words = _ACTS.findall(text)
        if words and words[-1][2] not in begun:
            act, file, number = words[-1]
            begun.add(number)
            if act == "edit":
                folder = _FOLDER.search(json.dumps(request.body))
                root = Path(folder[1] if folder else "/nowhere")
                return Say("I begin.", calls=(edit_call(name, root, file or "made.txt"),))
            command = f"touch {file or 'ran.txt'}"
            return Say("I begin.", calls=(command_call(name, command, tools),))
        refused = "use the Makefile" in text
        return Say("I will use the Makefile." if refused else "All done here.")

    return answer
