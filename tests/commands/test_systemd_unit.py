"""``cockpit serve --systemd``: systemd accepts the unit, also for odd paths, and it holds no secret."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_world import Project

from cockpit.commands.open_project import WrongUse
from cockpit.commands.servers.systemd_unit import systemd_unit


def verify(unit: str, folder: Path) -> None:
    """Let systemd read the unit, where it is installed."""
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit)
    assert set(parsed.sections()) == {"Unit", "Service", "Install"}
    assert parsed["Service"]["ExecStart"].startswith('"/')
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    file = folder / "cockpit-test.service"
    file.write_text(unit, encoding="utf-8")
    ended = subprocess.run(
        [program, "--user", "verify", "--recursive-errors=no", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder)},
    )
    about_ours = [line for line in ended.stderr.splitlines() if "cockpit-test" in line]
    assert about_ours == [], ended.stderr


def test_odd_paths_stay_what_they_are(tmp_path: Path) -> None:
    folder = tmp_path / 'my "%n" $HOME \\ project'
    folder.mkdir()
    unit = systemd_unit(folder, ["--host", "::1"], {"COCKPIT_STATE_DIR": '/x "%h" y'})
    assert f"WorkingDirectory={str(folder).replace('%', '%%')}\n" in unit
    assert 'Environment="COCKPIT_STATE_DIR=/x \\"%%h\\" y"' in unit
    verify(unit, tmp_path)
    with pytest.raises(WrongUse):
        systemd_unit(tmp_path / "a\nExecStartPre=evil", [], {})


def test_the_unit_serves_this_project(project: Project, tmp_path: Path) -> None:
    project.extra["COCKPIT_TOKEN"] = "never-in-a-unit"
    unit = project.run("serve", "--port", "9000", "--systemd").stdout
    assert "never-in-a-unit" not in unit
    assert f"WorkingDirectory={project.root}\n" in unit
    assert f'Environment="COCKPIT_CONFIG_DIR={project.config}"' in unit
    assert unit.count('"serve" "--port" "9000"') == 1
    verify(unit, tmp_path)
