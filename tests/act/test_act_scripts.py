"""What a command names and runs is shown, and runs only as it was shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cockpit.access.confined_paths import Confined
from cockpit.act.adapters.run_command import CommandAdapter
from cockpit.act.named_scripts import find_scripts
from cockpit.act.preview_command import preview_run
from cockpit.act.preview_files import preview_edit, preview_write
from cockpit.act.text_edits import ActionRefused
from cockpit.act.tool_payloads import EditFile, Run, WriteFile
from cockpit.act.workspace import Workspace, open_workspace

NAMED = [
    ("sh build.sh", ["build.sh"]),
    ("env A=1 timeout 5 sh build.sh", ["build.sh"]),
    ("sh -c 'cd sub && sh x.sh'", ["sub/x.sh"]),
    ("sh -c 'sh build.sh; ./run'", ["build.sh", "run"]),
    ("./run", ["run"]),
    ("make all", ["Makefile"]),
    ("make -C sub", ["sub/Makefile"]),
    ("npm run x", ["package.json"]),
    ("python tool.py --all", ["tool.py"]),
    ("uv run python tool.py", ["tool.py"]),
    ("python link.py", ["link.py"]),
    ("python -c 'print(1)'", []),
    ("pytest -q", []),
]


@pytest.fixture
async def ground(tmp_path: Path) -> Workspace:
    """A project with scripts of each kind."""
    root = tmp_path / "shop"
    (root / "sub").mkdir(parents=True)
    names = ("build.sh", "sub/x.sh", "run", "Makefile", "sub/Makefile", "other.mk", "package.json")
    for name in (*names, "tool.py"):
        (root / name).write_text(f"first of {name}\necho done\n", encoding="utf-8")
    (root / "run").chmod(0o755)
    (root / "link.py").symlink_to("tool.py")
    return await open_workspace(root)


@pytest.mark.parametrize(("line", "names"), NAMED)
async def test_the_files_that_a_command_runs_are_shown(ground, line, names):
    preview = preview_run(Run(tuple(shlex.split(line)), "because", 60), ground)
    shown = [
        value.split(",")[0].split(" ")[0] for name, value in preview.fields if name == "script"
    ]
    assert shown == names
    for name in names:
        assert f"first of {'tool.py' if name == 'link.py' else name}" in preview.body
    pinned = [pin["path"] for pin in preview.payload.get("scripts", []) if pin["sha256"]]
    assert pinned == names
    if "link.py" in names:
        assert preview.payload["scripts"][0]["real"] == "tool.py"


def _edit(root: Path) -> None:
    (root / "build.sh").write_text("touch ran\n", encoding="utf-8")


def _remove(root: Path) -> None:
    (root / "build.sh").unlink()


def _link(root: Path) -> None:
    (root / "same.sh").write_bytes((root / "build.sh").read_bytes())
    (root / "build.sh").unlink()
    (root / "build.sh").symlink_to("same.sh")


@pytest.mark.parametrize("change", [_edit, _remove, _link])
async def test_a_changed_script_does_not_run(ground, change):
    (ground.root / "build.sh").write_text("echo shown\n", encoding="utf-8")
    preview = preview_run(Run(("sh", "build.sh"), "because", 60), ground)
    change(ground.root)
    outcome = await CommandAdapter().perform(preview.payload, "key", ground)
    assert outcome.status == "failure" and "since it was shown" in outcome.summary
    assert not (ground.root / "ran").exists()


async def test_a_script_that_appears_after_it_was_shown_does_not_run(ground: Workspace) -> None:
    preview = preview_run(Run(("make",), "because", 60), ground)
    (ground.root / "GNUmakefile").write_text("all:\n\ttouch ran\n", encoding="utf-8")
    outcome = await CommandAdapter().perform(preview.payload, "key", ground)
    assert "was not there when it was shown" in outcome.summary
    assert not (ground.root / "ran").exists()


async def test_an_unchanged_script_runs(ground: Workspace) -> None:
    (ground.root / "build.sh").write_text("echo shown\n", encoding="utf-8")
    preview = preview_run(Run(("sh", "build.sh"), "because", 60), ground)
    outcome = await CommandAdapter().perform(preview.payload, "key", ground)
    assert outcome.status == "success", outcome


def test_a_mask_never_replaces_a_secret_of_a_file_that_quotes_one(ground: Workspace) -> None:
    (ground.root / "a.py").write_text("# [masked:secret]\nKEY = 'abc'\n", encoding="utf-8")
    more = "# [masked:secret]\nKEY = '[masked:secret]'\n"
    with pytest.raises(ActionRefused, match="in place of a possible secret"):
        preview_write(WriteFile("a.py", more), ground)
    with pytest.raises(ActionRefused, match="in place of a possible secret"):
        preview_edit(EditFile("a.py", "'abc'", "'[masked:secret]'"), ground)
    preview_edit(EditFile("a.py", "# [masked:secret]", "# still [masked:secret]"), ground)


def test_a_long_script_shows_its_beginning_and_no_secrets(tmp_path: Path) -> None:
    token = "ghp_" + "aB3dE5gH" * 5
    (tmp_path / "a.sh").write_text(f"TOKEN={token}\n" + "echo x\n" * 200, encoding="utf-8")
    (script,) = find_scripts(("sh", "a.sh"), Confined(tmp_path)).present
    assert "161 more lines" in script.excerpt() and token not in script.excerpt()
    assert "201 lines" in script.describe()
