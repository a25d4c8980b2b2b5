"""``cockpit skills``, and skills in sessions that the command line runs."""

from __future__ import annotations

import zipfile

import pytest
from cli_world import Project
from state_for_tests import ASK_TRUST, LOAD_SKILLS

pytestmark = pytest.mark.slow

STEP = """
[[turn]]
text = "Done."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""
TEA = "---\nname: tea\ndescription: Brew tea. Use when guests come.\n---\n# Tea\n\n1. Boil water.\n"


@pytest.fixture
def loading(project: Project) -> Project:
    """A project whose sessions load skills, and ask for trust."""
    project.extra |= LOAD_SKILLS | ASK_TRUST
    return project


def write_tea(project: Project) -> None:
    folder = project.root / ".cockpit" / "skills" / "tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEA)


def test_a_project_s_skill_needs_trust_and_replaces(loading: Project) -> None:
    write_tea(loading)
    path = loading.root / ".cockpit" / "skills" / "git"
    path.mkdir()
    (path / "SKILL.md").write_text(TEA.replace("tea", "git"))
    listed = loading.run("skills", "list")
    assert "tea/SKILL.md is not trusted" in listed.stderr
    assert "replaces" not in listed.stdout
    loading.run("trust", "--yes")
    listed = loading.run("skills", "list")
    assert "project, replaces built-in" in listed.stdout
    assert "tea" in listed.stdout


def test_install_copies_what_it_showed(loading: Project) -> None:
    archive = loading.root / "tea.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("tea/SKILL.md", TEA)
        made.writestr("tea/scripts/go.sh", "touch ran\n")
    assert "Pass --yes" in loading.run("skills", "install", "tea.zip", expect=2).stderr
    done = loading.run("skills", "install", "tea.zip", "--yes")
    assert "Boil water" in done.stdout
    assert (loading.config / "skills" / "tea" / "scripts" / "go.sh").is_file()
    assert (
        "is there already" in loading.run("skills", "install", "tea.zip", "--yes", expect=1).stderr
    )
    loading.run("skills", "install", "tea.zip", "--project", "--yes")
    body = loading.json("skills", "list", "--json")
    assert body["untrusted"] == []
    assert [(each["layer"], each["by"]) for each in body["replaced"]] == [("user", "project")]
    assert not (loading.root / "ran").exists()
    loading.extra["COCKPIT_TOKEN"] = "cap-1"
    refused = loading.run("skills", "install", "tea.zip", "--yes", expect=2)
    assert "Only you can install a skill" in refused.stderr


def test_a_session_loads_what_its_task_needs_and_says_why(loading: Project) -> None:
    body = loading.json("skills", "list", "--json")
    assert [each["name"] for each in body["skills"]][:2] == ["api-design", "code-review"]
    (first, *_) = loading.json("skills", "list", "--for", "Fix the traceback", "--json")
    assert (first["name"], first["how"], first["loaded"]) == ("debugging", "match", True)
    (first, *_) = loading.json("skills", "list", "--for", "which branch is stale?", "--json")
    assert (first["name"], first["loaded"]) == ("git", False) and first["tokens"] < 100
    assert "This task needs no skill." in loading.run("skills", "list", "--for", "hi there").stderr
    shown = loading.run("skills", "show", "git", "--for", "squash the commits").stdout
    assert "(commits, squash)" in shown and "# Git" in shown
    words = ("/git squash the commits, they crash", "--model", loading.script(STEP))
    loading.run("run", *words, "--max-waves", "2")
    assert "skill git: you mentioned it" in loading.run("sessions", "show").stdout
    assert "skill:git" in loading.run("packet", "explain").stdout
    loading.run("skills", "unload", "git")
    loading.run("skills", "load", "api-design")
    refused = loading.run("skills", "load", "nonsense", expect=2)
    assert "`cockpit skills list` lists them" in refused.stderr


def test_check_ends_with_1_on_an_error_alone(loading: Project) -> None:
    assert "ok     git" in loading.run("skills", "check").stdout
    # As a skill of another agent it is used as it is.
    folder = loading.config.parent / "home" / ".claude" / "skills" / "long"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEA.replace("tea", "long") + "- line\n" * 80)
    assert "warning: The core has 83 lines" in loading.run("skills", "check").stdout
    loading.run("skills", "check", "--strict", expect=1)
    assert loading.json("skills", "show", "long", "--json")["core"].count("- line") == 80
    (folder / "SKILL.md").write_text(TEA.replace("tea", "long") + "\n\n- a long line of it\n" * 800)
    shown = loading.json("skills", "show", "long", "--json")
    assert shown["shortened"] and "skill:long/SKILL.md:" in shown["core"]
