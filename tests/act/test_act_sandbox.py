"""Commands confined by a real bubblewrap, and plainly where there is none."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from pathlib import Path

import pytest
from act_world import environment, git, show

from cockpit.act.adapters import ADAPTERS, Outcome
from cockpit.act.adapters.command import test_counts as counts_of
from cockpit.act.ground import ActGround, clean_environment, stand_on
from cockpit.act.sandbox import Sandbox

RUN = ADAPTERS["run"]


async def run(ground: ActGround, *argv: str, timeout_s: int = 60) -> Outcome:
    proposal = await show(ground, "run", argv=list(argv), reason="r", timeout_s=timeout_s)
    return await RUN.perform(proposal.payload, "k", ground)


def said(outcome: Outcome) -> str:
    return str(outcome.detail["stdout"]) + str(outcome.detail["stderr"])


@pytest.fixture
async def confined(project: Path) -> ActGround:
    # The interpreter of these tests is on the PATH, as a project's own is: so it is seen inside.
    given = environment()
    path = f"{Path(sys.executable).parent}:{given.get('PATH', '')}"
    ground = await stand_on(project, environment={**given, "PATH": path})
    assert ground.sandbox.works, f"bubblewrap is needed for these tests: {ground.sandbox.missing}"
    return ground


@pytest.fixture
async def plain(project: Path) -> ActGround:
    return await stand_on(
        project, environment={**environment(), "PATH": str(Path(sys.executable).parent)}
    )


async def test_the_project_is_writable_and_python_works(confined: ActGround) -> None:
    outcome = await run(confined, "python", "-c", "open('made', 'w').write('x'); print('hello')")
    assert outcome.status == "success", outcome
    assert (said(outcome), outcome.detail["exit_code"]) == ("hello\n", 0)
    assert (confined.root / "made").read_text() == "x"


async def test_home_network_tmp_and_system_are_out_of_reach(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private")
    secret_tmp = Path("/tmp") / f"cockpit-test-{os.getpid()}"
    secret_tmp.write_text("other people's")
    ground = await stand_on(project, environment={**environment(), "HOME": str(home)})
    try:
        script = (
            "import os, socket, pathlib\n"
            f"print(os.path.exists({str(home / '.ssh')!r}), os.path.exists({str(secret_tmp)!r}))\n"
            "print(os.listdir('/run') if os.path.isdir('/run') else [])\n"
            "for place in ('/etc/x', '/usr/x'):\n"
            "    try: open(place, 'w'); print('written')\n"
            "    except OSError: print('refused')\n"
            "try: socket.create_connection(('192.0.2.1', 80), 5); print('connected')\n"
            "except OSError as e: print('no network')\n"
            "pathlib.Path('/tmp/mine').write_text('x'); print(os.environ['TMPDIR'])\n"
        )
        outcome = await run(ground, "python", "-c", script)
    finally:
        secret_tmp.unlink()
    assert said(outcome).splitlines() == [
        "False False", "[]", "refused", "refused", "no network", "/tmp",
    ]  # fmt: skip
    assert not Path("/tmp/mine").exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo evil >> .git/config",
        "git config core.fsmonitor ./evil",
        "echo evil > .git/hooks/pre-commit",
        "mv .git .away",
        "rm -rf .git/hooks && mkdir .git/hooks",
        "mkdir -p .cockpit/state && echo x > .cockpit/state/cockpit.db",
        "mkdir evil && echo ../evil > .git/commondir",
        "echo '[core]' > .git/config.worktree",
        "rm -rf .git/hooks; ln -s ../evil .git/hooks",
    ],
)
async def test_git_and_cockpit_cannot_be_redirected(confined: ActGround, script: str) -> None:
    root = confined.root
    (root / ".cockpit/state").mkdir(parents=True)
    (root / ".cockpit/state/cockpit.db").write_text("the store")
    (root / ".git/hooks").mkdir(exist_ok=True)
    config = (root / ".git/config").read_text()
    hooks = sorted(path.name for path in (root / ".git/hooks").iterdir())
    await run(confined, "python", "-c", f"import os; os.system({script!r})")
    assert (root / ".git/config").read_text() == config
    assert sorted(path.name for path in (root / ".git/hooks").iterdir()) == hooks
    assert (root / ".cockpit/state/cockpit.db").read_text() == "the store"
    assert not (root / ".git/commondir").exists() and not (root / ".git/config.worktree").exists()
    assert git(root, "log", "--format=%s") == "Begin\n"


async def test_what_was_planted_is_a_failure_that_says_so(confined: ActGround) -> None:
    shutil.rmtree(confined.root / ".git/hooks", ignore_errors=True)
    script = "import pathlib; p = pathlib.Path('.git/hooks'); p.mkdir(); (p / 'x').write_text('x')"
    outcome = await run(confined, "python", "-c", script)
    assert (outcome.failure, outcome.detail["removed"]) == ("permanent", [".git/hooks"])
    assert not (confined.root / ".git/hooks").exists()


async def test_git_itself_still_works_inside(confined: ActGround) -> None:
    (confined.root / "app.py").write_text("changed\n")
    outcome = await run(confined, "git", "status", "--short")
    assert said(outcome) == " M app.py\n"
    assert (await run(confined, "git", "add", "app.py")).status == "success"
    assert git(confined.root, "diff", "--cached", "--name-only") == "app.py\n"


async def test_a_linked_worktree_works_and_its_main_checkout_is_read_only(
    confined: ActGround, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(confined.root, "worktree", "add", "-q", "-b", "side", str(tree))
    (confined.root / ".cockpit/state").mkdir(parents=True)
    (confined.root / ".cockpit/state/cockpit.db").write_text("the store")
    ground = await stand_on(tree)
    (tree / "app.py").write_text("changed\n")
    assert (await run(ground, "git", "add", "app.py")).status == "success"
    assert git(tree, "diff", "--cached", "--name-only") == "app.py\n"
    script = (
        "import pathlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(pathlib.Path(name).read_text()[:9]); pathlib.Path(name).write_text('x')\n"
        "    except OSError: print('refused')\n"
    )
    main = confined.root
    names = [f"{main}/.cockpit/state/cockpit.db", f"{main}/.git/config", f"{tree}/.git"]
    outcome = await run(ground, "python", "-c", script, *names)
    assert said(outcome).count("refused") == 3
    assert "the store" not in said(outcome)
    assert (main / ".cockpit/state/cockpit.db").read_text() == "the store"
    assert (tree / ".git").read_text().startswith("gitdir: ")


async def test_time_memory_and_output_are_limited(confined: ActGround) -> None:
    late = await run(confined, "python", "-c", "import time; time.sleep(600)", timeout_s=1)
    assert (late.status, late.failure) == ("timeout", "permanent")
    loud = await run(confined, "python", "-c", "while True: print('x' * 10_000)")
    assert loud.failure == "permanent" and "passed 4 MiB" in loud.summary
    big = await run(confined, "python", "-c", "x = bytearray(6 * 1024 ** 3)")
    assert "MemoryError" in said(big)


async def test_nothing_outlives_a_command(confined: ActGround) -> None:
    held = confined.root / "held"
    child = (
        "import fcntl, os, signal\n"
        "file = open('held', 'w'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "os.write(1, b'held'); os.close(1); signal.pause()\n"
    )
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE,"
        " stderr=subprocess.DEVNULL, start_new_session=True)\n"
        "print(child.stdout.read())\n"
    )
    outcome = await run(confined, "python", "-c", script)
    assert said(outcome) == "b'held'\n"
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while the child lives


async def test_without_bubblewrap_the_person_is_told(plain: ActGround) -> None:
    assert not plain.sandbox.works
    proposal = await show(plain, "run", argv=["python", "-c", "print(1)"], reason="r")
    assert dict(proposal.fields)["sandbox"] == "none"
    assert proposal.notes[0].startswith("No sandbox: bubblewrap (bwrap) is not installed.")
    assert (await show(plain, "run", argv=["pytest"], reason="r")).risk == "medium"
    outcome = await RUN.perform(proposal.payload, "k", plain)
    assert said(outcome) == "1\n"


async def test_shown_confined_never_runs_unconfined(confined: ActGround, plain: ActGround) -> None:
    proposal = await show(confined, "run", argv=["touch", "made"], reason="r")
    outcome = await RUN.perform(proposal.payload, "k", plain)
    assert outcome.failure == "conflict"
    assert not (plain.root / "made").exists()


async def test_a_bubblewrap_that_does_not_work_counts_as_missing(
    project: Path, tmp_path: Path
) -> None:
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create namespace' >&2\nexit 1\n"
    )
    (fake / "bwrap").chmod(0o755)
    ground = await stand_on(project, environment={**environment(), "PATH": f"{fake}:/usr/bin:/bin"})
    assert "No permissions to create namespace" in ground.sandbox.missing
    assert ground.sandbox.prlimit is not None


async def test_exit_status_signal_missing_program_and_masked_output(confined: ActGround) -> None:
    bad = await run(
        confined, "python", "-c", "import sys; print('no', file=sys.stderr); sys.exit(3)"
    )
    assert (bad.failure, bad.detail["exit_code"], said(bad)) == ("permanent", 3, "no\n")
    assert "exit 3" in bad.summary
    assert (await run(confined, "no-such-program")).failure == "permanent"
    token = "ghp_" + "a1B2" * 9
    code = "print('\\x1b[31mred\\x1b[0m \\x1b]52;c;eA==\\x07 g' + 'hp_' + 'a1B2' * 9)"
    shown = await run(confined, "python", "-c", code)
    assert token not in said(shown) and "\x1b" not in said(shown)
    assert said(shown) == "red  [masked:github-token]\n"
    long = await run(confined, "python", "-c", "print('line\\n' * 50_000)")
    assert len(said(long)) < 10_000 and said(long).startswith("…\nline\n")


async def test_a_suite_is_counted(confined: ActGround) -> None:
    (confined.root / "test_x.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    outcome = await run(
        confined, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_x.py"
    )
    assert outcome.detail["tests"] == {"failed": 1, "passed": 1}
    assert "1 failed, 1 passed" in outcome.summary


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        (
            "=== 3 passed, 1 skipped, 2 warnings in 0.10s ===",
            {"passed": 3, "skipped": 1, "warning": 2},
        ),
        ("2 failed, 1 error in 1.00s", {"failed": 2, "error": 1}),
        ("no tests ran in 0.01s", {"passed": 0}),
        ("Ran 5 tests in 0.001s\n\nOK", {"passed": 5}),
        (
            "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)",
            {"passed": 2, "failed": 1, "error": 2},
        ),
        ("Ran 2 tests in 0.001s\n\nOK (skipped=1)", {"passed": 1, "skipped": 1}),
        ("nothing of the kind", {}),
        ("we saw 3 passed in conversation", {}),
    ],
)
def test_counts_of_runners(output: str, counts: dict[str, int]) -> None:
    assert counts_of(output) == counts


def test_the_environment_of_commands_holds_no_secrets() -> None:
    given = {
        "PATH": "/bin", "HOME": "/h", "LANG": "C", "KEYBOARD": "de", "MONKEY": "x", "TOKENIZERS": "1",
        "ANTHROPIC_API_KEY": "s", "GH_TOKEN": "s", "github_token": "s", "DB_PASSWORD": "s",
        "AWS_PROFILE": "s", "SSH_AUTH_SOCK": "s", "COCKPIT_ROOT_TOKEN": "s", "GIT_DIR": "x",
        "SECRET": "s", "OPENAI_APIKEY": "s", "SENTRY_DSN": "s", "GOOGLE_APPLICATION_CREDENTIALS": "s",
    }  # fmt: skip
    assert set(clean_environment(given)) == {
        "PATH",
        "HOME",
        "LANG",
        "KEYBOARD",
        "MONKEY",
        "TOKENIZERS",
    }


def test_home_is_hidden_but_its_toolchains_are_not(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "home" / "code" / "p"
    for name in (".pyenv/shims", ".local/bin", ".aws", ".cargo/bin", "code/p/.venv/bin"):
        (home / name).mkdir(parents=True)
    (home / ".cargo/credentials.toml").write_text("s")
    sandbox = Sandbox("bwrap", None)
    words = sandbox.wrapped(
        ["x"], root, {"HOME": str(home), "PATH": f"{home}/.pyenv/shims:/usr/bin"}
    )
    bound = [words[at + 1] for at, word in enumerate(words) if word == "--ro-bind"]
    assert str(home / ".pyenv") in bound and str(home / ".cargo/bin") in bound
    assert not {str(home), str(home / ".cargo"), str(home / ".aws")} & set(bound)
    assert words.index(str(home)) < words.index(str(root))


async def test_a_signal_is_named_and_strange_arguments_arrive(confined: ActGround) -> None:
    killed = await run(
        confined, "python", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    )
    assert killed.summary.endswith("exit 139 (signal 11).")
    strange = ["-x", "", "a b", "$(id)", "`id`", "'\"", "*", "é\n"]
    outcome = await run(confined, "python", "-c", "import sys; print(sys.argv[1:])", *strange)
    assert said(outcome) == f"{strange}\n"
