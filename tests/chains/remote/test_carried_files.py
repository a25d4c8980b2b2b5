"""Task types and roles of the coordinator's project on a worker: those that its user trusts, no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tasks.taskrun_world import git, repository

from cockpit.chains.remote.carried_files import read_carried, write_carried
from cockpit.chains.remote.message_types import MessageInvalid
from cockpit.core.project import project_trust
from cockpit.core.project.project_trust import list_untrusted, trust_file
from cockpit.core.project_paths import ProjectPaths, locate_project

SURVEY = '+++\nname = "survey"\ndod = ["Every adder was counted."]\n+++\n'


def place_at(root: Path) -> ProjectPaths:
    place = locate_project(root)
    place.prepare()
    return place


def test_only_what_the_user_trusts_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(project_trust, "REQUIRED", True)
    place = place_at(repository(tmp_path))
    for name in ("task-types/survey.md", "task-types/other.md", "config.toml"):
        path = place.home / ".cockpit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SURVEY)
    assert read_carried(place.home) == {}
    for name in ("task-types/survey.md", "config.toml"):
        trust_file(place, place.home / ".cockpit" / name, SURVEY.encode())
    assert read_carried(place.home) == {"task-types/survey.md": SURVEY}
    git(tmp_path, "clone", "--quiet", str(place.home), "clone")
    clone = place_at(tmp_path / "clone")
    (clone.home / ".cockpit" / "roles").mkdir(parents=True)
    (clone.home / ".cockpit" / "roles" / "evil.md").write_text("of the repository")
    write_carried(clone, read_carried(place.home))
    assert (clone.home / ".cockpit" / "task-types" / "survey.md").read_text() == SURVEY
    assert [file.name for file in list_untrusted(clone.home)] == ["roles/evil.md"]


@pytest.mark.parametrize(
    "name", ["../out.md", "task-types/../../out.md", "config.toml", "/etc/x.md", "roles/.md"]
)
def test_a_name_from_elsewhere_is_refused(tmp_path: Path, name: str):
    place = place_at(repository(tmp_path))
    with pytest.raises(MessageInvalid):
        write_carried(place, {name: "x"})


@pytest.mark.parametrize("link", [".cockpit", ".cockpit/roles", ".cockpit/roles/mine.md"])
def test_nothing_is_written_through_a_link(tmp_path: Path, link: str):
    place = place_at(repository(tmp_path))
    outside = tmp_path / "outside"
    (outside / "roles").mkdir(parents=True)
    target = outside / "mine.md"
    target.write_text("the user's")
    at = place.home / link
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(target if link.endswith(".md") else outside)
    if link.endswith(".md"):
        write_carried(place, {"roles/mine.md": "x"})
        assert at.read_text() == "x" and not at.is_symlink()
    else:
        with pytest.raises(MessageInvalid, match="link"):
            write_carried(place, {"roles/mine.md": "x"})
    assert target.read_text() == "the user's"
    assert not (outside / "roles" / "mine.md").exists()
