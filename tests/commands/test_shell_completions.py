"""Completions in real bash, zsh and fish; where a shell is missing, the request of its script is made."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import run_cockpit
from cli_world import PATIENCE_S, Project

pytestmark = pytest.mark.slow

TYPED = {
    "cockpit wor": {"work", "worker"},
    "cockpit tasks --st": {"--status", "--story"},
    "cockpit run --output-format st": {"stream-json"},
}
"""What is typed, and what completes its last word."""
CODE = {
    "bash": "source {0}/completions.bash; complete -p cockpit >/dev/null || exit 1;"
    " COMP_WORDS=({1}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
    " _cockpit_completion cockpit; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "fish": "source {0}/completions.fish; complete -C '{1}'",
}


@pytest.fixture
def world(project: Project, tmp_path: Path) -> Project:
    """A project with ``cockpit`` on the PATH."""
    program = tmp_path / "cockpit"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(run_cockpit.PROGRAM)} "$@"\n')
    program.chmod(0o755)
    project.extra["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return project


def run(world: Project, *argv: str, **env: str) -> str:
    ended = subprocess.run(
        argv,
        cwd=world.root,
        env={**world.env, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.stderr == "", ended.stderr
    return ended.stdout


def ask_as_the_script(world: Project, shell: str, line: str) -> set[str]:
    """Run ``cockpit`` with the variables that the shell's script sets; read the answer as it does."""
    words = line.split()
    position = words[-1] if shell == "fish" else str(len(words) - 1)
    asked = {"_COCKPIT_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": position}
    world.extra |= asked
    rows = world.run().stdout.splitlines()
    if shell == "zsh":  # three lines each: type, word, description
        assert set(rows[::3]) == {"plain"}
        return set(rows[1::3])
    assert all(row.startswith("plain,") for row in rows), rows
    return {re.split(r"[,\t]", row)[1] for row in rows}


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_commands_options_and_values_are_completed(
    world: Project, shell: str, tmp_path: Path
) -> None:
    script = tmp_path / f"completions.{shell}"
    script.write_text(world.run("completions", shell).stdout, encoding="utf-8")
    text = script.read_text(encoding="utf-8")
    assert f"_COCKPIT_COMPLETE={shell}_complete" in text
    assert text.count("{") == text.count("}")
    assert shell != "fish" or 'string split --max 1 "," $completion' in text
    has_shell = shutil.which(shell) is not None
    for line, expected in TYPED.items():
        if shell in CODE and has_shell:
            bare = ("--norc",) if shell == "bash" else ("--no-config",)
            rows = run(world, shell, *bare, "-c", CODE[shell].format(tmp_path, line))
            assert {row.split("\t")[0] for row in rows.splitlines()} == expected
        else:
            assert ask_as_the_script(world, shell, line) == expected
    if shell == "zsh" and has_shell:
        run(world, "zsh", "-n", str(script))
