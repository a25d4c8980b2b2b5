"""The sample project: the same commits everywhere, a bug on main, a branch worth a review."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands.demo.demo_world import BRANCH, MAIN, NAME, bare_environment, git, unittest

from cockpit.commands.demo.sample_project import Sample, SampleFailed, make_sample


def price(root: Path, weight: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-m", "parcel", "price", weight],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
    )


async def test_main_is_checked_out_clean(sample: Sample) -> None:
    assert (sample.main, sample.branch) == (MAIN, NAME)
    assert git(sample.root, "rev-parse", "HEAD") == MAIN
    assert git(sample.root, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(sample.root, "status", "--porcelain") == ""
    assert git(sample.root, "fsck", "--strict") == ""


async def test_every_shipped_file_is_committed(sample: Sample) -> None:
    shipped = Path(__file__).parents[3] / "cockpit" / "data" / "demo" / "project"
    there = {
        "/".join(part.replace("dot-", ".") for part in path.relative_to(shipped).parts)
        for path in shipped.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(git(sample.root, "ls-files").splitlines()) == there


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


async def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SampleFailed, match="is not empty"):
        await make_sample(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


async def test_a_file_in_its_place_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SampleFailed, match="Name another folder with --dir"):
        await make_sample(tmp_path / "file")


async def test_the_bug_is_there_and_no_test_sees_it(sample: Sample) -> None:
    ran = unittest(sample.root)
    assert ran.returncode == 0, ran.stderr
    assert "Ran 26 tests" in ran.stderr
    assert price(sample.root, "1.9kg").stdout == "5.49 EUR\n"
    assert price(sample.root, "2kg").stdout == "6.99 EUR\n"
    assert price(sample.root, "20kg").returncode == 1


async def test_the_branch_has_real_faults_that_its_tests_do_not_see(sample: Sample) -> None:
    git(sample.root, "checkout", "--quiet", NAME)
    ran = unittest(sample.root)
    assert ran.returncode == 0, ran.stderr
    track = subprocess.run(
        [sys.executable, "-B", "-m", "parcel", "track", "P-1", "--carrier", "http://[::1]:9"],
        cwd=sample.root,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "has no attribute 'status'" in track.stderr
    shared = (
        "from parcel.client import Client, CarrierDown\n"
        "waited = []\n"
        "client = Client('http://x', transport=lambda url: 1 / 0, sleep=waited.append)\n"
        "for _ in range(2):\n"
        "    try: client.events('P-1')\n"
        "    except CarrierDown: pass\n"
        "print(len(waited))"
    )
    second = subprocess.run(
        [sys.executable, "-B", "-c", shared], cwd=sample.root, capture_output=True, text=True
    )
    assert second.stdout == "3\n", "the default list is used up by the first outage"
    assert "test_an_unknown_number" not in (sample.root / "tests" / "test_client.py").read_text()
