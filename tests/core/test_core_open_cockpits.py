"""Sockets of open cockpits: for the user alone."""

from __future__ import annotations

import stat
from pathlib import Path

from cockpit.core import open_cockpits


def test_nobody_else_asks_an_open_cockpit(tmp_path: Path) -> None:
    folder = tmp_path / open_cockpits.FOLDER
    folder.mkdir()
    folder.chmod(0o777)  # by a version, or a user, that did not know better
    listener, path = open_cockpits.listen(str(tmp_path))
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    finally:
        open_cockpits.stop_listening(listener, path)
    assert open_cockpits.list_sockets(str(tmp_path)) == []
