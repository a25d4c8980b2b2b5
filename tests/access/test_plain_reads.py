"""A plain command that reads: every shell takes it apart as cockpit does, and it writes and runs nothing."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from examples import examples

from cockpit.access.commands.plain_reads import read_line, read_words
from cockpit.access.commands.reading_place import ReadingPlace, why_not_read

PLAIN = """
cat a.py
cat -n a.py sub/b.py
head -5 a.py
head -n 5 a.py
tail -n 3 a.py
sed -n 2,4p a.py
sed -n '2p' a.py
grep -rn line sub
grep -e 'a b' a.py
rg "line 2" sub
rg --glob '*.py' line
ls
ls -la sub
find . -name '*.py' -type f
wc -l a.py
nl a.py
git diff
git --no-pager log -5 --oneline
git show 'HEAD~1' -- a.py
git diff main..topic -- a.py
git blame -L 1,3 a.py
""".strip().splitlines()

NOT_PLAIN = """
cat
grep line
tail -f a.py
sed -i s/a/b/ a.py
sed -n '1e id' a.py
sed -n '1,2w out' a.py
sed -n -f script a.py
sed 's/x/y/e' a.py
rg --pre ./x line
rg --hostname-bin ./x line
rg -z line
grep -f patterns a.py
find . -delete
find . -exec rm {} +
find . -fprint out
find . -name x -o -delete
find . -ok rm {} +
git -c core.pager=./x log
git diff --output=x
git diff --ext-diff
git show --textconv
git log --format=%G?
git log -c
git grep -O./x line
git config alias.x
git diff -o x
wc --files0-from=names
ls -L sub
cat "$HOME"
./cat a.py
/bin/cat a.py
sh -c 'cat a.py'
env cat a.py
timeout 5 cat a.py
""".strip().splitlines()
NOT_PLAIN += [
    "cat <<EO\\\nF\nx\nEOF\nid", "cat a.py\r\nid", "cat 'a\nb'", "cat a.py\x00", "cat\u00a0a.py",
]  # fmt: skip
"""What a shell could read otherwise is tried with all of its signs, by ``every_shell``."""


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_command_is_one(line: str) -> None:
    assert read_line(line) is not None


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_every_other_command_is_none(line: str) -> None:
    assert read_line(line) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        *("git show " + ":" * 10_000, "cat " + "*/" * 10_000, "cat " + "a" * 40_000),
        *("(" * 4_000, "$(" * 4_000, '"$(' * 1_000, "<<A " * 1_000, "{" * 4_000, "a=" * 4_000),
    ],
    ids=lambda line: line[:6],
)
def test_time_and_depth_are_bounded(line: str, tmp_path: Path) -> None:
    from cockpit.loop.permissions.judge_tool import judge_tool

    root = str(tmp_path.resolve())
    judged = judge_tool("Bash", {"command": line}, line, root=root, cwd=root)
    assert (judged.risk, judged.reads) in (("high", False), ("medium", False))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SHELL", "GIT_DIR", "LD_LIBRARY_PATH", "RIPGREP_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path.resolve() / "project"
    (root / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in ("a.py", "sub/b.py", ".env"):
        (root / name).write_text("line 1\nline 2\n")
    (root / "away").symlink_to("/etc")
    return root


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("cat a.py", True), ("cat sub/b.py a.py", True), ("grep -r line sub", True),
        ("find . -name '.*'", True), ("git log -p -- a.py", True), ("cat .env", False),
        ("cat ./sub/../.env", False), ("cat /etc/passwd", False), ("cat ../x", False),
        ("cat away/passwd", False), ("cat .git/config", False), ("grep -r line .", False),
        ("grep -r line", False), ("ls /etc", False), ("git diff", False), ("git log -p", False),
        ("git show HEAD -- .env", False),
    ],
)  # fmt: skip
def test_outside_the_sandbox_its_files_decide(project: Path, line: str, is_read: bool) -> None:
    assert (why_not_read(line, ReadingPlace(str(project), str(project))) == "") is is_read


def test_a_repository_that_names_programs_is_not_read_by_git(project: Path) -> None:
    place = ReadingPlace(str(project), str(project))
    assert why_not_read("git log -p -- a.py", place) == ""
    for name, value in (
        ("diff.external", "./x"),
        ("core.fsmonitor", "./x"),
        ("diff.x.textconv", "./x"),
    ):
        subprocess.run(["git", "-C", str(project), "config", name, value], check=True)
        assert "may change what git runs" in why_not_read("git log -p -- a.py", place)
        subprocess.run(["git", "-C", str(project), "config", "--unset", name], check=True)


SHELLS = {
    name: words
    for name, words in {
        "bash": ["bash", "--norc"], "dash": ["dash"], "busybox": ["busybox", "sh"], "zsh": ["zsh", "-f"],
    }.items()
    if shutil.which(words[0])
}  # fmt: skip
WORDS = (
    "cat head tail sed grep rg ls find wc nl git diff show log blame a.py sub . -n -r -e -o -c 2,3p"
    " '2,3p'"
    " 'a b' '' $X * ? [a] ~ =ls !x {a,b} > >> < << <<< | || & && ; ( ) # \\ ` $( <( >( EOF ' touch planted"
    " -delete"
    " -exec --output=planted -i w e --pre ./x % @ ^ = : -- - +"
)
PIECES = (
    *WORDS.split(" "),
    *('"a b"', '"$X"', '"', "\t", "\n", "\r", "\x0b", "\u00a0", "\\\n", "$'\\n'"),
)


@pytest.mark.search
@pytest.mark.parametrize("seed", range(examples(1)))
def test_every_shell_reads_a_plain_line_alike(seed: int, tmp_path: Path) -> None:
    """What is let through is one command with exactly these words, to each shell; nothing else happens."""
    drawn = random.Random(seed)
    (tmp_path / "a.py").write_text("line\n")
    lines: dict[str, list[str]] = {}
    for _ in range(2_000):
        pieces = drawn.choices(PIECES, k=drawn.randint(1, 6))
        first = drawn.choice(("cat", "grep -r", "sed -n", "ls", "find", "git log", "head"))
        line = first + "".join(drawn.choice((" ", " ", " ", "")) + piece for piece in pieces)
        if read_line(line) is not None:
            lines[line] = []
    assert len(lines) > 50
    for name, words in SHELLS.items():
        script = "p() { printf '%s\\037' \"$@\"; printf '\\036'; }\n"
        script += "".join(f"p {line}\n" for line in lines)
        done = subprocess.run(
            words, input=script.encode(), cwd=tmp_path, capture_output=True, check=True
        )
        heard = done.stdout.decode().split("\036")[:-1]
        assert len(heard) == len(lines), name
        for line, text in zip(lines, heard, strict=True):
            argv = text.split("\037")[:-1]
            assert read_words(argv) == read_line(line), (name, line, argv)
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.search
@pytest.mark.parametrize("seed", range(examples(1)))
def test_what_is_let_through_writes_and_runs_nothing(seed: int, tmp_path: Path) -> None:
    """The commands themselves, with all options that are let through, next to programs that leave a trace."""
    drawn = random.Random(seed)
    project, traps = tmp_path / "project", tmp_path / "traps"
    project.mkdir()
    traps.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    for name in ("a.py", "b.py"):
        (project / name).write_text("line 1\nline 2\n")
    for name in ("x", "less", "gpg", "sh", "touch", "rm", "id", "gzip", "xz", "vi", "ssh", "curl"):
        trap = traps / name
        trap.write_text(f"#!/bin/bash\n: > {tmp_path}/ran-{name}\n")
        trap.chmod(0o755)
    given = (
        "--output=planted --ext-diff --textconv --pre x --pre=x -exec -delete -fprint planted --stat --patch"
        " --oneline --format=%H --format=%G? -newer -ok -type f -name --files0-from=a"
    )
    options = [f"-{letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHILMNOPQRSTUVWXYZ"]
    options += given.split()
    programs = (
        *("cat", "head", "tail", "sed", "grep", "rg", "ls", "find", "wc", "nl", "git log", "git diff"),
    )  # fmt: skip
    lines = set()
    while len(lines) < 60:
        program = drawn.choice(programs)
        words = drawn.choices(
            [*options, "a.py", "b.py", ".", "1", "1,2p", "line"], k=drawn.randint(1, 5)
        )
        line = " ".join([program, *words])
        if read_line(line) is not None:
            lines.add(line)
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*")}
    script = "\n".join(f"{{ {line}; }} </dev/null >/dev/null 2>&1" for line in sorted(lines))
    subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=project,
        env={"PATH": f"{traps}:/usr/bin:/bin", "HOME": str(tmp_path)},
        timeout=120,
    )
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*")} == before
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("ran-")] == []
