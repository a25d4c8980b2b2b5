"""Secrets in files, messages, names and changes: nowhere in the store, the reviews or the output."""

from __future__ import annotations

import pytest
from commands.cli_world import Project
from state_for_tests import state_of

pytestmark = pytest.mark.slow

AWS = "AKIA" + "ABCD1234EFGH5678"
GITHUB = "ghp_" + "a1B2" * 9
ANTHROPIC = "sk-ant-" + "api03-" + "a1B2c3D4e5F6g7H8" * 4
PASSWORD = "Hunter2" + "q9Wx7Zk2Lm"
KEY_LINES = [f"MIIE{number:02}" + "a1B2c3D4e5F6g7H8" * 3 + "Abcd+/1234" for number in range(8)]
CANARIES = (AWS, GITHUB, ANTHROPIC, PASSWORD, *KEY_LINES)


def held(lead: str = "") -> str:
    """All canaries as a file holds them; ``lead`` stands before each line."""
    begin, end = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"
    lines = [f"id = {AWS}", f"token = '{GITHUB}'", f"key: {ANTHROPIC}", f"password={PASSWORD}"]
    return "".join(f"{lead}{line}\n" for line in [*lines, begin, *KEY_LINES, end])


def test_no_canary_is_anywhere(project: Project) -> None:
    said = []
    (project.root / "keys.py").write_text(held("# "), "utf-8")
    (project.root / f"tok_{GITHUB}.py").write_text(held() + "x = 1\n", "utf-8")
    project.git("add", ".")
    project.git("commit", "--quiet", "-m", f"Keys\n\n{held()}")
    # A change below a key: git shows the end of the block as context and a line as its heading.
    for path in ("keys.py", f"tok_{GITHUB}.py"):
        (project.root / path).write_text((project.root / path).read_text("utf-8") + "y = 2\n")
    project.git("commit", "--quiet", "--all", "-m", "Below the keys")
    options = ("--model", "offline", "--approve", "all")
    for target in ("HEAD~2..HEAD~1", "HEAD~1..HEAD"):
        done = project.run("review", target, *options)
        said += [done.stdout, done.stderr]
    done = project.run("run", f"what is this?\n{held()}", *options, expect=1)
    said += [done.stdout, done.stderr, project.run("journal", "--all", "--json").stdout]
    written = ((project.root / ".cockpit"), state_of(project.root))
    kept = [path for top in written for path in top.rglob("*") if path.is_file()]
    assert any(path.suffix == ".md" for path in kept)
    for canary in CANARIES:
        assert not any(canary in text for text in said), canary
        for path in kept:
            assert canary.encode() not in path.read_bytes(), (canary, path)
            assert canary not in path.name
