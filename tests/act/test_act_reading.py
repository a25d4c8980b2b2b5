"""Commands that only read become scope items, or say why not; every other command stays one."""

from __future__ import annotations

import pytest

from cockpit.access.confined_paths import Confined
from cockpit.act.command_line import split_command
from cockpit.act.reading.reading_commands import find_reading
from cockpit.observe.scope_items import parse_item


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Confined:
    root = tmp_path_factory.mktemp("project")
    (root / "src" / "[id]").mkdir(parents=True)
    (root / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    (root / "src" / "b.py").write_text("b\n")
    (root / "src" / "[id]" / "page.ts").write_text("page\n")
    (root / "two words.txt").write_text("x\n")
    (root / "data.json").write_text("{}\n")
    return Confined(root)


def items(confined: Confined, command: str) -> list[str]:
    reading = find_reading(split_command(command), confined)
    assert reading is not None, command
    assert not reading.refusal, reading.refusal
    for item in reading.items:
        parse_item(item)  # what the gateway would refuse to read raises
    return list(reading.items)


@pytest.mark.parametrize(
    ("command", "scope"),
    [
        ("cat a.py", ["file:a.py"]),
        ("cat 'two words.txt'", ["file:two words.txt"]),
        ("cat /etc/passwd", ["file:/etc/passwd"]),
        ("head --lines=-90 a.py", ["file:a.py:1-10"]),
        ("head -c 100 a.py", ["file:a.py"]),
        ("tail -n 3 a.py", ["file:a.py:98-100"]),
        ("sed -n '90,$p' a.py", ["file:a.py:90-100"]),
        ("sed -n -e 5,+3p a.py", ["file:a.py:5-8"]),
        ("sed 10q a.py", ["file:a.py:1-10"]),
        ("sed -n '/def /p' a.py", ["search:def  in a.py"]),
        ("sed s/a/b/ a.py", ["file:a.py"]),
        ("awk 'NR>=10 && NR<=20' a.py", ["file:a.py:10-20"]),
        ("awk -F : '{print $1}' a.py", ["file:a.py"]),
        ("jq .version data.json", ["file:data.json"]),
        ("diff a.py src/b.py", ["file:a.py", "file:src/b.py"]),
        ("grep line a.py", ["search:line in a.py"]),
        ("grep -rnE 'a|b' .", ["search:a|b in **"]),
        ("grep -rn 'a\\|b(' .", ["search:a|b\\( in **"]),
        ("grep -rniw total src a.py", [
            "search:(?i)\\b(?:total)\\b in src/**",
            "search:(?i)\\b(?:total)\\b in a.py",
        ]),
        ("grep -F 'a.b' a.py", ["search:a\\.b in a.py"]),
        ("grep -A3 -B 2 line a.py", ["search:line in a.py"]),
        ("grep -r --include='*.py' x src", ["search:x in src/**/*.py"]),
        ("grep -e one -e two a.py", ["search:(?:one)|(?:two) in a.py"]),
        ("grep '^[[:space:]]*$' a.py", ["search:^[\\s]*$ in a.py"]),
        ("grep -v x a.py", ["file:a.py"]),
        ("rg total", ["search:total in **"]),
        ("git grep -n total", ["search:total in **"]),
        ("git diff", ["diff:HEAD"]),
        ("git --no-pager diff main..HEAD -- src", ["diff:main..HEAD in src/**"]),
        ("git show --stat 1a2b3c4", ["log:1a2b3c4~1..1a2b3c4", "diff:1a2b3c4~1..1a2b3c4 @outline"]),
        ("git log --oneline -5", ["log:HEAD @outline"]),
        ("env LANG=C cat a.py", ["file:a.py"]),
        ("timeout 5 nice -n 5 cat a.py", ["file:a.py"]),
        ("bash -c 'cd src && cat b.py'", ["file:src/b.py"]),
        ("sh -c 'cat -n a.py | sed -n 5,9p'", ["file:a.py:5-9"]),
        ("sh -c 'head -5 < a.py'", ["file:a.py:1-5"]),
        ("sh -c 'grep -rn x src | head -3'", ["search:x in src/**"]),
        ("sh -c 'cat src/*.py'", ["file:src/*.py"]),
        ("sh -c 'while read x; do echo $x; done < a.py'", ["file:a.py"]),
        ("sh -c 'echo \"$(cat a.py)\"'", ["file:a.py"]),
    ],
)  # fmt: skip
def test_a_reading_command_is_a_context_request(confined, command, scope):
    assert items(confined, command) == scope


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("git show HEAD:a.py", "Ask for file:a.py, or for diff:HEAD in a.py"),
        ("git cat-file -p HEAD:a.py", "Ask for file:a.py"),
        ("git blame a.py", "Ask for file:a.py, or for log:HEAD"),
        ("git stash show -p", "does not read stashes"),
        ("grep -f words a.py", "Its expressions are in a file. Ask with request_context"),
        ("find . -name x.py -exec cat {} +", "Which files cat reads"),
        ("sh -c 'for f in *.py; do cat $f; done'", "only known when the command runs"),
        ("sh -c 'X=$(cat a.py); python $X'", "This script reads and also runs"),
    ],
)  # fmt: skip
def test_a_reading_command_without_a_scope_item_says_why(confined, command, why):
    reading = find_reading(split_command(command), confined)
    assert reading is not None
    assert why in reading.refusal


@pytest.mark.parametrize(
    "command",
    [
        *("pytest -q", "find . -name '*.py'", "find . -name '*.py' -exec grep -l x {} +"),
        *("git status", "grep -q x a.py", "sed -i s/a/b/ a.py", "uniq a.py out"),
        *("sh -c 'pytest -q | tail -20'", "sh -c 'pytest 2>&1 | grep failed'"),
        *("sh -c 'cat a.py > copy.py'", "sh -c 'cat <<E > new.py\ntext\nE'"),
        *("sh -c 'python prog.py < a.py'", "tail -f a.py", "sort --compress-program=./x a.py"),
        *("rg --pre ./x line a.py", "git diff --output=out", "git -c diff.external=./x diff"),
        *("git log -p --output=out main..HEAD", "perl -ne 'system(\"touch out\")' a.py"),
        "sh -c 'cat a.py | sed \"w out\"'",
    ],
)
def test_any_other_command_stays_a_command(confined: Confined, command: str) -> None:
    assert find_reading(split_command(command), confined) is None
