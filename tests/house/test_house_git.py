"""There is one way to git: no module but two starts it, and every module that starts a program is listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAYS = {"cockpit/access/run_program.py", "cockpit/core/project/safe_git.py"}
"""Where git's words are put together. They switch off what a repository could make git run."""
JUDGED = {"cockpit/access/commands/judge_command.py"}
"""Words that are judged and never run."""
STARTERS = {
    "cockpit/access/process_group.py": "the start of every other program",
    "cockpit/agents/confine/agent_gate.py": "the agent's own program, in its sandbox",
    "cockpit/agents/confine/agent_relay.py": "the agent's program, inside the sandbox",
    "cockpit/api/web/screen_terminal.py": "cockpit itself",
    "cockpit/app/command_process.py": "cockpit itself",
    "cockpit/app/external_editor.py": "the user's editor",
    "cockpit/chains/chain_process.py": "cockpit itself",
    "cockpit/chains/supervisor.py": "cockpit itself",
    "cockpit/commands/demo/demo_headless.py": "cockpit itself",
    "cockpit/core/project/safe_git.py": "git, with its own words",
    "cockpit/hook/ingest_worker.py": "cockpit itself",
    "cockpit/hook/start_chain.py": "cockpit itself",
    "cockpit/loop/knowledge/librarian.py": "cockpit itself",
}
"""The modules that start programs, with the programs."""
_STARTS = (
    r"run|Popen|call|check_call|check_output|getoutput|getstatusoutput|system|popen|startfile|fork|forkpty"
    r"|create_subprocess_exec|create_subprocess_shell|fork_exec|posix_spawnp?|exec[lv]\w*|spawn\w+"
)
_START = re.compile(
    rf"\b(?:subprocess|os|pty)\.(?:{_STARTS})\(|\basyncio\.create_subprocess_"
    rf"|\bfrom (?:subprocess|os|pty) import [^\n]*\b(?:{_STARTS})\b"
)


def _modules() -> dict[str, str]:
    files = (path for path in (ROOT / "cockpit").rglob("*.py") if "data" not in path.parts)
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}


def _git_words(text: str) -> list[int]:
    """Return the lines with words of a command that begins with git, unless they are compared."""
    lines = []
    compared: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            compared |= {node.left, *node.comparators}
        if isinstance(node, ast.Call):
            words = node.args if _START.search(f"{ast.unparse(node.func)}(") else []
        else:
            words = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        first, *rest = words or [None]
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            continue
        is_git = first.value.split(" ")[0].rpartition("/")[2] == "git" and node not in compared
        follows = rest[:1] and isinstance(rest[0], ast.Starred | ast.Constant)
        if is_git and (isinstance(node, ast.Call) or follows or " " in first.value):
            lines.append(node.lineno)
    return lines


def test_all_git_is_started_in_one_way() -> None:
    others = {
        name: _git_words(text)
        for name, text in _modules().items()
        if name not in WAYS | JUDGED and re.search(r"""["'/]git["' ]""", text)
    }
    assert {name: lines for name, lines in others.items() if lines} == {}


def test_every_module_that_starts_a_program_is_listed() -> None:
    assert {name for name, text in _modules().items() if _START.search(text)} == set(STARTERS)
