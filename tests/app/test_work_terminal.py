"""A task written in the user's own editor, in a real terminal."""

from __future__ import annotations

import sys

import pytest
from app_terminal import Terminal

from cockpit.core.project_paths import locate_project
from cockpit.store.backlog import tasks
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


def test_a_task_is_written_in_the_editor(project, tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        "print('THE EDITOR', flush=True)\n"
        "text = file.read_text().replace('title = \"\"', 'title = \"Rotate the key\"')\n"
        "text = text.replace('type = \"feature\"', 'type = \"chore\"')\n"
        "text = text.replace('estimate_hours = \"\"', 'estimate_hours = 2.5')\n"
        "head, _, tail = text.rpartition('+++ Done when')\n"
        "file.write_text(head.rstrip() + '\\nEvery month.\\n\\n+++ Done when' + tail + 'it ran\\n')\n"
    )
    env = {
        "EDITOR": f"{sys.executable} {editor}",
        "COCKPIT_CONFIG_DIR": str(tmp_path / "user"),
        "COCKPIT_MODEL": "offline",
    }
    with Terminal(cwd=project, env=env) as terminal:
        terminal.until("ype a task:")
        terminal.press(b"\x14")
        at = terminal.until("No tasks yet")
        terminal.press(b"n")
        terminal.until("New task", after=at)
        terminal.press(b"\x07")
        at = terminal.until("THE EDITOR")
        terminal.until("Rotate the key", after=at)
        terminal.press(b"\x13")
        terminal.until("T-1", after=at)
        terminal.press(b"\x14")
        terminal.pause()
        terminal.press(b"\x04")
        assert terminal.ends() == 0
    with Store.open(locate_project(project).database) as store:
        made = store.read_now(lambda connection: tasks.load(connection, "T-1"))
    assert (made.title, made.task_type, made.estimate_hours) == ("Rotate the key", "chore", 2.5)
    assert (made.description, made.acceptance_criteria) == ("Every month.", "it ran")
