"""A small project to serve."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mcp_world import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    (root / "shapes.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return Project(root)
