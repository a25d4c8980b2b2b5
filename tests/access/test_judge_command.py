"""The risk of a command: what a person should see, what is never run, and what cannot be judged."""

from __future__ import annotations

import pytest

from cockpit.access.commands.command_table import INSTALLS, NETWORK, PUBLISHES, REMOVES, REWRITES
from cockpit.access.commands.judge_command import OUTSIDE, judge, judge_line

SEEN = {
    "rm -rf build": REMOVES,
    "find . -name '*.o' -delete": REMOVES,
    "find . -exec rm {} +": REMOVES, "ls | xargs rm": REMOVES, "timeout 5 nice rm x": REMOVES,
    "sh -c 'ls; rm x'": REMOVES, "echo $(rm x)": REMOVES,
    "curl https://example.org": NETWORK,
    "git fetch": NETWORK, "npm install": INSTALLS,
    "python -m pip install x": INSTALLS,
    "uv run pip install x": INSTALLS, "git push --force": PUBLISHES, "npm publish": PUBLISHES,
    "git reset --hard": REWRITES, "git branch -D x": REWRITES, "git -c alias.x='!id' x": REWRITES,
    "PATH=. make": "PATH changes what is run",
    "touch .git/hooks/pre-commit": "it names git's or cockpit's own files",
}  # fmt: skip
MEDIUM = [
    "pytest -q", "make test", "npm test", "mkdir build", "git add a.py", "python tool.py", "sh build.sh",
    "echo 'rm -rf /'", "cat <<EOF\nrm -rf /\ncurl x\nEOF", "git log --grep 'rm -rf'",
]  # fmt: skip
UNKNOWN = ["$X y", "sh <<EOF\nrm x\nEOF", "echo 'x", "x" * 30_000]
DENIED = ["mkfs.ext4 x", "dd if=a of=/dev/sda", "shutdown now", "gh pr merge 3", "git commit -m x"]


@pytest.mark.parametrize(("line", "reason"), SEEN.items())
def test_what_a_person_should_see_is_high_and_said(line: str, reason: str) -> None:
    verdict = judge_line(line)
    assert (verdict.risk, reason in verdict.reasons) == ("high", True)


@pytest.mark.parametrize("line", MEDIUM, ids=lambda line: line[:20])
def test_everything_else_is_medium_and_text_is_data(line: str) -> None:
    verdict = judge_line(line)
    assert (verdict.risk, verdict.unknown, verdict.denied) == ("medium", False, None)


def test_what_cannot_be_judged_and_what_is_never_run_says_so() -> None:
    """In all their spellings: ``adversarial/test_unjudged_commands.py``."""
    for line in UNKNOWN:
        assert judge_line(line).unknown, line[:20]
    for line in DENIED:
        assert judge_line(line).denied, line


def test_an_argument_is_no_shell() -> None:
    assert judge(("echo", "; rm -rf /")).risk == "medium"
    assert judge(("cp", "a", "/etc/a")).reasons == (OUTSIDE,)
    assert judge(("npm", "install")).network
