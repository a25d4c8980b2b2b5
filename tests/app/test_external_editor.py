"""The user's editor and the draft on disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from cockpit.app import external_editor
from cockpit.app.prompt_draft import Draft
from cockpit.core.processes import process_name
from cockpit.core.project_paths import locate_project


@pytest.fixture
def write(tmp_path):
    """An editor that runs Python over the file's path."""

    def make(code):
        path = tmp_path / "editor.py"
        path.write_text(f"import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n{code}\n")
        return [sys.executable, str(path)]

    return make


def test_the_editor_is_the_persons():
    assert external_editor.editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == [
        "code",
        "--wait",
    ]
    assert external_editor.editor_command({"EDITOR": "nano"}) == ["nano"]
    assert external_editor.editor_command({"VISUAL": " "}) == ["vi"]
    with pytest.raises(external_editor.EditorFailed, match=r"Cannot read \$EDITOR"):
        external_editor.editor_command({"EDITOR": "vi 'x"})


def test_what_was_saved_comes_back(write):
    argv = write("file.write_text(file.read_text().upper() + '\\n')")
    assert external_editor.edit_text("two\nlines", argv=argv) == "TWO\nLINES"
    assert external_editor.edit_text("two\nlines\n", argv=argv) == "TWO\nLINES\n\n"


def test_the_file_is_private_named_for_what_it_is_and_gone_after(write, tmp_path):
    argv = write(f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text(str(file) + ' ' + "
                 "oct(file.stat().st_mode & 0o777))")  # fmt: skip
    external_editor.edit_text("x", argv=argv, suffix=".py")
    name, mode = (tmp_path / "seen").read_text().split()
    assert name.endswith(".py")
    assert mode == "0o600"
    assert not (tmp_path / name).exists()


def test_an_editor_that_fails_says_so(write):
    with pytest.raises(external_editor.EditorFailed, match="exited with code 3; nothing changed"):
        external_editor.edit_text("x", argv=write("sys.exit(3)"))
    with pytest.raises(external_editor.EditorFailed, match="does not start"):
        external_editor.edit_text("x", argv=["no-such-editor-anywhere"])


def test_a_draft_is_kept_privately_and_taken_away(project):
    place = locate_project(project)
    place.prepare()
    draft = Draft(place)
    assert draft.text == ""
    draft.text = "half\na thought ☕"
    draft.save()
    (path,) = place.state.glob("draft-*.txt")
    assert path.read_text() == Draft(place).text == "half\na thought ☕"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    draft.text = ""
    draft.save()
    assert list(place.state.glob("draft*")) == []


def test_a_draft_belongs_to_its_screen_until_that_ended(project):
    place = locate_project(project)
    place.prepare()
    with subprocess.Popen(["sleep", "60"]) as other:
        path = place.state / f"draft-{process_name(other.pid).replace('/', '-')}.txt"
        path.write_text("words of another window")
        assert Draft(place).text == ""
        assert Draft(place).take_left() == ""
        other.kill()
    assert Draft(place).take_left() != ""
    assert Draft(place).load_stash() == ["words of another window"]
    assert not path.exists()


def test_a_draft_does_not_follow_links(project, tmp_path):
    place = locate_project(project)
    place.prepare()
    target = tmp_path / "target"
    target.write_text("mine")
    draft = Draft(place)
    draft._path.with_suffix(f".{os.getpid()}.new").symlink_to(target)
    draft.text = "words"
    with pytest.raises(OSError):
        draft.save()
    assert target.read_text() == "mine"
