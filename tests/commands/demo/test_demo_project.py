"""The sample project: the same commits everywhere, a bug on main, a branch worth a review."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands.demo.demo_world import BRANCH, MAIN, NAME, bare_environment, git

from cockpit.commands.demo.sample_project import Sample, SampleFailed, make_sample

pytestmark = pytest.mark.slow


def test_commit_ids_do_not_depend_on_the_person(tmp_path: Path) -> None:
    template = tmp_path / "template"
    hook = template / "hooks" / "commit-msg"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\necho touched >> $1\n")
    hook.chmod(0o755)
    home = tmp_path / "home"
    env = bare_environment(
        home, TZ="Asia/Tokyo", GIT_AUTHOR_NAME="Somebody", GIT_DEFAULT_HASH="sha256"
    )
    (home / ".gitconfig").write_text(
        f"[user]\nname = Me\n[commit]\ngpgsign = true\n[core]\nautocrlf = true\n"
        f"[init]\ntemplateDir = {template}\ndefaultBranch = trunk\n"
        f"[am]\nthreeWay = true\n[format]\nsignOff = true\n"
    )
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from cockpit.commands.demo.sample_project import make_sample\n"
        "asyncio.run(make_sample(Path(sys.argv[1])))"
    )
    root = tmp_path / "a place with spaces"
    subprocess.run([sys.executable, "-c", code, str(root)], env=env, check=True, timeout=60)
    assert git(root, "rev-parse", "main", NAME).splitlines() == [MAIN, BRANCH]
    assert not (root / ".git" / "hooks").exists()


async def test_main_is_checked_out_clean_in_an_empty_folder(sample: Sample, tmp_path: Path) -> None:
    assert (sample.main, sample.branch) == (MAIN, NAME)
    assert git(sample.root, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(sample.root, "status", "--porcelain") == ""
    assert git(sample.root, "fsck", "--strict") == ""
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path, "is not empty"),
        (tmp_path / "file", "another folder with --dir"),
    ):
        with pytest.raises(SampleFailed, match=words):
            await make_sample(path)
