"""A state folder that no other test uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.state_folder import VARIABLE


@pytest.fixture
def user_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of a user with no projects yet."""
    folder = tmp_path / "user-state"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder
