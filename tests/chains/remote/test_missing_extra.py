"""Without the package of NATS no chain starts whose tasks other machines would do."""

from __future__ import annotations

import sys

import pytest

from cockpit.chains.remote.jetstream_queue import QueueUnreachable
from cockpit.commands.chains.work_on_task import check_prerequisites
from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project


def test_a_missing_extra_is_named_before_a_chain_starts(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.toml").write_text('[scale]\nserver = "nats://127.0.0.1:4222"\n')
    settings = load_settings(tmp_path, env={"COCKPIT_CONFIG_DIR": str(tmp_path / "mine")})
    check_prerequisites(settings, locate_project(tmp_path), None, needs_model=False)
    monkeypatch.setitem(sys.modules, "nats", None)  # what Python makes of a package that is absent
    with pytest.raises(QueueUnreachable, match="doctor --install nats"):
        check_prerequisites(settings, locate_project(tmp_path), None, needs_model=False)
