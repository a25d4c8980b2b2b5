"""The same command is judged alike, whatever the agent and the way in that it came by."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.hook.event_payload import read_payload
from cockpit.loop.permissions.judge_request import judge_request
from cockpit.loop.permissions.judge_tool import find_tool_denial, judge_tool
from cockpit.loop.permissions.permission_rules import propose_rule
from cockpit.loop.permissions.read_tool_request import (
    read_acp_tool,
    read_claude_tool,
    read_codex_approval,
)
from cockpit.loop.permissions.tool_request import ToolRequest

pytestmark = pytest.mark.slow

_ITEM = "item/commandExecution/requestApproval"


@cache
def project() -> Path:
    """A project with a file; nothing is written into it."""
    folder = Path(os.path.realpath(tempfile.mkdtemp()))
    subprocess.run(("git", "init", "--quiet", str(folder)), check=True)
    (folder / "calc.py").write_text("x = 1\n")
    return folder


def over_acp(agent: str, **raw: Any) -> ToolRequest:
    call = {"toolCallId": "c1", "title": "runs it", "kind": "execute", "rawInput": raw}
    return read_acp_tool(call, agent=agent, cwd=str(project()))


def ways(script: str) -> dict[str, ToolRequest]:
    """Every shape in which the agents that were tried ask for one script."""
    quoted = shlex.quote(script)
    argv = ["bash", "-lc", script]
    cwd = str(project())
    return {
        "Claude Code, stdio": read_claude_tool("Bash", {"command": script, "description": "x"}),
        "Claude Code, hook": read_claude_tool("Bash", {"command": script}, transport="hook"),
        "Claude Code, wrapped": read_claude_tool("Bash", {"command": f"bash -c {quoted}"}),
        "Codex, hook": read_claude_tool(
            "shell", {"command": argv, "workdir": cwd}, agent="codex", transport="hook", cwd=cwd
        ),
        "Codex, app-server": read_codex_approval(
            _ITEM, {"itemId": "1", "command": f"/bin/bash -lc {quoted}", "cwd": cwd}
        ),
        "Codex, app-server before": read_codex_approval(
            "execCommandApproval", {"callId": "1", "command": argv, "cwd": cwd}
        ),
        "Codex, adapter": over_acp("codex", command=script, cwd=cwd),
        "Codex, adapter before": over_acp("codex", command=argv, cwd=cwd, parsed_cmd=[]),
        "opencode": over_acp("opencode", command=script, description="x"),
        "wrapped twice": over_acp("x", command=f"sh -c {shlex.quote('bash -lc ' + quoted)}"),
    }


def describe(request: ToolRequest) -> tuple[Any, ...]:
    judged = judge_request(request, project())
    rule = propose_rule(request, judged, project())
    line = request.command or " ".join(request.argv)
    return (judged, line, rule.what if rule else "")


WORDS = st.sampled_from(
    """
    ls cat calc.py echo touch cp mv tee sed -i awk grep make test git push commit curl rm -rf / .. ~ .env
    .claude/settings.json Makefile ./bash sudo cockpit proposals approve python3 -c bash sh -lc eval env xargs
    > >> 2>&1 >/dev/null | && ; < << $(pwd) `id` $HOME 'a>b' "{print>\\"q\\"}" X=1 \\ * ? # ( ) { } ! &
    """.split()  # noqa: SIM905 - a list of quoted words is no easier to read
)
SCRIPTS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=7).map(" ".join),
    st.text(alphabet="ab>|&;'\"\\$`(){}#\n ./~é", min_size=1, max_size=20).filter(str.strip),
)


@settings(max_examples=examples(400))
@given(SCRIPTS)
def test_a_script_is_judged_alike_over_every_way_in(script: str) -> None:
    judged = {way: describe(request) for way, request in ways(script).items()}
    first = judged["Claude Code, stdio"]
    assert {way: each for way, each in judged.items() if each != first} == {}, first


@settings(max_examples=examples(150))
@given(SCRIPTS)
def test_the_hook_itself_judges_as_the_queue_does(script: str) -> None:
    for command in (script, f"/bin/bash -lc {shlex.quote(script)}", ["bash", "-lc", script]):
        payload = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "cwd": str(project()),
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        event = read_payload(json.dumps(payload).encode(), "claude")
        queued = judge_request(
            read_claude_tool("Bash", {"command": script}, cwd=str(project())), project()
        )
        if queued.denied:
            assert find_tool_denial(event.tool, event.arguments, event.command)
            continue
        seen = judge_tool(
            event.tool, event.arguments, event.command, root=str(project()), cwd=event.cwd
        )
        assert (seen.risk, seen.reasons, seen.reads) == (queued.risk, queued.reasons, queued.reads)


HIGH = [
    "echo x > ../calc.py",
    "echo x > $HOME/calc.py",
    "cd sub && echo x > calc.py",
    "ln -s sub s; echo x > s/calc.py",
    "echo x | bash > calc.py",
    "echo x > CLAUDE.md",
    "echo x >> .env",
    "cat calc.py > .claude/settings.json",
    "env bash -c 'echo x > calc.py'",
    "timeout 5 sh -c 'cat calc.py >> Makefile'",
    "find . -name '*.py' -exec sh -c 'echo > {}' \\;",
    "ls | xargs sh -c 'echo x > $0'",
    "bash -e -c 'cat .env'",
    'bash -c "echo x > $HOME/x"',
    "nice -n 5 bash -lc 'cat x > .codex/config.toml'",
    "awk 'BEGIN{print > \"calc.py\"}'",
    "awk 'BEGIN{print > \".claude/settings.json\"}'",
    "sed -i s/a/b/ Makefile",
    "cp calc.py ./CLAUDE.md",
    "ls | tee AGENTS.md",
    "touch .envrc",
    "mv calc.py sub/../Makefile",
    "python3 -c \"open('Makefile', 'w')\"",
    "dd if=calc.py of=Makefile",
    "bash <<< 'echo x > calc.py'",
    "bash -lc './bash -c ls'",
    "./bash -c ls",
]


@pytest.mark.parametrize("script", HIGH)
def test_what_a_quoted_script_does_counts(script: str) -> None:
    for way, request in ways(script).items():
        assert judge_request(request, project()).risk == "high", way


@pytest.mark.parametrize(
    "script", ["cat calc.py", "grep '=>' calc.py", "wc -l calc.py", "git log -p -- calc.py"]
)
def test_a_read_stays_one_however_it_is_wrapped(script: str) -> None:
    for way, request in ways(script).items():
        assert judge_request(request, project()).reads, way


@pytest.mark.parametrize(
    "script",
    ["make test", "sed -i 's/a->b/c/' calc.py", "pytest -k 'a > b'", "git add Makefile", "touch a"],
)
def test_ordinary_work_is_not_raised(script: str) -> None:
    for way, request in ways(script).items():
        assert judge_request(request, project()).risk == "medium", way
