"""What a tool call tells of the work: files, tests, commits and errors, of every agent's tools."""

from __future__ import annotations

from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.store.backlog.wip import KEYS, SOLVED, merge, validate

ROOT = "/home/dev/project"


def bash(command: Any, output: str = "", code: int | None = 0, **more: Any) -> ToolUse:
    return ToolUse("Bash", {"command": command}, output, code, cwd=ROOT, **more)


def changed(command: Any, **more: Any) -> list[str]:
    return capture_tool_use(bash(command, **more)).get("files_modified", [])


PATCH = "*** Begin Patch\n*** {} File: src/a.py\n@@\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": f"{ROOT}/src/a.py", "old_string": "x"}),
        ("MultiEdit", {"file_path": "src/a.py", "edits": []}),
        ("NotebookEdit", {"notebook_path": f"{ROOT}/src/a.py"}),
        ("write_file", {"path": "src/a.py"}),
        ("edit_file", {"path": "./src/a.py"}),
        ("str_replace_editor", {"command": "create", "path": f"{ROOT}/src/a.py"}),
        ("apply_patch", {"input": PATCH.format("Update")}),
        ("shell", {"command": ["apply_patch", PATCH.format("Add")]}),
        ("shell", {"command": ["bash", "-lc", "echo x > src/a.py"]}),
        ("run", {"argv": ["sed", "-i", "s/a/b/", "src/a.py"]}),
        ("exec_command", {"cmd": "echo x > a.py", "workdir": f"{ROOT}/src"}),
    ],
)
def test_every_agent_s_editing_is_a_changed_file(tool: str, arguments: dict[str, Any]) -> None:
    patch = {"files_modified": ["src/a.py"], "uncommitted_changes": True}
    assert capture_tool_use(ToolUse(tool, arguments, "", 0, ROOT)) == patch
    inside = ToolUse("Edit", {"file_path": "a.py"}, "", None, f"{ROOT}/src", root=ROOT)
    assert capture_tool_use(inside) == patch


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat > a.py <<'EOF'\nopen('b', 'w')\nEOF", ["a.py"]),
        ("echo x >> sub/a.py", ["sub/a.py"]),
        ("cd sub && echo x | tee -a a.py | cat", ["sub/a.py"]),
        ("sed -i.bak -e s/a/b/ -e s/c/d/ a.py b.py", ["a.py", "b.py"]),
        ("sed --in-place=.o 's/a/b/' a.py", ["a.py"]),
        ("cp a.py b.py sub/", ["sub/a.py", "sub/b.py"]),
        ("mv a.py b.py", ["a.py", "b.py"]),
        ("touch a.py && git mv a.py b.py", ["a.py", "b.py"]),
        ("git checkout HEAD -- a.py", ["a.py"]),
        ("git apply <<'E'\n--- a/a.py\n+++ b/b.py\nE", ["a.py", "b.py"]),
        ("patch -p1 <<'E'\n--- a/a.py\t2026\n+++ b/a.py\t2026\nE", ["a.py"]),
        ("black a.py && prettier --write b.ts && gofmt -w c.go", ["a.py", "b.ts", "c.go"]),
        ("npx prettier --write b.ts", ["b.ts"]),
        ("dd if=/dev/zero of=a.bin count=1", ["a.bin"]),
        ("python -c \"open('a.py', 'w').write('x')\"", ["a.py"]),
        ("python3 - <<'E'\np = 'a.py'\nwith open(p, mode='a') as f: f.write('')\nE", ["a.py"]),
        (
            "python3 - <<'E'\nfrom pathlib import Path\nd = Path('sub')\n(d / 'a.py').write_text('')\nE",
            ["sub/a.py"],
        ),
        ("python3 -c \"import os, shutil\nshutil.copy('a', 'b')\nos.remove('c')\"", ["b", "c"]),
        ("cat > fix.py <<'E'\nopen('a.py', 'w')\nE\npython fix.py", ["a.py", "fix.py"]),
        ("node -e \"fs.writeFileSync('a.js', '')\"", ["a.js"]),
        # Outside of the project, nothing that stays, or only looking.
        ("cd /tmp && touch a", []),
        ("echo x > ../a", []),
        ("echo x > .git/config", []),
        ("cat a.py 2>/dev/null | head", []),
        ("sed -n 's/a/b/p' a.py", []),
        ("black --check a.py", []),
        ("git checkout topic", []),
        ("git apply --check x.patch", []),
        ("python -c \"open('a.py').read()\"", []),
        ("python -c \"print('open(a, w)')\"", []),
        ("grep -r 'x > y' .", []),
        ("echo $HOME > $OUT", []),
        ("python -c 'this is no python; open(1, \"w\")'", []),
    ],
)
def test_what_a_command_changes(command: str, files: list[str]) -> None:
    assert changed(command) == files


def test_a_script_on_the_disk_is_read_and_one_that_failed_is_not_believed() -> None:
    scripts = {f"{ROOT}/fix.py": "open('a.py', 'w').write('')"}
    assert capture_tool_use(bash("python fix.py"), scripts.get)["files_modified"] == ["a.py"]
    assert capture_tool_use(bash("cd sub && python ../fix.py"), scripts.get)["files_modified"] == [
        "sub/a.py"
    ]
    assert capture_tool_use(bash("python fix.py")) == {}
    two = {f"{ROOT}/fix.py": "open('a.py', 'w').write('')\nx = 1 / 0\nopen('b.py', 'w')"}
    broke = (
        "Traceback (most recent call last):\n"
        f'  File "{ROOT}/fix.py", line 2, in <module>\n    x = 1 / 0\nZeroDivisionError: no\n'
    )
    assert capture_tool_use(bash("python fix.py", broke, 1), two.get)["files_modified"] == ["a.py"]
    ended = capture_tool_use(bash("python fix.py", "1 test failed", 1), two.get)
    assert ended["files_modified"] == ["a.py", "b.py"]
    for told in ("python: can't open file 'fix.py'", "bash: python: command not found"):
        assert "files_modified" not in capture_tool_use(bash("python fix.py", told, 2), two.get)
    assert "files_modified" not in capture_tool_use(bash("sed -i s/a/b/ a.py", "sed: no", 1))


def test_a_test_run_is_kept_whole_and_what_failed_is_an_error_too() -> None:
    output = (
        "F.\n=== short test summary info ===\nFAILED tests/test_a.py::test_b - assert 1 == 2\n"
        "=== 1 failed, 1 passed in 0.03s ===\n"
    )
    patch = capture_tool_use(bash("pytest -q", output, 1))
    assert patch["test_results"] == {
        "runner": "pytest", "ran": True, "outcome": "fail", "counted": "tests", "passed": 1,
        "failed": 1, "skipped": 0, "failing_test": "tests/test_a.py::test_b",
    }  # fmt: skip
    (error,) = patch["errors"]
    assert (error["type"], error["message"]) == ("test_failure", "tests/test_a.py::test_b")
    after = capture_tool_use(bash("pytest -q", "=== 2 passed in 0.03s ===\n", 0))
    merged = merge(merge({}, patch), after)
    assert merged["test_results"]["failing_test"] == ""
    assert (merged["test_results"]["failed"], merged["test_results"]["passed"]) == (0, 2)


def test_a_commit_leaves_nothing_uncommitted_and_one_that_failed_leaves_things_as_they_are():
    known = {"message": "x", "commit": "f" * 40}
    for use, commit in (
        (bash("git add . && git commit -m x", "[main 1a2b3c4] x\n 1 file changed\n"), "1a2b3c4"),
        (bash("git commit -qm x", ""), None),
        (bash("git commit -m x", "[main (root-commit) 1a2b3c4] x\n"), "1a2b3c4"),
        (bash("git -C . commit -m x 2>&1 | tail -3", "[topic/a 1a2b3c4] x\n"), "1a2b3c4"),
        (ToolUse("git_commit", known, "", None, ROOT), "f" * 40),
    ):
        patch = capture_tool_use(use)
        assert patch == {
            "uncommitted_changes": False,
            **({"last_commit": commit} if commit else {}),
        }
    for use in (
        bash("git commit -m x", "nothing to commit, working tree clean\n", 1),
        bash("git commit --dry-run", "", 0),
        bash("git log --grep commit", "", 0),
        bash("git commit -m x | tail -1", "fatal: not a git repository\n", 0),
        ToolUse("git_commit", {"message": "x"}, "The branch is b.", None, ROOT, failed=True),
    ):
        assert not {"uncommitted_changes", "last_commit"} & set(capture_tool_use(use))


TRACE = """Traceback (most recent call last):
  File "/home/dev/project/src/a.py", line 42, in <module>
    f()
  File "/usr/lib/python3.11/json/decoder.py", line 3, in f
    raise TypeError("no")
TypeError: no
"""


@pytest.mark.parametrize(
    ("command", "output", "code", "kind", "file"),
    [
        ("python a.py", TRACE, 1, "type_error", "src/a.py:42"),
        ("python a.py 2>&1 | tail -5", TRACE, 0, "type_error", "src/a.py:42"),
        ("python a.py; echo done", f"{TRACE}done\n", 0, "type_error", "src/a.py:42"),
        ("python a.py", TRACE, None, "type_error", "src/a.py:42"),
        ("grep x log | python a.py", TRACE, 1, "type_error", "src/a.py:42"),
        ("foo", "bash: line 1: foo: command not found\n", 127, "command_not_found", None),
        ("python x.py", "can't open file 'x.py': No such file or directory\n", 2, "no_such_file", None),
        ("git push | tail", "fatal: no upstream\n", 0, "git_error", None),
        ("cargo build", "error[E0425]: no value\n --> src/a.rs:1:41\n", 101, "compile_error", "src/a.rs:1"),
        ("npm run x", "npm error Missing script: x\n", 1, "npm_error", None),
        ("./x", "", 3, "exit_code", None),
        ("grep x nofile", "grep: nofile: No such file or directory\n", 2, "no_such_file", None),
        ("ls x", "ls: cannot access 'x': No such file or directory\n", 2, "no_such_file", None),
    ],
)  # fmt: skip
def test_a_failure_is_one_error_with_its_kind_and_place(command, output, code, kind, file) -> None:
    (error,) = capture_tool_use(bash(command, output, code))["errors"]
    assert (error["type"], error.get("file")) == (kind, file)
    assert error["command"] == command
    assert error["message"]


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("grep x a.py", "", 1),
        ("cd sub && grep -rn x . | head", "", 1),
        ("diff a b", "1c1\n", 1),
        ("git diff --exit-code", "+x\n", 1),
        ("which foo", "", 1),
        ("cat log.txt", TRACE, 0),
        ("grep -A5 Traceback log.txt | head", TRACE, 0),
        ("python a.py", TRACE, 0),
        ("cat > a.py <<'E'\nx\nE\npython a.py", TRACE, 0),
        ("sed -n 1,9p a.py; cat log.txt", "ModuleNotFoundError: No module named 'x'\n", 0),
        ("pip install x | tail -1", "Successfully installed x\n", 0),
    ],
)
def test_an_answer_and_what_a_file_says_are_no_errors(command, output, code) -> None:
    assert "errors" not in capture_tool_use(bash(command, output, code))


def test_an_agent_s_own_word_for_failure_counts() -> None:
    use = ToolUse(
        "Edit", {"file_path": "a.py"}, "String to replace not found", None, ROOT, failed=True
    )
    (error,) = capture_tool_use(use)["errors"]
    wanted = {"type": "edit_failed", "message": "String to replace not found", "file": "a.py"}
    assert error == wanted
    (error,) = capture_tool_use(bash("./x", "boom", None, failed=True))["errors"]
    assert error["message"] == "exit code 1: boom"


ARGUMENTS = st.dictionaries(
    st.sampled_from(["command", "file_path", "path", "input", "argv", "cmd", "workdir"]),
    st.one_of(
        st.text(max_size=40), st.lists(st.text(max_size=9), max_size=3), st.none(), st.integers()
    ),
)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(
    st.sampled_from(["Bash", "Edit", "apply_patch", "shell", "git_commit", "run"]),
    ARGUMENTS,
    st.text(max_size=200),
    st.one_of(st.none(), st.integers(-3, 300)),
)
def test_whatever_an_agent_sends_there_is_a_patch_that_the_store_takes(
    tool, arguments, output, code
):
    patch = capture_tool_use(ToolUse(tool, arguments, output, code, ROOT))
    assert validate(patch) == validate(validate(patch))
    assert set(patch) <= set(KEYS)


BROKEN = "  2 passing (5ms)\n  1 failing\n\n  1) adds:\n"
ERRORS = (
    ToolUse("run", {"argv": ["pytest", "tests/test_a.py"]},
            "FAILED tests/test_a.py::test_x\n1 failed in 0.1s", 1),
    ToolUse("Bash", {"command": "npx mocha | tail -5"}, BROKEN, 0),
    ToolUse("Bash", {"command": "python app.py"}, "ModuleNotFoundError: No module named 'x'", 1),
    ToolUse("edit_file", {"path": "a.py"}, "not found", None, failed=True),
    ToolUse("git_commit", {"message": "m"}, "nothing to commit", 1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("later", "solved"),
    [
        (ToolUse("Bash", {"command": "python  app.py"}, "fine", 0), 2),
        (ToolUse("Bash", {"command": "python app.py | tail"}, "fine", 0), None),
        (ToolUse("Bash", {"command": "python other.py"}, "fine", 0), None),
        (ToolUse("run", {"argv": ["pytest", "tests/"]}, "9 passed in 1s", 0), 0),
        (ToolUse("run", {"argv": ["pytest", "tests/test_b.py"]}, "9 passed in 1s", 0), None),
        (ToolUse("Bash", {"command": "npx mocha"}, "  3 passing (5ms)\n", 0), 1),
        (ToolUse("edit_file", {"path": "a.py", "old": "x", "new": "y"}, "written", None), 3),
        (ToolUse("git_commit", {"message": "m"}, "[main 1234567] m", 0), 4),
    ],
)
def test_what_succeeds_now_is_no_error_any_more(later: ToolUse, solved: int | None) -> None:
    before: dict[str, Any] = {}
    for use in ERRORS:
        before = merge(before, validate(capture_tool_use(use)))
    assert len(before["errors"]) == len(ERRORS)
    patch = validate({**capture_tool_use(later), SOLVED: list_solved(later)})
    left = [error for place, error in enumerate(before["errors"]) if place != solved]
    assert merge(before, patch).get("errors") == left
