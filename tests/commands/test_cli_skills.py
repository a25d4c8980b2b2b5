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
    listed = loading.run("skills")
    assert "tea/SKILL.md is not trusted" in listed.stderr
    assert "replaces" not in listed.stdout
    loading.run("trust", "--yes")
    listed = loading.run("skills")
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
    (tea,) = [each for each in loading.json("skills", "--json") if each["name"] == "tea"]
    assert (tea["layer"], tea["replaces"]) == ("project", "user")
    assert not (loading.root / "ran").exists()
    loading.extra["COCKPIT_TOKEN"] = "cap-1"
    refused = loading.run("skills", "install", "tea.zip", "--yes", expect=2)
    assert "Only you can install a skill" in refused.stderr


def test_a_session_loads_what_its_task_needs_and_says_why(loading: Project) -> None:
    rows = loading.json("skills", "--json")
    assert [each["name"] for each in rows][:2] == ["api-design", "code-review"]
    (first, *_) = loading.json("skills", "--for", "Fix the traceback", "--json")
    assert (first["name"], first["state"]) == ("debugging", "loaded")
    (first, *_) = loading.json("skills", "--for", "which branch is stale?", "--json")
    assert (first["name"], first["state"], first["tokens"]) == ("git", "named", 0)
    assert "This task needs no skill." in loading.run("skills", "--for", "hi there").stderr
    assert "# Git" in loading.run("skills", "git").stdout
    near = loading.run("skills", "gti", expect=2).stderr
    assert "There is no skill 'gti'. Did you mean git?" in near
    words = ("/git squash the commits, they crash", "--model", loading.script(STEP))
    loading.run("run", *words, "--max-waves", "2")
    assert "skill git: you mentioned it" in loading.run("sessions", "last").stdout
    assert "skill:git" in loading.run("debug", "packet", "explain").stdout
    loading.run("skills", "load", "git", "--off")
    loading.run("skills", "load", "api-design")
    refused = loading.run("skills", "load", "nonsense", expect=2)
    assert "There is no skill 'nonsense'" in refused.stderr


def test_what_is_wrong_with_a_skill_is_shown(loading: Project) -> None:
    # As a skill of another agent it is used as it is.
    folder = loading.config.parent / "home" / ".claude" / "skills" / "long"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEA.replace("tea", "long") + "- line\n" * 80)
    assert "warning  The core has 83 lines" in loading.run("skills", "long").stdout
    assert loading.json("skills", "long", "--json")["core"].count("- line") == 80
    (folder / "SKILL.md").write_text(TEA.replace("tea", "long") + "\n\n- a long line of it\n" * 800)
    shown = loading.json("skills", "long", "--json")
    assert shown["shortened"] and "skill:long/SKILL.md:" in shown["core"]
