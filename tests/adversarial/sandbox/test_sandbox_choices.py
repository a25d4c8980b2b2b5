"""What of the sandbox is the user's to decide, and never a project's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.act.sandbox.sandbox_settings import default_limits
from cockpit.config.load_settings import ConfigInvalid, Settings, load_settings


def load(folder: Path, user: str, project: str = "") -> Settings:
    for name, text in (("user", user), ("project", project)):
        (folder / name).mkdir()
        (folder / name / "config.toml").write_text(text)
    return load_settings(folder / "project", env={"COCKPIT_CONFIG_DIR": str(folder / "user")})


def test_the_users_table_is_read(tmp_path: Path) -> None:
    text = (
        '[sandbox]\nenv = ["DATABASE"]\nread = ["/srv/data"]\nagents = false\nprocesses = 100\n'
        'memory_mb = 512\n[runner.mine]\ncommand = ["mine"]\nhosts = ["api.example.org", "127.0.0.1:80"]\n'
        'home = [".mine"]\nsandbox = true\n'
    )
    runtime = load(tmp_path, text).runtime
    choices, runner = runtime.sandbox, runtime.runners["mine"]
    assert (choices.variables, choices.read, choices.agents) == (
        ("DATABASE",),
        (Path("/srv/data"),),
        False,
    )
    assert (choices.limits.processes, choices.limits.memory_bytes) == (100, 512 * 1024**2)
    assert choices.limits.written_bytes == default_limits().written_bytes
    assert (runner.sandbox, runner.hosts, runner.home) == (
        True,
        ("api.example.org", "127.0.0.1:80"),
        (".mine",),
    )


def test_a_project_may_not_have_the_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="a repository may not say what its programs may do"):
        load(tmp_path, "", "[sandbox]\nagents = false\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[sandbox]\nread = ["/"]', "read has '/'"),
        ('[sandbox]\nread = ["data"]', "absolute paths"),
        ('[sandbox]\nenv = ["A=b"]', "without values"),
        ("[sandbox]\nprocesses = 1", "processes"),
        ("[sandbox]\nnetwork = true", "network"),
        ('[runner.x]\ncommand = ["x"]\nhome = ["../other"]', "begin at your home"),
        ('[runner.x]\ncommand = ["x"]\nhosts = ["http://x/y"]', "NAME or NAME:PORT"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)


def test_a_folder_on_the_path_that_may_not_be_entered_is_left_out(tmp_path: Path) -> None:
    """As root's own are for a user who became one with ``su``; root may enter every folder."""
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    code = (
        "import os, pathlib; from cockpit.act.sandbox.visible_places import readable_places\n"
        "os.geteuid() or os.seteuid(65534)\n"
        f"print([str(p) for p in readable_places(pathlib.Path('/srv'), {{'PATH': '{closed}/bin:/usr/bin'}})])"
    )
    closed.chmod(0)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    closed.chmod(0o700)
    assert (done.stderr, str(closed) in done.stdout) == ("", False)
