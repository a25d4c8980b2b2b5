"""Programs: bounded, ended whole, and their output kept apart from the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from cockpit.access.run_program import ProgramMissing, run_gh, run_program
from cockpit.core.errors import CockpitError
from cockpit.core.project.own_programs import find_program
from cockpit.core.project.safe_git import git_argv, git_environment, reads_tree


def alive(pid: int) -> bool:
    """Whether a process runs (one that has ended and waits to be reaped does not)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def having(mark: str) -> list[int]:
    """The processes with ``mark`` in their arguments."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
        except OSError:
            continue  # ended while we looked
        if mark.encode() in words:
            found.append(int(place.name))
    return found


async def dead(*pids: int) -> None:
    async with asyncio.timeout(20):
        while any(alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


async def test_output_and_status_come_back(tmp_path: Path) -> None:
    done = await run_program(
        ["sh", "-c", "cat; echo oops >&2; exit 3"], cwd=tmp_path, timeout_s=30, stdin=b"in"
    )
    assert (done.code, done.stdout, done.stderr) == (3, b"in", b"oops\n")
    assert not done.ok and not done.timed_out and not done.truncated
    assert done.text == "in" and done.error_text == "oops"


async def test_a_program_may_leave_its_input_unread(tmp_path: Path) -> None:
    done = await run_program(["true"], cwd=tmp_path, timeout_s=30, stdin=b"x" * 3_000_000)
    assert done.ok


async def test_time_over_ends_the_whole_group(tmp_path: Path) -> None:
    script = "sleep 600 & echo $!; trap '' TERM; sleep 600 & echo $!; wait"
    done = await run_program(["sh", "-c", script], cwd=tmp_path, timeout_s=0.5)
    assert done.timed_out and done.code < 0
    await dead(*map(int, done.stdout.split()))  # as many as it had the time to start


async def test_cancelling_leaves_no_orphan(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > child; echo $$ > self; wait"
    running = asyncio.create_task(run_program(["sh", "-c", script], cwd=tmp_path, timeout_s=600))
    async with asyncio.timeout(20):
        while not (tmp_path / "self").exists() or not (tmp_path / "self").read_text().strip():
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await dead(int((tmp_path / "child").read_text()), int((tmp_path / "self").read_text()))


@pytest.mark.parametrize("turns", range(0, 12, 4))
async def test_cancelling_while_it_starts_leaves_no_orphan(tmp_path: Path, turns: int) -> None:
    mark = f"{tmp_path}/mark"
    argv = ["sh", "-c", "sleep 600 & wait", mark]
    running = asyncio.create_task(run_program(argv, cwd=tmp_path, timeout_s=600))
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await dead(*having(mark))


async def test_a_child_left_behind_goes_with_the_program_or_keeps_its_output_briefly(tmp_path):
    """One that left the group cannot be ended; it does not hold the output back."""
    script = "echo whole; sleep 600 & echo $!; setsid sleep 600 & echo $!"
    done = await run_program(["sh", "-c", script], cwd=tmp_path, timeout_s=60)
    text, child, other = done.text.split()
    os.kill(int(other), signal.SIGKILL)
    assert done.ok and text == "whole"
    await dead(int(child))


async def test_a_status_that_cannot_be_known_is_no_success(tmp_path: Path) -> None:
    """A parent can start this process so that the kernel keeps no status of its children."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        done = await run_program(["true"], cwd=tmp_path, timeout_s=60)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert done.code > 0 and not done.ok


async def test_an_error_of_the_one_who_hears_the_output_ends_the_program(tmp_path: Path) -> None:
    mark = f"{tmp_path}/mark"

    def refuse(_: bytes) -> None:
        raise ValueError("not this")

    with pytest.raises(ValueError, match="not this"):
        await run_program(
            ["sh", "-c", "echo x; sleep 600", mark], cwd=tmp_path, timeout_s=600, on_output=refuse
        )
    await dead(*having(mark))


async def test_too_much_output_ends_the_program_and_keeps_what_came(tmp_path: Path) -> None:
    done = await run_program(["yes"], cwd=tmp_path, timeout_s=60, max_bytes=10_000)
    assert done.truncated and not done.ok and not done.timed_out
    assert len(done.stdout) == 10_000


async def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="no-such-program"):
        await run_program(["no-such-program"], cwd=tmp_path, timeout_s=5)
    (tmp_path / "plain").write_text("text")
    with pytest.raises(ProgramMissing):
        await run_program([str(tmp_path / "plain")], cwd=tmp_path, timeout_s=5)
    with pytest.raises(CockpitError, match="NUL"):
        await run_program(["echo", "a\0b"], cwd=tmp_path, timeout_s=5)
    with pytest.raises(CockpitError, match="no such directory"):
        await run_program(["echo"], cwd=tmp_path / "gone", timeout_s=5)


async def test_arguments_are_never_a_shell_line(tmp_path: Path) -> None:
    words = ["$(touch pwned)", "; touch pwned", "`touch pwned`", "a b", "*"]
    program = "import sys; print(sys.argv[1:])"
    done = await run_program([sys.executable, "-c", program, *words], cwd=tmp_path, timeout_s=60)
    assert done.text.strip() == repr(words)
    assert not (tmp_path / "pwned").exists()


def test_git_forgets_what_a_hook_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere/.git")
    monkeypatch.setenv("GIT_INDEX_FILE", "/elsewhere/index")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/elsewhere/evil")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    env = git_environment({"GIT_INDEX_FILE": "mine"})
    assert "GIT_DIR" not in env and "GIT_EXTERNAL_DIFF" not in env
    assert env["GIT_INDEX_FILE"] == "mine" and env["GIT_AUTHOR_NAME"] == "Ada"
    assert env["GIT_TERMINAL_PROMPT"] == "0" and env["LC_ALL"] == "C.UTF-8"
    argv = git_argv("diff", "a..b")
    assert argv[0] == find_program("git") and argv[-1] == "a..b"
    assert "diff.noprefix=false" in argv and "core.quotePath=false" in argv


@pytest.mark.parametrize(
    ("words", "reads"),
    [
        ("status --porcelain", True), ("diff HEAD --", True), ("diff --cached", False),
        (f"diff {'a' * 40} {'b' * 40} --", False),
        (f"diff {'a' * 40}", True), ("ls-files -z -c -o", True), ("ls-files -v", False),
        ("grep -e x", True), ("log -p", False), ("-C x blame a", True),
    ],
)  # fmt: skip
def test_what_reads_the_files_of_a_checkout(words: str, reads: bool) -> None:
    assert reads_tree(words.split()) is reads
    ignored = [word for word in git_argv(*words.split()) if "--ignore-sub" in word]
    compares = {"status", "diff", "log"} & set(words.split())
    assert ignored == ([f"--ignore-submodules={'all' if reads else 'dirty'}"] if compares else [])


async def test_gh_never_prompts_and_has_no_other_repository(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"; env | grep -E "^(GH_|NO_COLOR)" | sort\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GH_REPO", "someone/else")
    done = await run_gh(["gh", "pr", "view", "24"], cwd=tmp_path)
    assert done.text.splitlines()[0] == "pr view 24"
    assert "GH_PROMPT_DISABLED=1" in done.text and "NO_COLOR=1" in done.text
    assert "GH_REPO" not in done.text
    bare = await run_gh(["pr", "view", "24"], cwd=tmp_path)
    assert bare.stdout == done.stdout
