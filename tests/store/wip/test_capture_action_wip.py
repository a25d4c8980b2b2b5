"""What a tool call tells of the work: files, tests, commits and errors, of every agent's tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.learn.capture_wip import ToolUse, capture_tool_use, list_solved
from cockpit.store.backlog.wip import SOLVED, merge, validate

ROOT = "/home/dev/project"


def bash(command: Any, output: str = "", code: int | None = 0, **more: Any) -> ToolUse:
    return ToolUse("Bash", {"command": command}, output, code, cwd=ROOT, **more)


def changed(command: Any, **more: Any) -> list[str]:
    return capture_tool_use(bash(command, **more)).get("files_modified", [])


@pytest.mark.parametrize(
    "use",
    [
        ToolUse("Edit", {"file_path": f"{ROOT}/src/a.py", "old_string": "x"}, "", None, ROOT),
        ToolUse("Write", {"file_path": f"{ROOT}/src/a.py", "content": "x"}, "", None, ROOT),
        ToolUse("MultiEdit", {"file_path": "src/a.py", "edits": []}, "", None, ROOT),
        ToolUse("NotebookEdit", {"notebook_path": f"{ROOT}/src/a.py"}, "", None, ROOT),
        ToolUse("write_file", {"path": "src/a.py"}, "", None, ROOT),
        ToolUse("edit_file", {"path": "./src/a.py"}, "", None, ROOT),
        ToolUse(
            "str_replace_editor", {"command": "create", "path": f"{ROOT}/src/a.py"}, "", 0, ROOT
        ),
        ToolUse(
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** End Patch"},
            "Done",
            None,
            ROOT,
        ),
        ToolUse(
            "shell",
            {"command": ["apply_patch", "*** Begin Patch\n*** Add File: src/a.py\n*** End Patch"]},
            "",
            0,
            ROOT,
        ),
        ToolUse("shell", {"command": ["bash", "-lc", "echo x > src/a.py"]}, "", 0, ROOT),
        ToolUse("run", {"argv": ["sed", "-i", "s/a/b/", "src/a.py"]}, "", 0, ROOT),
        ToolUse("exec_command", {"cmd": "echo x > a.py", "workdir": f"{ROOT}/src"}, "", 0, ROOT),
        ToolUse("Edit", {"file_path": "a.py"}, "", None, f"{ROOT}/src", root=ROOT),
    ],
    ids=lambda use: use.tool,
)
def test_every_agent_s_editing_is_a_changed_file(use: ToolUse) -> None:
    assert capture_tool_use(use) == {"files_modified": ["src/a.py"], "uncommitted_changes": True}


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat > a.py <<'EOF'\nopen('b', 'w')\nEOF", ["a.py"]),
        ("echo x >> sub/a.py", ["sub/a.py"]),
        ("cd sub && echo x | tee -a a.py | cat", ["sub/a.py"]),
        ("sed -i.bak -e s/a/b/ -e s/c/d/ a.py b.py", ["a.py", "b.py"]),
        ("sed -Ei 's/a/b/' a.py", ["a.py"]),
        ("sed --in-place=.o 's/a/b/' a.py", ["a.py"]),
        ("perl -pi -e 's/a/b/' a.pl", ["a.pl"]),
        ("cp a.py b.py", ["b.py"]),
        ("cp a.py b.py sub/", ["sub/a.py", "sub/b.py"]),
        ("mv a.py b.py", ["a.py", "b.py"]),
        ("rm -f a.py", ["a.py"]),
        ("touch a.py && git mv a.py b.py", ["a.py", "b.py"]),
        ("git checkout HEAD -- a.py", ["a.py"]),
        ("git restore a.py", ["a.py"]),
        ("git apply <<'E'\n--- a/a.py\n+++ b/b.py\nE", ["a.py", "b.py"]),
        ("patch -p1 <<'E'\n--- a/a.py\t2026\n+++ b/a.py\t2026\nE", ["a.py"]),
        ("black a.py && prettier --write b.ts && gofmt -w c.go", ["a.py", "b.ts", "c.go"]),
        ("ruff check --fix a.py", ["a.py"]),
        ("npx prettier --write b.ts", ["b.ts"]),
        ("dd if=/dev/zero of=a.bin count=1", ["a.bin"]),
        ("git diff > patch.txt", ["patch.txt"]),
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
        ("echo x > /tmp/a", []),
        ("cd /tmp && touch a", []),
        ("echo x > ../a", []),
        ("echo x > .git/config", []),
        ("ls > /dev/null 2>&1", []),
        ("cat a.py 2>/dev/null | head", []),
        ("sed -n 's/a/b/p' a.py", []),
        ("sed -ne '1,5p' in.py", []),
        ("black --check a.py", []),
        ("prettier b.ts", []),
        ("git checkout topic", []),
        ("git restore --staged a.py", []),
        ("git apply --check x.patch", []),
        ("python -c \"open('a.py').read()\"", []),
        ("python -c \"print('open(a, w)')\"", []),
        ("grep -r 'x > y' .", []),
        ("rm -rf build/*", []),
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
        "runner": "pytest",
        "ran": True,
        "outcome": "fail",
        "counted": "tests",
        "passed": 1,
        "failed": 1,
        "skipped": 0,
        "failing_test": "tests/test_a.py::test_b",
    }
    (error,) = patch["errors"]
    assert (error["type"], error["message"]) == ("test_failure", "tests/test_a.py::test_b")
    after = capture_tool_use(bash("pytest -q", "=== 2 passed in 0.03s ===\n", 0))
    merged = merge(merge({}, patch), after)
    assert merged["test_results"]["failing_test"] == ""
    assert (merged["test_results"]["failed"], merged["test_results"]["passed"]) == (0, 2)


@pytest.mark.parametrize(
    ("use", "commit"),
    [
        (bash("git add . && git commit -m x", "[main 1a2b3c4] x\n 1 file changed\n"), "1a2b3c4"),
        (bash("git commit -qm x", ""), None),
        (bash("git commit -m x", "[main (root-commit) 1a2b3c4] x\n"), "1a2b3c4"),
        (bash("git -C . commit -m x 2>&1 | tail -3", "[topic/a 1a2b3c4] x\n"), "1a2b3c4"),
        (ToolUse("git_commit", {"message": "x", "commit": "f" * 40}, "", None, ROOT), "f" * 40),
    ],
)
def test_a_commit_leaves_nothing_uncommitted(use: ToolUse, commit: str | None) -> None:
    patch = capture_tool_use(use)
    assert set(patch) <= {"uncommitted_changes", "last_commit"}
    assert patch["uncommitted_changes"] is False
    assert patch.get("last_commit") == commit
    assert "errors" not in patch


@pytest.mark.parametrize(
    "use",
    [
        bash("git commit -m x", "nothing to commit, working tree clean\n", 1),
        bash("git commit --dry-run", "", 0),
        bash("git log --grep commit", "", 0),
        bash("git commit -m x | tail -1", "fatal: not a git repository\n", 0),
        ToolUse("git_commit", {"message": "x"}, "The branch is b, not a.", None, ROOT, failed=True),
    ],
)
def test_a_commit_that_was_none_leaves_things_as_they_are(use: ToolUse) -> None:
    patch = capture_tool_use(use)
    assert "uncommitted_changes" not in patch
    assert "last_commit" not in patch


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
    assert capture_tool_use(use) == {
        "errors": [
            {"type": "edit_failed", "message": "String to replace not found", "file": "a.py"}
        ]
    }
    assert (
        capture_tool_use(bash("./x", "boom", None, failed=True))["errors"][0]["message"]
        == "exit code 1: boom"
    )


@pytest.mark.parametrize("tool", ["Read", "Grep", "WebFetch", "Task", "", "github"])
def test_other_tools_tell_nothing(tool: str) -> None:
    assert (
        capture_tool_use(ToolUse(tool, {"file_path": "a.py", "command": "rm a.py"}, "x", 1, ROOT))
        == {}
    )


ARGUMENTS = st.dictionaries(
    st.sampled_from(["command", "file_path", "path", "input", "argv", "cmd", "workdir"]),
    st.one_of(
        st.text(max_size=40), st.lists(st.text(max_size=9), max_size=3), st.none(), st.integers()
    ),
)


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
    assert set(patch) <= {
        "files_modified",
        "uncommitted_changes",
        "test_results",
        "errors",
        "last_commit",
    }


ERRORS = (
    ToolUse(
        "run",
        {"argv": ["pytest", "tests/test_a.py"]},
        "FAILED tests/test_a.py::test_x\n1 failed in 0.1s",
        1,
    ),
    ToolUse(
        "Bash",
        {"command": "npx mocha | tail -5"},
        "  2 passing (5ms)\n  1 failing\n\n  1) adds:\n",
        0,
    ),
    ToolUse("Bash", {"command": "python app.py"}, "ModuleNotFoundError: No module named 'x'", 1),
    ToolUse("edit_file", {"path": "a.py"}, "not found", None, failed=True),
    ToolUse("git_commit", {"message": "m"}, "nothing to commit", 1),
)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (ToolUse("Bash", {"command": "python  app.py"}, "fine", 0), [0, 1, 3, 4]),
        (ToolUse("Bash", {"command": "python app.py | tail"}, "fine", 0), [0, 1, 2, 3, 4]),
        (ToolUse("Bash", {"command": "python other.py"}, "fine", 0), [0, 1, 2, 3, 4]),
        (ToolUse("run", {"argv": ["pytest", "-q"]}, "9 passed in 1s", 0), [1, 2, 3, 4]),
        (ToolUse("run", {"argv": ["pytest", "tests/"]}, "9 passed in 1s", 0), [1, 2, 3, 4]),
        (
            ToolUse("run", {"argv": ["pytest", "tests/test_a.py::test_x"]}, "1 passed in 1s", 0),
            [1, 2, 3, 4],
        ),
        (
            ToolUse("run", {"argv": ["pytest", "tests/test_b.py"]}, "9 passed in 1s", 0),
            [0, 1, 2, 3, 4],
        ),
        (ToolUse("Bash", {"command": "npx mocha"}, "  3 passing (5ms)\n", 0), [0, 2, 3, 4]),
        (
            ToolUse("edit_file", {"path": "a.py", "old": "x", "new": "y"}, "written", None),
            [0, 1, 2, 4],
        ),
        (ToolUse("git_commit", {"message": "m"}, "[main 1234567] m", 0), [0, 1, 2, 3]),
    ],
)
def test_what_succeeds_now_is_no_error_any_more(later: ToolUse, left: list[int]) -> None:
    before: dict[str, Any] = {}
    for use in ERRORS:
        before = merge(before, validate(capture_tool_use(use)))
    assert len(before["errors"]) == len(ERRORS)
    patch = validate({**capture_tool_use(later), SOLVED: list_solved(later)})
    assert merge(before, patch).get("errors") == [before["errors"][place] for place in left]
