"""A small project to serve."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_world import Project, small
from sandbox_here import CONFINES

collect_ignore = [] if CONFINES else ["test_mcp_own_tools.py"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return small(tmp_path)
