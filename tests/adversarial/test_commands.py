"""The judge of reads against a table of commands, in a project that tries to make them run or write."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from adversarial.hostile_project import git, make_project, plant, rows
from msgspec.structs import replace

from cockpit.access.confined_paths import Confined
from cockpit.access.reads.git_reads import NAMES_SECRETS
from cockpit.access.reads.judge_reads import why_not_read, why_not_read_options
from cockpit.access.reads.reading_place import ReadingPlace
from cockpit.access.shell_commands import list_commands
from cockpit.act.command_line import CommandRefused, split_command
from cockpit.act.reading.reading_commands import find_reading
from cockpit.act.sandbox.bubblewrap import detect
from cockpit.learn.capture_wip import ToolUse, capture_tool_use

ROWS = list(rows())
READS = [row for row in ROWS if row.is_read]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ReadingPlace:
    shop, path = make_project(Path(os.path.realpath(tmp_path_factory.mktemp("hostile"))))
    return ReadingPlace(str(shop), str(shop), {"PATH": path, "SHELL": "/bin/bash"})


def test_the_verdict_is_that_of_the_table(place: ReadingPlace) -> None:
    assert len(READS) > 30 and len(ROWS) > 150
    verdicts = {row.command: why_not_read(row.command, place) for row in ROWS}
    assert [row for row in ROWS if (verdicts[row.command] == "") != row.is_read] == []


def test_no_change_is_seen_in_a_read_and_nothing_behind_it_is_one(place: ReadingPlace) -> None:
    tails = (
        *("; touch out", " && ./x", " | sh", "\ntouch out", " > out", " $(touch out)"),
        " & touch out",
    )
    for row in READS:
        use = ToolUse("Bash", {"command": row.command}, "", 0, place.cwd, place.root)
        assert "files_modified" not in capture_tool_use(use), row
        assert all(why_not_read(row.command + tail, place) for tail in tails), row


ACTING = [row for row in ROWS if not row.is_read]


def test_the_engine_takes_no_command_for_a_reading_that_the_judge_does_not_know(place):
    """``sort --compress-program=./x`` and its like: nothing is read in their place."""
    confined = Confined(Path(place.root))
    for row in ACTING:
        try:
            argv = split_command(row.command)
        except CommandRefused:
            argv = ("sh", "-c", row.command)
        reading = find_reading(argv, confined)
        if reading is None or reading.refusal:
            continue
        for command in list_commands(argv):
            if command.program in ("", "cd", "set", "exit", "read", "done", "fi", "}"):
                continue  # it prints nothing beside the reading
            trouble = why_not_read_options(command.argv)
            assert trouble in ("", NAMES_SECRETS), (row.command, reading.items)


SETTINGS = (
    *("core.fsmonitor ./x", "core.worktree /", "diff.hostile.textconv ./x"),
    *("filter.hostile.process ./x", "alias.hello !./x", "includeIf.gitdir:/.path ../x"),
    *("log.showSignature true", "remote.origin.vcs x", "extensions.worktreeConfig true"),
    "unknown.setting x",
)


@pytest.fixture
def shop(tmp_path: Path) -> ReadingPlace:
    """A plain repository, with its place."""
    folder = Path(os.path.realpath(tmp_path)) / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "a.py")
    git(folder, "commit", "-q", "-m", "Open")
    return ReadingPlace(str(folder), str(folder), {"PATH": "/usr/bin:/bin"})


def test_a_setting_that_is_not_known_leaves_git_no_reads(shop: ReadingPlace) -> None:
    config = Path(shop.root, ".git", "config")
    plain = config.read_text(encoding="utf-8")
    assert why_not_read("git status", shop) == ""
    for setting in SETTINGS:
        git(Path(shop.root), "config", "--file", str(config), *setting.split(" "))
        for command in ("git status", "cat a.py && git show"):
            assert why_not_read(command, shop), (setting, command)
        config.write_text(plain, encoding="utf-8")
    for text in ("[CORE]\n\tPager=./x\n", "[core]\npa\\\nger = ./x\n", "[core\n"):
        config.write_text(plain + text, encoding="utf-8")
        assert why_not_read("git log", shop), text
    config.write_text(
        plain + '[remote "origin"]\n\turl = https://example.org/x\n', encoding="utf-8"
    )
    assert why_not_read("git log", shop) == ""


def _in_submodule(shop: Path) -> None:
    git(shop, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")


def _with_index_hook(shop: Path) -> None:
    plant(shop / ".git" / "hooks" / "post-index-change")


def _linked_repository(shop: Path) -> None:
    (shop / ".git").rename(shop.parent / "elsewhere.git")
    (shop / ".git").symlink_to(shop.parent / "elsewhere.git")


def _bare_repository(shop: Path) -> None:
    for name in ("objects", "refs"):
        (shop / name).mkdir()
    (shop / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    shutil.rmtree(shop / ".git")


@pytest.mark.parametrize(
    "spoil", [_in_submodule, _with_index_hook, _linked_repository, _bare_repository]
)
def test_a_spoiled_repository_leaves_git_status_no_read(shop, spoil):
    assert why_not_read("git status", shop) == ""
    spoil(Path(shop.root))
    assert why_not_read("git status", shop)


def test_a_program_of_the_project_is_no_read_wherever_path_finds_it(shop: ReadingPlace) -> None:
    root = Path(shop.root)
    bin_folder = root / "bin"
    bin_folder.mkdir()
    for path in (f"{bin_folder}:/usr/bin:/bin", "/usr/bin:/bin:."):
        assert why_not_read("ls", replace(shop, env={"PATH": path})) == "", path
    for path in (".:/usr/bin:/bin", ":/usr/bin:/bin", "bin:/usr/bin:/bin"):
        assert why_not_read("ls", replace(shop, env={"PATH": path})), path
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "ls").symlink_to(bin_folder / "ls")
    (outside / "folder").symlink_to(bin_folder)
    plant(bin_folder / "ls")
    plant(bin_folder / "git")
    for path in (f"{bin_folder}", f"{outside}", f"{outside}/folder"):
        place = replace(shop, env={"PATH": f"{path}:/usr/bin:/bin"})
        assert why_not_read("ls", place), path
        assert why_not_read(["ls"], place), path
        assert why_not_read("cat a.py | ls", place), path
        assert why_not_read("nice ls", place), path


ENVIRONMENTS = [
    ("ls", {"LD_PRELOAD": "./x.so"}),
    ("ls", {"BASH_FUNC_ls%%": "() { touch out; }"}),
    ("ls", {"SHELL": "/usr/bin/fish"}),
    ("cd . && ls", {"CDPATH": "/"}),
    ("uniq a.py", {"POSIXLY_CORRECT": "1"}),
    ("git status", {"GIT_DIR": "/tmp/x"}),
    ("git status", {"GIT_CONFIG_COUNT": "1"}),
    ("git status", {"GIT_PAGER": "./x"}),
]


def test_an_environment_that_changes_what_runs_leaves_no_reads(shop: ReadingPlace) -> None:
    for command, variables in ENVIRONMENTS:
        assert why_not_read(command, shop) == ""
        assert why_not_read(command, replace(shop, env={**shop.env, **variables})), variables


def test_searching_tracked_files_for_secrets_is_no_read(shop: ReadingPlace) -> None:
    assert why_not_read("git grep x", shop) == ""
    Path(shop.root, ".env").write_text("KEY=x\n", encoding="utf-8")
    assert why_not_read("git grep x", shop) == ""
    git(Path(shop.root), "add", "-f", ".env")
    assert why_not_read("git grep x", shop)


def test_git_settings_of_the_project_by_variable_are_no_reads(shop: ReadingPlace) -> None:
    variables = {**shop.env, "GIT_CONFIG_GLOBAL": f"{shop.root}/gitconfig"}
    assert why_not_read("git log", replace(shop, env=variables))
    variables = {**shop.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_EDITOR": "true"}
    assert why_not_read("git log", replace(shop, env=variables)) == ""


def test_a_sign_that_shells_and_terminals_read_differently_is_no_read(shop: ReadingPlace) -> None:
    for sign in "\0\r\v\x1b\x7f\x85\xa0\u2003\u2028\u202e":
        for command in (f"ls{sign}touch out", f"echo 'a{sign}b'", f"ls >{sign}/dev/null"):
            assert why_not_read(command, shop), command
    assert why_not_read("echo é ☃", shop) == ""


def test_a_text_that_ends_behind_a_tab_hides_no_command(shop: ReadingPlace) -> None:
    assert why_not_read("cat <<-E\n\tx\n\tE\necho E", shop) == ""
    assert why_not_read("cat <<-E\n\tE\ntouch out\nE", shop)


def test_a_hidden_file_that_an_ignore_file_takes_back_is_searched(shop: ReadingPlace) -> None:
    """Ripgrep leaves hidden files out, but not those that ``!NAME`` in an ignore file names."""
    root = Path(shop.root)
    programs = root.parent / "programs"
    programs.mkdir()
    (programs / "rg").symlink_to("/bin/true")
    shop = replace(shop, env={"PATH": f"/usr/bin:/bin:{programs}"})
    (root / "sub" / ".config").mkdir(parents=True)
    (root / "sub" / ".env").write_text("KEY=x\n", encoding="utf-8")
    (root / "sub" / ".config" / "site.pem").write_text("x\n", encoding="utf-8")
    assert why_not_read("rg KEY", shop) == ""
    for folder, name in (("", ".gitignore"), ("sub", ".ignore"), ("", ".rgignore")):
        for line in ("!.env", "!sub/.[ef]nv", "!/sub/.config/", "!*"):
            file = root / folder / name
            file.write_text(f"*.log\n{line}\n", encoding="utf-8")
            assert why_not_read("rg KEY", shop), (file, line)
            assert why_not_read("rg KEY sub", shop), (file, line)
            file.write_text("*.log\n!.env.example\n!keep.log\n", encoding="utf-8")
            assert why_not_read("rg KEY", shop) == ""
            file.unlink()


def test_a_search_by_ending_finds_files_for_secrets_with_it(shop: ReadingPlace) -> None:
    root = Path(shop.root)
    (root / "sub").mkdir()
    for ending in ("toml", "y[m]l"):
        command = f"grep -rn KEY . --include='*.{ending}'"
        assert why_not_read(command, shop) == "", command
        file = root / "sub" / f"secrets.{ending.replace('[m]', 'm')}"
        file.write_text("KEY\n", encoding="utf-8")
        assert why_not_read(command, shop), command
        assert why_not_read("grep -rn KEY . --include='*.py'", shop) == ""


def test_what_follows_links_reads_no_folder_that_has_them(shop: ReadingPlace) -> None:
    root = Path(shop.root)
    for name in ("one", "two"):
        (root / name).mkdir()
        (root / name / "x").write_text("x\n", encoding="utf-8")
    assert why_not_read("diff -r one two", shop) == ""
    (root / "one" / "y").symlink_to("/etc/passwd")
    assert why_not_read("diff -r one two", shop)
    assert why_not_read("grep -r x one", shop) == ""
    (root / "one" / "y").unlink()
    (root / "one" / "y").symlink_to("../a.py")
    assert why_not_read("diff -r one two", shop) == ""


_CAGE = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all")
_TRACER = Path(__file__).with_name("trace_programs.py")


@pytest.mark.slow
def test_every_read_of_the_table_writes_nothing_and_runs_only_what_it_names(tmp_path: Path) -> None:
    """Each command that the judge allows runs on the hostile project, in a cage, and is traced."""
    top = Path(os.path.realpath(tmp_path))
    shop, path = make_project(top)
    logs, list_file = top / "logs", top / "list"
    logs.mkdir()
    place = ReadingPlace(str(shop), str(shop), {"PATH": path, "SHELL": "/bin/bash"})
    commands = [row.command for row in ROWS if why_not_read(row.command, place) == ""]
    list_file.write_bytes(b"".join(command.encode() + b"\0" for command in commands))
    home = top / "home"
    home.mkdir()
    before = _snapshot(top)
    confines = asyncio.run(detect(os.environ)).works
    cage = [*_CAGE, "--bind", str(top), str(top)] if confines else []
    run = [sys.executable, "-I", str(_TRACER), str(logs), str(list_file)]
    environment = {"PATH": path, "HOME": str(home), "SHELL": "/bin/bash"}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([*cage, *run], cwd=shop, env=environment, check=True, timeout=300)
    assert _snapshot(top) == before
    assert len(list(logs.iterdir())) == len(commands) == len(READS)
    for number, command in enumerate(commands, start=1):
        for program in (logs / str(number)).read_text(encoding="utf-8").splitlines():
            assert not program.startswith(str(shop)), (command, program)
            named = Path(program).name in command or Path(program).name in _OWN
            assert named, (command, program)


_OWN = {"bash", "sh", "grep", "which.debianutils"}
"""The cage's own, and what egrep and which are made of."""


def _snapshot(top: Path) -> dict[str, tuple[int, bytes]]:
    """The files below ``top`` with mode and content; git's index, which git refreshes, and the logs apart."""
    files = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name.startswith("logs") or name.endswith(".git/index") or path.is_fifo():
            continue
        info = path.lstat()
        is_file = path.is_file() and not path.is_symlink()
        files[name] = (info.st_mode, path.read_bytes() if is_file else b"")
    return files
