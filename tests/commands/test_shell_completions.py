"""Completions in real bash, zsh and fish; where a shell is missing, what its script asks for is asked."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import run_cockpit
from cli_world import PATIENCE_S, Project

pytestmark = pytest.mark.slow

TYPED = {
    "cockpit wor": {"work", "worker", "worktrees"},
    "cockpit tasks list --st": {"--status", "--story"},
    "cockpit run --output-format st": {"stream-json"},
}
"""What is typed, and what completes its last word."""


@pytest.fixture
def world(project: Project, tmp_path: Path) -> Project:
    """A project with ``cockpit`` on the PATH, and the script of each shell in a file."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "cockpit"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.join(run_cockpit.PROGRAM)} "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    project.extra["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    for shell in ("bash", "zsh", "fish"):
        script = project.run("completions", shell).stdout
        (programs / f"completions.{shell}").write_text(script, encoding="utf-8")
    return project


def scripts(world: Project) -> Path:
    return Path(world.extra["PATH"].partition(os.pathsep)[0])


def run_shell(world: Project, *argv: str) -> str:
    ended = subprocess.run(
        argv, cwd=world.root, env=world.env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.stderr == "", ended.stderr
    return ended.stdout


def ask_as_the_script(world: Project, shell: str, line: str) -> set[str]:
    """Run ``cockpit`` with the variables that the shell's script sets; read the answer as it does."""
    script = (scripts(world) / f"completions.{shell}").read_text(encoding="utf-8")
    assert f"_COCKPIT_COMPLETE={shell}_complete" in script
    assert script.count("{") == script.count("}")
    words = line.split()
    position = words[-1] if shell == "fish" else str(len(words) - 1)
    asked = {
        "_COCKPIT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": position,
    }
    program = str(scripts(world) / "cockpit")
    ended = subprocess.run(
        [program],
        cwd=world.root,
        env={**world.env, **asked},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.stderr == ""
    rows = ended.stdout.splitlines()
    if shell == "zsh":  # three lines each: type, word, description
        assert set(rows[::3]) == {"plain"}
        return set(rows[1::3])
    assert all(row.startswith("plain,") for row in rows), rows
    return {re.split(r"[,\t]", row)[1] for row in rows}


def test_bash_completes_commands_options_and_values(world: Project) -> None:
    for line, expected in TYPED.items():
        if shutil.which("bash") is None:
            assert ask_as_the_script(world, "bash", line) == expected
            continue
        words = line.split()
        listed = " ".join(map(shlex.quote, words))
        code = (
            f"source {scripts(world)}/completions.bash; complete -p cockpit >/dev/null || exit 1;"
            f" COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1};"
            " _cockpit_completion cockpit; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        assert set(run_shell(world, "bash", "--norc", "-c", code).split()) == expected


def test_fish_completes_commands_options_and_values(world: Project) -> None:
    for line, expected in TYPED.items():
        if shutil.which("fish") is None:
            assert ask_as_the_script(world, "fish", line) == expected
            continue
        code = f"source {scripts(world)}/completions.fish; complete -C {shlex.quote(line)}"
        rows = run_shell(world, "fish", "--no-config", "-c", code).splitlines()
        assert {row.split("\t")[0] for row in rows} == expected


def test_fish_shows_a_description_with_commas_whole(world: Project) -> None:
    script = (scripts(world) / "completions.fish").read_text(encoding="utf-8")
    assert 'string split --max 1 "," $completion' in script
    if shutil.which("fish") is not None:
        code = f"source {scripts(world)}/completions.fish; complete -C 'cockpit prop'"
        row = run_shell(world, "fish", "--no-config", "-c", code)
        assert row == "proposals\tList, show and decide proposals.\n"


def test_zsh_completes_what_is_typed_on_a_terminal(world: Project) -> None:
    if shutil.which("zsh") is None:
        for line, expected in TYPED.items():
            assert ask_as_the_script(world, "zsh", line) == expected
        return
    with zsh(world) as terminal:
        terminal.send(f"autoload -U compinit; compinit -u -d {scripts(world)}/dump")
        terminal.send(f". {scripts(world)}/completions.zsh; print -r -- 'rea''dy'")
        terminal.until("ready")
        for count, (line, expected) in enumerate(TYPED.items()):
            # The first Tab inserts what all have in common, the second lists them.
            terminal.type(f"{line}\t" if len(expected) == 1 else f"{line}\t\t")
            terminal.until(*expected)
            terminal.send(f"\x15print -r -- 'ste''p {count}'")
            terminal.until(f"step {count}")


class Typed:
    """A terminal at which a test types; each wait reads on from the last."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.new = ""

    def send(self, line: str) -> None:
        self.type(f"{line}\n")

    def type(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def until(self, *texts: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(text in self.new for text in texts):
            left = deadline - time.monotonic()
            assert left > 0, f"{texts} never came: {self.new!r}"
            if select.select([self.end], [], [], left)[0]:
                self.new += os.read(self.end, 65_536).decode(errors="replace")
        self.new = ""


@contextmanager
def zsh(world: Project) -> Iterator[Typed]:
    main, end = pty.openpty()
    env = {**world.env, "TERM": "xterm", "PS1": "> ", "ZDOTDIR": str(scripts(world))}
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        cwd=world.root,
        env=env,
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    try:
        terminal = Typed(main)
        terminal.until("> ")
        yield terminal
    finally:
        shell.kill()
        shell.wait()
        os.close(main)
