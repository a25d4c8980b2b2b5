"""Commands, with a bubblewrap that works and without one, which the person is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from act_sandbox import RUN, run, said
from act_world import environment, git, show
from sandbox_here import CONFINES

from cockpit.act.adapters.run_command import test_counts as counts_of
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.sandbox.variables import clean_environment
from cockpit.act.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow


@pytest.fixture(params=["plain", "confined"] if CONFINES else ["plain"])
def ground(request: pytest.FixtureRequest) -> Workspace:
    """Where commands run: without a sandbox, and in one where there is one."""
    made: Workspace = request.getfixturevalue(request.param)
    return made


async def test_the_project_is_writable_and_python_works(ground: Workspace) -> None:
    outcome = await run(ground, "python", "-c", "open('made', 'w').write('x'); print('hello')")
    assert outcome.status == "success", outcome
    assert (said(outcome), outcome.detail["exit_code"]) == ("hello\n", 0)
    assert (ground.root / "made").read_text() == "x"


async def test_git_itself_still_works(ground: Workspace) -> None:
    (ground.root / "app.py").write_text("changed\n")
    outcome = await run(ground, "git", "status", "--short")
    assert said(outcome) == " M app.py\n"
    assert (await run(ground, "git", "add", "app.py")).status == "success"
    assert git(ground.root, "diff", "--cached", "--name-only") == "app.py\n"


async def test_time_memory_and_output_are_limited(ground: Workspace) -> None:
    late = await run(ground, "python", "-c", "import signal; signal.pause()", timeout_s=1)
    assert (late.status, late.failure) == ("timeout", "permanent")
    loud = await run(ground, "python", "-c", "while True: print('x' * 10_000)")
    assert loud.failure == "permanent" and "passed 4 MiB" in loud.summary
    big = await run(ground, "python", "-c", "x = bytearray(6 * 1024 ** 3)")
    assert "MemoryError" in said(big)


async def test_without_bubblewrap_the_person_is_told(plain: Workspace) -> None:
    assert not plain.sandbox.works
    proposal = await show(plain, "run", argv=["python", "-c", "print(1)"], reason="r")
    assert dict(proposal.fields)["sandbox"] == "none"
    assert proposal.notes[0].startswith("No sandbox: bubblewrap (bwrap) is not installed.")
    assert (await show(plain, "run", argv=["pytest"], reason="r")).risk == "medium"
    outcome = await RUN.perform(proposal.payload, "k", plain)
    assert said(outcome) == "1\n"


async def test_a_bubblewrap_that_does_not_work_counts_as_missing(project, tmp_path):
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create namespace' >&2\nexit 1\n"
    )
    (fake / "bwrap").chmod(0o755)
    ground = await open_workspace(
        project, environment={**environment(), "PATH": f"{fake}:/usr/bin:/bin"}
    )
    assert "No permissions to create namespace" in ground.sandbox.missing
    assert ground.sandbox.prlimit is not None


async def test_exit_status_signal_missing_program_and_masked_output(ground: Workspace) -> None:
    bad = await run(ground, "python", "-c", "import sys; print('no', file=sys.stderr); sys.exit(3)")
    assert (bad.failure, bad.detail["exit_code"], said(bad)) == ("permanent", 3, "no\n")
    assert "exit 3" in bad.summary
    assert (await run(ground, "no-such-program")).failure == "permanent"
    token = "ghp_" + "a1B2" * 9
    code = "print('\\x1b[31mred\\x1b[0m \\x1b]52;c;eA==\\x07 g' + 'hp_' + 'a1B2' * 9)"
    shown = await run(ground, "python", "-c", code)
    assert token not in said(shown) and "\x1b" not in said(shown)
    assert said(shown) == "red  [masked:github-token]\n"
    long = await run(ground, "python", "-c", "print('line\\n' * 50_000)")
    assert len(said(long)) < 10_000 and said(long).startswith("…\nline\n")


async def test_a_suite_is_counted(ground: Workspace) -> None:
    outcome = await run(ground, "sh", "-c", "echo '= 1 failed, 1 passed in 0.1s ='; exit 1")
    assert outcome.detail["tests"] == {"failed": 1, "passed": 1}
    assert "1 failed, 1 passed" in outcome.summary


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("=== 3 passed, 1 skipped, 2 warnings in 0.10s ===", {"passed": 3, "skipped": 1, "warning": 2}),
        ("Ran 5 tests in 0.001s\n\nOK", {"passed": 5}),
        ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)", {"passed": 2, "failed": 1, "error": 2}),
        ("nothing of the kind", {}),
        ("we saw 3 passed in conversation", {}),
    ],
)  # fmt: skip
def test_counts_of_runners(output: str, counts: dict[str, int]) -> None:
    assert counts_of(output) == counts


def test_the_environment_of_commands_holds_no_secrets() -> None:
    given = {
        "PATH": "/bin", "HOME": "/h", "LANG": "C", "LC_TIME": "C", "KEYBOARD": "de", "NPM_CONFIG": "x",
        "NODE_OPTIONS": "--title=ghp_" + "a1B2" * 9, "MINE": "y", "HTTPS_PROXY": "http://me:pw@proxy",
        "ANTHROPIC_API_KEY": "s", "GH_TOKEN": "s", "github_token": "s", "DB_PASSWORD": "s",
        "AWS_PROFILE": "s", "SSH_AUTH_SOCK": "s", "COCKPIT_ROOT_TOKEN": "s", "GIT_DIR": "x",
        "SECRET": "s", "OPENAI_APIKEY": "s", "SENTRY_DSN": "s", "GOOGLE_APPLICATION_CREDENTIALS": "s",
    }  # fmt: skip
    assert set(clean_environment(given)) == {"PATH", "HOME", "LANG", "LC_TIME"}
    assert set(clean_environment(given, ("MINE", "GH_TOKEN"))) == {
        *("PATH", "HOME", "LANG", "LC_TIME", "MINE", "GH_TOKEN")
    }


def test_home_is_hidden_but_its_toolchains_are_not(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "home" / "code" / "p"
    for name in (".pyenv/shims", ".local/bin", ".aws", ".cargo/bin", "code/p/.venv/bin"):
        (home / name).mkdir(parents=True)
    (home / ".cargo/credentials.toml").write_text("s")
    sandbox = Sandbox("bwrap", None)
    environment = {"HOME": str(home), "PATH": f"{home}/.pyenv/shims:/usr/bin"}
    with sandbox.launch(["x"], root, environment) as launch:
        words = launch.argv
    bound = [words[at + 1] for at, word in enumerate(words) if word == "--ro-bind"]
    assert str(home / ".pyenv") in bound and str(home / ".cargo/bin") in bound
    assert not {str(home), str(home / ".cargo"), str(home / ".aws")} & set(bound)
    assert words.index(str(home)) < words.index(str(root))


async def test_a_signal_is_named_and_strange_arguments_arrive(ground: Workspace) -> None:
    killed = await run(
        ground, "python", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    )
    alone = "" if ground.sandbox.works else " It ran without a sandbox."
    assert killed.summary.endswith(f"(signal 11).{alone}")
    strange = ["-x", "", "a b", "$(id)", "`id`", "'\"", "*", "é\n"]
    outcome = await run(ground, "python", "-c", "import sys; print(sys.argv[1:])", *strange)
    assert said(outcome) == f"{strange}\n"
