"""There is one way to git: no module but the door's own starts it, or another program, by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOORS = {"cockpit/access/run_program.py", "cockpit/core/project/safe_git.py"}
"""Where git's words are put together. They switch off what a repository could make git run."""
JUDGED = {"cockpit/act/command_risk.py"}
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
    "cockpit/commands/demo/demo_chain.py": "cockpit itself",
    "cockpit/core/project/safe_git.py": "git, with its own words",
    "cockpit/hook/ingest_worker.py": "cockpit itself",
    "cockpit/hook/start_chain.py": "cockpit itself",
    "cockpit/store/journal/verify_parts.py": "cockpit itself",
    "cockpit/loop/knowledge/librarian.py": "cockpit itself",
}
"""The modules that start programs, with what they start."""
_STARTS = {
    *("run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    *("create_subprocess_exec", "create_subprocess_shell", "fork_exec"),
    *("system", "popen", "posix_spawn", "posix_spawnp", "startfile", "fork", "forkpty"),
}
_OWNERS = {"subprocess", "os", "asyncio", "pty"}


_GIT = re.compile(r"""["'/]git["' ]""")
_START = re.compile(
    r"\bwhich\b[\s)]*\(|\bfrom (subprocess|os|pty) import\b"
    rf"|\b({'|'.join(sorted(_OWNERS))})\.({'|'.join(sorted(_STARTS))}|exec|spawn)"
)
"""What stands in the text of every module with such words, or with such a start; few others are parsed."""


def _trees(sign: re.Pattern[str]) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "cockpit").rglob("*.py")):
        if (ROOT / "cockpit" / "data") in path.parents:
            continue  # what is shipped as data is not a part of the program
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if sign.search(text):
            yield name, ast.parse(text)


def git_words(tree: ast.AST) -> list[int]:
    """The lines with a list of words that begins with git, and more than its name."""
    lines = []
    compared = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for part in (node.left, *node.comparators)
    }
    for node in ast.walk(tree):
        if id(node) in compared:
            continue
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        if isinstance(node, ast.Call):
            words = node.args
        first = words[0] if words else None
        if isinstance(first, ast.Starred):
            first = None
        name = first.value if isinstance(first, ast.Constant) else None
        if not isinstance(name, str) or name.split(" ")[0].rpartition("/")[2] != "git":
            continue
        if isinstance(node, ast.Call) and not _starts(node):
            continue
        follows = words[1:2]
        is_option = follows and (
            isinstance(follows[0], ast.Starred)
            or (isinstance(follows[0], ast.Constant) and isinstance(follows[0].value, str))
        )
        if is_option or " " in name or isinstance(node, ast.Call):
            lines.append(node.lineno)
    return lines


def _starts(node: ast.Call) -> bool:
    called = node.func
    if isinstance(called, ast.Name):
        return called.id == "which"  # others are noticed where they are imported
    if not isinstance(called, ast.Attribute):
        return False
    exec_or_spawn = called.attr.startswith(("exec", "spawn"))
    owner = called.value.id if isinstance(called.value, ast.Name) else ""
    named = called.attr in _STARTS or (exec_or_spawn and owner == "os") or called.attr == "which"
    return named and (owner in _OWNERS or owner == "shutil")


def starts(tree: ast.AST) -> list[int]:
    """The lines that start a program, or import a function that does."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _starts(node):
            called = ast.unparse(node.func)
            if called != "asyncio.run" and not called.startswith("shutil."):
                lines.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "os", "pty"):
            names = {alias.name for alias in node.names}
            if names & _STARTS or any(name.startswith(("exec", "spawn")) for name in names):
                lines.append(node.lineno)
    return lines


def test_every_git_goes_through_the_door() -> None:
    others = {name: git_words(tree) for name, tree in _trees(_GIT) if name not in DOORS | JUDGED}
    assert {name: lines for name, lines in others.items() if lines} == {}


def test_every_module_that_starts_a_program_is_listed() -> None:
    starting = {name for name, tree in _trees(_START) if starts(tree)}
    assert starting == set(STARTERS)


def test_what_goes_round_the_door_is_noticed() -> None:
    for line in (
        'subprocess.run(["git", "status"])',
        'words = ("git", *rest)',
        'subprocess.run("git status", shell=True)',
        'os.execvp("git", words)',
        'words = ["/usr/bin/git", "log"]',
        'asyncio.create_subprocess_exec("git", "log")',
    ):
        assert git_words(ast.parse(line)) and _GIT.search(line), line
    for line in ("os.posix_spawn(p, a, e)", "from subprocess import run", "subprocess.Popen(a)"):
        assert starts(ast.parse(line)) and _START.search(line), line
    assert not git_words(ast.parse('names = {"git", "hg"}; Check("git", "ok", text)'))
