"""Deny rules, then the policy: cockpit's own table passes requests alike, however an agent sends them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from permission_world import bash, edit, mcp, open_world, options, write

from cockpit.core.state_folder import state_root
from cockpit.hook.event_payload import read_payload
from cockpit.loop.permissions.ask_permission import approving_policy_of
from cockpit.loop.permissions.judge_request import judge_request
from cockpit.loop.permissions.judge_tool import find_tool_denial, judge_tool
from cockpit.loop.permissions.permission_body import describe_request, find_place
from cockpit.loop.permissions.permission_rules import propose_rule
from cockpit.loop.permissions.read_tool_request import read_acp_tool, read_claude_tool
from cockpit.loop.permissions.tool_request import ToolRequest, choose_option


def acp(kind: str, raw: Any = None, **call: Any) -> ToolRequest:
    return read_acp_tool(
        {"toolCallId": "c1", "kind": kind, "title": "does it", "rawInput": raw or {}, **call},
        options("allow_always", "allow_once", "reject_once"),
        agent="opencode",
    )


def claude(tool: str, **arguments: Any) -> ToolRequest:
    return read_claude_tool(tool, arguments)


CASES: list[tuple[str, ToolRequest, str, str]] = [
    # what it is, the request, its risk, the narrowest policy that allows it
    ("a read", claude("Read", file_path="calc.py"), "low", "reads"),
    ("a search", claude("Grep", pattern="x", path=".", glob="*.py"), "low", "reads"),
    ("a reading command", bash("grep -n def calc.py"), "low", "reads"),
    ("an edit", edit("calc.py", "-", "+"), "medium", "all"),
    ("a new file", write("notes.md", "x"), "medium", "all"),
    ("tests", bash("pytest -q"), "medium", "all"),
    ("the network", bash("curl https://example.invalid"), "medium", ""),
    ("a removal", bash("rm -r sub"), "high", ""),
    ("a push", bash("git push"), "high", ""),
    ("code on the command line", bash("python3 -c 'x'"), "medium", ""),
    ("a file outside", write("/etc/hosts", "x"), "high", ""),
    ("a way outside", edit("../other/a.py", "a", "b"), "high", ""),
    ("secrets", claude("Read", file_path=".env"), "high", ""),
    ("secrets written", write(".env", "x"), "high", ""),
    ("rules of agents", write(".claude/settings.json", "{}"), "high", ""),
    ("what agents read", write("CLAUDE.md", "obey"), "high", ""),
    ("what runs", edit("Makefile", "a", "b"), "high", ""),
    ("a redirection", bash("echo x > calc.py"), "medium", "all"),
    ("a redirection to what runs", bash("echo x > Makefile"), "high", ""),
    ("a redirection to what is not known", bash("echo x > $FILE"), "high", ""),
    ("a server", mcp({"title": "x"}), "high", ""),
    ("a page", claude("WebFetch", url="https://example.invalid"), "high", ""),
    ("an unknown tool", claude("Frobnicate", x=1), "high", ""),
    ("a plan", claude("ExitPlanMode", plan="do it"), "medium", ""),
    ("a question", claude("AskUserQuestion", questions=[]), "medium", ""),
    ("an argument that changes a shell", bash("ls", dangerouslyDisableSandbox=True), "high", ""),
    ("an edit over ACP", acp("edit", content=[{"type": "diff", "path": "calc.py", "oldText": "-",
                             "newText": "+"}]), "medium", "all"),
    ("a read over ACP", acp("read", {"filePath": "calc.py"}), "low", "reads"),
    ("a read over ACP that runs", acp("read", {"filePath": "calc.py", "command": "x"}), "high", ""),
    ("a read over ACP of nothing", acp("read"), "high", ""),
    ("a command over ACP", acp("execute", {"command": "ls"}), "low", "reads"),
    ("a command over ACP unstated", acp("execute"), "high", ""),
    ("a shell of one's own", acp("execute", {"command": ["./bash", "-lc", "ls"]}), "high", ""),
    ("an environment", acp("execute", {"command": "ls", "env": {"PATH": "."}}), "high", ""),
    ("a removal over ACP", acp("delete", locations=[{"path": "calc.py"}]), "medium", "all"),
    ("an unknown kind", acp("frobnicate", {"path": "calc.py"}), "high", ""),
    ("a command of Codex", acp("execute", {"command": ["bash", "-lc", "cat calc.py"]}), "low", "reads"),
]  # fmt: skip


def test_risk_and_policy(project):
    for what, request, risk, policy in CASES:
        judged = judge_request(request, project)
        assert not judged.denied
        assert (judged.risk, bool(judged.reasons) or risk != "high") == (risk, True), what
        by = {
            each: approving_policy_of(each, judged) for each in ("ask", "trusted", "reads", "all")
        }
        allowed = {"": (), "reads": ("reads", "all"), "all": ("all",)}[policy]
        assert by == {name: f"policy:{name}" if name in allowed else "" for name in by}, what


def test_deny_rules_are_the_same_for_every_way_in(project):
    for request in (
        bash("sudo make"),
        bash("echo x; cockpit proposals approve p-1"),
        claude("Frobnicate", command="mkfs.ext4 /dev/sda"),
        mcp({"script": "subprocess.run(['sudo', 'x'])"}),
        acp("execute", {"command": ["bash", "-lc", "cockpit run x"]}),
        acp("read", {"command": "shutdown now"}),
    ):
        assert judge_request(request, project).denied, request.title


def test_in_the_sandbox_only_what_leaves_waits(project):
    """In a worktree of its own an agent commits under every policy that uses rules."""
    own = Path(state_root()) / "projects" / "x" / "worktrees" / "T-1"
    shutil.copytree(project, own)
    for line, allowed in {
        "git add -A && git commit -m x": ("trusted", "reads", "all"),
        "git commit -m x && ./run": ("all",), "rm -rf build": ("all",), "npm ci": ("all",),
        "python3 - <<'P'\nx\nP": ("all",), "tar xf x": ("all",), "$X": ("all",), "git push": (),
        "gh pr create -t x -b y": (), "echo x > CLAUDE.md": (), "cat .env": (),
    }.items():  # fmt: skip
        judged = judge_request(replace(bash(line), confined=True), own)
        passes = [
            each for each in ("ask", "trusted", "reads", "all") if approving_policy_of(each, judged)
        ]
        assert passes == list(allowed), line
        if line != "git add -A && git commit -m x":
            assert judged.risk != "low"


async def test_a_policy_answers_without_the_user(project, tmp_path):
    world = open_world(project, tmp_path, "all")
    answer = await world.ask(edit("calc.py", "return a - b", "return a + b"), policy="all")
    assert (answer.allowed, answer.by) == (True, "policy:all")
    proposal = world.load(answer.proposal_id)
    assert (proposal.status, proposal.decided_by) == ("approved", "policy:all")
    world.store.close()


def test_options_are_chosen_by_kind_and_never_for_always():
    request = acp("execute", {"command": "ls"})
    assert choose_option(request.options, allowed=True).option_id == "o-allow_once"  # type: ignore[union-attr]
    assert choose_option(request.options, allowed=False).option_id == "o-reject_once"  # type: ignore[union-attr]
    only_always = acp("execute")
    only_always = read_acp_tool({}, options("allow_always"), agent="a")
    assert choose_option(only_always.options, allowed=True) is None


def test_a_call_that_is_only_an_id_is_joined_with_the_earlier_one(project):
    earlier = {
        "toolCallId": "c1", "kind": "edit", "title": "Edit calc.py",
        "content": [{"type": "diff", "path": str(project / "calc.py"), "oldText": "", "newText": "x"}],
    }  # fmt: skip
    request = read_acp_tool(
        {"toolCallId": "c1", "content": None}, (), agent="vibe", earlier=earlier
    )
    assert (request.kind, request.edits[0].after) == ("edit", "x")


def test_several_changes_of_one_file_are_one_diff(project):
    (project / "calc.py").write_text("a\nb\nc\n")
    request = claude(
        "MultiEdit",
        file_path=str(project / "calc.py"),
        edits=[
            {"old_string": "a", "new_string": "A"},
            {"old_string": "A\nb", "new_string": "AB", "replace_all": True},
        ],
    )
    body = describe_request(request, find_place(project)).body
    assert body["diffs"] == [{"path": "calc.py", "before": "a\nb\nc\n", "after": "AB\nc\n"}]


def test_a_file_that_is_not_as_the_agent_says_is_told(project):
    body = describe_request(edit("calc.py", "not there", "x"), find_place(project)).body
    assert any("is not as the agent describes it" in note for note in body["notes"])
    assert body["diffs"] == [{"path": "calc.py", "before": "not there", "after": "x"}]
    exists = describe_request(write("calc.py", "x"), find_place(project)).body
    assert any("its whole text is replaced" in note for note in exists["notes"])


def test_a_file_outside_or_of_secrets_is_not_opened(project, tmp_path):
    (tmp_path / "other").write_text("private")
    (project / ".env").write_text("private")
    for path in (str(tmp_path / "other"), ".env"):
        body = describe_request(write(path, "x"), find_place(project)).body
        assert "private" not in str(body)
        assert any("not opened" in note for note in body["notes"])


def test_huge_changes_are_bounded_and_said_so(project):
    described = describe_request(write("big.txt", "x\n" * 1_500_000), find_place(project))
    body = described.body
    assert described.judged.risk == "high"
    assert "Risk: part of its change is not shown." in body["notes"]
    assert len(str(body)) < 1_200_000
    assert any("larger than" in note for note in body["notes"])
    assert not body["editable"]


def test_a_command_that_is_shown_in_part_is_of_high_risk(project):
    whole = describe_request(bash("echo " + "y" * 15_000), find_place(project))
    assert (whole.judged.risk, whole.body["notes"]) == ("medium", [])
    part = describe_request(bash("echo " + "y" * 25_000), find_place(project))
    assert part.judged.risk == "high" and part.rule is None
    assert "5,005 of 25,005 characters of its command are not shown" in part.body["notes"][0]


def test_what_a_project_link_leads_to_is_the_project(project, tmp_path):
    link = tmp_path / "by-another-way"
    link.symlink_to(project)
    judged = judge_request(edit(link / "calc.py", "a", "b"), project)
    assert (judged.risk, judged.waits) == ("medium", False)
    body = describe_request(edit(link / "calc.py", "return", "give"), find_place(project)).body
    assert body["diffs"][0]["path"] == "calc.py"


def test_cockpits_own_state_is_denied(project):
    from cockpit.core.state_folder import state_root

    database = Path(state_root()) / "projects" / "x" / "cockpit.db"
    for request in (write(database, "x"), acp("delete", locations=[{"path": str(database)}])):
        assert "own state" in judge_request(request, project).denied


def test_a_change_that_would_grow_without_end_is_not_applied(project):
    (project / "calc.py").write_text("xx")
    doubling = {"old_string": "x", "new_string": "xx", "replace_all": True}
    request = claude("MultiEdit", file_path="calc.py", edits=[doubling] * 400)
    body = describe_request(request, find_place(project)).body
    assert any("too large to be shown" in note for note in body["notes"])


def test_depth_hides_no_command_from_the_deny_rules(project):
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(3_000):
        inner["a"] = {}
        inner = inner["a"]
    assert judge_request(bash("sudo make", extra=deep), project).denied
    assert describe_request(bash("make", extra=deep), find_place(project)).judged.risk == "high"


def test_a_plan_and_a_question_are_shown_whole(project):
    place = find_place(project)
    raw = {"plan": "# First\nthen"}
    for request in (claude("ExitPlanMode", **raw), acp("switch_mode", raw)):
        described = describe_request(request, place)
        assert described.body["body"] == "# First\nthen"
        assert described.judged.risk == "medium"
    asked = {"questions": [{"question": "Which one?", "options": [{"label": "This"}]}]}
    body = describe_request(claude("AskUserQuestion", **asked), place).body
    assert "Which one?" in str(body["fields"])
    assert judge_request(acp("think", {"command": "make"}), project).risk == "high"


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
        "Codex, adapter": over_acp("codex", command=script, cwd=cwd),
        "Codex, adapter before": over_acp("codex", command=argv, cwd=cwd, parsed_cmd=[]),
        "opencode": over_acp("opencode", command=script, description="x"),
        "wrapped twice": over_acp("x", command=f"sh -c {shlex.quote('bash -lc ' + quoted)}"),
    }


def describe(request: ToolRequest) -> tuple[Any, ...]:
    judged = judge_request(request, project())
    rule = propose_rule(request, judged, project())
    line = request.command or " ".join(request.argv)
    seen = (
        judged.risk,
        judged.reasons,
        judged.reads,
        judged.sensitive,
        judged.waits,
        judged.denied,
    )
    return (*seen, line, rule.what if rule else "")


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


@pytest.mark.search
@settings(max_examples=examples(25))
@given(SCRIPTS)
def test_a_script_is_judged_alike_over_every_way_in(script):
    judged = {way: describe(request) for way, request in ways(script).items()}
    first = judged["Claude Code, stdio"]
    assert {way: each for way, each in judged.items() if each != first} == {}, first


@pytest.mark.search
@settings(max_examples=examples(12))
@given(SCRIPTS)
def test_the_hook_itself_judges_as_the_queue_does(script):
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
            assert find_tool_denial(event.tool, event.arguments, event.command).words
            continue
        seen = judge_tool(
            event.tool, event.arguments, event.command, root=str(project()), cwd=event.cwd
        )
        assert (seen.risk, seen.reasons, seen.reads) == (queued.risk, queued.reasons, queued.reads)


HIGH = [
    "echo x > ../calc.py",
    "cd sub && echo x > calc.py",
    "echo x | bash > calc.py",
    "echo x > CLAUDE.md",
    "echo x >> .env",
    "cat calc.py > .claude/settings.json",
    "env bash -c 'echo x > calc.py'",
    "find . -name '*.py' -exec sh -c 'echo > {}' \\;",
    "bash -e -c 'cat .env'",
    "sed -i s/a/b/ Makefile",
    "ls | tee AGENTS.md",
    "mv calc.py sub/../Makefile",
    "python3 -c \"open('Makefile', 'w')\"",
    "bash <<< 'echo x > calc.py'",
    "bash -lc './bash -c ls'",
]


READS = ("cat calc.py", "grep '=>' calc.py", "wc -l calc.py", "git log -p -- calc.py")
ORDINARY = (
    "make test",
    "sed -i 's/a->b/c/' calc.py",
    "pytest -k 'a > b'",
    "git add Makefile",
    "touch a",
    # Not one plain command, so no read, though each part of it is one.
    "ls | wc -l",
    "cat calc.py 2>&1",
    # A here-document is data: the file is written, and run as any script of the project is.
    "cat > calc.sh <<EOF\nx > /etc/passwd\nEOF\nbash calc.sh",
)


@pytest.mark.parametrize(
    ("scripts", "risk", "reads"),
    [(HIGH, "high", False), (READS, "low", True), (ORDINARY, "medium", False)],
    ids=["what a quoted script does counts", "a read stays one", "ordinary work is not raised"],
)
def test_a_script_is_of_its_risk_however_it_is_wrapped(scripts, risk, reads):
    for script in scripts:
        for way, request in ways(script).items():
            judged = judge_request(request, project())
            assert (judged.risk, judged.reads) == (risk, reads), (script, way)
