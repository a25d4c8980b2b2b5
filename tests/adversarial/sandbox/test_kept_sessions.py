"""Sessions of an agent in the sandbox are kept for its next run: no link in its home brings more along."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.agents.confine.copy_sessions import copy_sessions

SECRET = "the user's own"
NAMES = ("data/sessions", "data/agent.db")
MOST = 10_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An agent's home with sessions, beside a folder of the user's that has what the agent wants."""
    (tmp_path / "user" / "sessions").mkdir(parents=True)
    (tmp_path / "user" / "sessions" / "key").write_text(SECRET)
    (tmp_path / "user" / "agent.db").write_text(SECRET)
    home = tmp_path / "home"
    (home / "data" / "sessions" / "deep").mkdir(parents=True)
    (home / "data" / "sessions" / "one.jsonl").write_text("one\n")
    (home / "data" / "sessions" / "deep" / "two.jsonl").write_text("two\n")
    (home / "data" / "agent.db").write_text("rows")
    return home


def kept(home: Path) -> dict[str, str]:
    """Copy the sessions; returns each file that was kept with its text."""
    target = home.parent / "kept"
    copy_sessions(NAMES, home, target, MOST)
    return {str(each.relative_to(target)): each.read_text() for each in target.rglob("*.*")}


def test_sessions_are_kept_and_replaced(home: Path) -> None:
    both = {"data/sessions/one.jsonl": "one\n", "data/sessions/deep/two.jsonl": "two\n"}
    assert kept(home) == {**both, "data/agent.db": "rows"}
    (home / "data" / "sessions" / "one.jsonl").unlink()
    (home / "data" / "agent.db").unlink()
    assert kept(home) == {"data/sessions/deep/two.jsonl": "two\n"}
    (home / "data" / "sessions" / "large.jsonl").write_text("x" * (MOST + 1))
    assert kept(home) == {}, "a part of a session is none"


@pytest.mark.parametrize("name", ["data", "data/sessions", "data/agent.db"])
def test_a_link_in_place_of_what_is_kept_is_not_followed(home: Path, name: str) -> None:
    (home / name).rename(home / "aside")
    user = home.parent / "user"
    (home / name).symlink_to(user if name == "data" else user / name.removeprefix("data/"))
    assert SECRET not in kept(home).values()


def test_links_pipes_and_depth_inside_are_left_out(home: Path) -> None:
    inside = home / "data" / "sessions"
    (inside / "link.jsonl").symlink_to(home.parent / "user" / "agent.db")
    (inside / "folder.d").symlink_to(home.parent / "user" / "sessions")
    os.mkfifo(inside / "pipe.jsonl")
    deep = inside
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "far.jsonl").write_text("far\n")
    files = kept(home)
    assert set(files) == {
        "data/sessions/one.jsonl",
        "data/sessions/deep/two.jsonl",
        "data/agent.db",
    }
    assert SECRET not in files.values()
