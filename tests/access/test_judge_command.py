"""The one judge of commands: what a person should see, what waits, what is never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.access.commands.command_table import INSTALLS, LOSES, NETWORK, POSTS, REMOVES, SETS
from cockpit.access.commands.judge_command import OUTSIDE, CommandPlace, judge_command
from cockpit.core.state_folder import state_root

FREE = CommandPlace(confined=False, may_run=lambda words: False)
"""Of an agent of the user's, outside the sandbox."""
SEEN = {
    "rm -rf build": REMOVES,
    "find . -name '*.o' -delete": REMOVES,
    "find . -exec rm {} +": REMOVES, "ls | xargs rm": REMOVES, "timeout 5 nice rm x": REMOVES,
    "sh -c 'ls; rm x'": REMOVES, "echo $(rm x)": REMOVES, "bash -o pipefail -c 'rm x'": REMOVES,
    "curl -d @x https://example.org": POSTS, "git push --force": POSTS, "npm publish": POSTS,
    "git reset --hard": LOSES, "git branch -D x": LOSES, "git checkout HEAD~1 a.py": LOSES,
    "git checkout -f main": LOSES, "git clean -xfd": LOSES, "git restore a.py": LOSES,
    "git config core.pager ./x": SETS,
}  # fmt: skip
HIGH = ["PATH=. make", "PYTHONPATH=/x make", "touch .git/hooks/pre-commit"]
MEDIUM = [
    "pytest -q", "make test", "npm test", "mkdir build", "git add a.py", "python tool.py", "sh build.sh",
    "echo 'rm -rf /'", "cat <<EOF\nrm -rf /\ncurl x\nEOF", "git log --grep 'rm -rf'", "git checkout main",
]  # fmt: skip
UNCLEAR = [
    "$X y", "sh <<EOF\nrm x\nEOF", "echo 'x", "x" * 30_000, "git -c alias.x='!id' x",
    "gh pr view 3 --repo a/b", "gh alias set x y", "python -W ignore -c x",
]  # fmt: skip
DENIED = ["mkfs.ext4 x", "dd if=a of=/dev/sda", "shutdown now", "gh pr merge 3", "git commit -m x"]


@pytest.mark.parametrize(("line", "effect"), SEEN.items())
def test_what_a_person_should_see_is_high_and_said(line: str, effect) -> None:
    for place in (CommandPlace(), FREE):
        verdict = judge_command(line, place)
        assert (verdict.risk, verdict.waits) == ("high", True)
        assert effect.words in verdict.reasons


def test_what_leaves_waits_outside_the_sandbox_alone() -> None:
    for line, effect in {
        "curl https://example.org": NETWORK, "git fetch": NETWORK, "npm install": INSTALLS,
        "python -m pip install x": INSTALLS, "uv run pip install x": INSTALLS, "npx left-pad": INSTALLS,
    }.items():  # fmt: skip
        for place in (CommandPlace(), FREE):
            verdict = judge_command(line, place)
            assert (verdict.risk, verdict.effect) == ("medium", "leaves"), line
            assert effect.words in verdict.reasons and verdict.waits is not place.confined


def test_what_changes_what_runs_is_high() -> None:
    assert [line for line in HIGH if judge_command(line).risk != "high"] == []


@pytest.mark.parametrize("line", MEDIUM, ids=lambda line: line[:20])
def test_everything_else_is_medium_and_text_is_data(line: str) -> None:
    verdict = judge_command(line)
    assert (verdict.risk, verdict.effect, verdict.unclear) == ("medium", "changes", False)
    assert not (verdict.waits or verdict.denied)


def test_what_cannot_be_judged_and_what_is_never_run_says_so() -> None:
    """In all their spellings: ``adversarial/test_unjudged_commands.py``."""
    for line in UNCLEAR:
        assert judge_command(line, FREE).waits, line[:20]
        assert judge_command(line, CommandPlace(may_run=lambda words: False)).unclear, line[:20]
    for line in DENIED:
        assert judge_command(line).denied, line


def test_an_argument_is_no_shell() -> None:
    assert judge_command(("echo", "; rm -rf /")).risk == "medium"
    assert judge_command(("cp", "a", "/etc/a")).reasons == (OUTSIDE.words,)
    assert judge_command(("npm", "install")).effect == "leaves"


USUAL = [
    line.split("\t")
    for line in (Path(__file__).parent / "usual_commands.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_usual_commands_ask_only_what_a_user_would_be_asked() -> None:
    """``usual_commands.tsv`` says of each what a user meets; few of them need a second key."""
    own = f"{state_root()}/projects/x/worktrees/T-1"
    judged = []
    for _, _, _, spelled, *_ in USUAL:
        line = spelled.replace("\\n", "\n")
        inside, checkout, free = (
            judge_command(line, CommandPlace(confined, root, lambda words: False))
            for confined, root in ((True, own), (True, "/project"), (False, "/project"))
        )
        reasons = "; ".join(free.reasons)
        row = [inside.risk, checkout.risk, "waits" if free.waits else "passes", spelled]
        judged.append([*row, reasons] if reasons else row)
        assert reasons or checkout.risk != "high"
        assert not inside.waits or inside.effect == "leaves", line
    assert judged == USUAL
    assert len(judged) == 104
    assert sum(row[1] == "high" for row in judged) <= 8
