"""The way from project to project: one that is on it already is gone back to."""

from __future__ import annotations

from pathlib import Path

from cockpit.app.all_projects.jump import Jump
from cockpit.commands.sessions.switch_projects import _go, _Stop

ALL = _Stop(None)
API, WEB = Path("/work/api"), Path("/work/web")


def test_a_project_is_added_to_the_way_or_gone_back_to() -> None:
    stops = [ALL]
    _go(stops, Jump(API, "api-1", "s-1", resumes=True))
    assert stops == [ALL, _Stop(API, "s-1", True)]
    _go(stops, Jump(WEB, "web-1"))
    assert stops == [ALL, _Stop(API, "s-1", True), _Stop(WEB)]
    _go(stops, Jump(API, "api-1"))
    assert stops == [ALL, _Stop(API, "s-1", True)], "with the session that was followed there"
    _go(stops, Jump(WEB, "web-1", "s-2"))
    _go(stops, Jump(API, "api-1", "s-3"))
    assert stops == [ALL, _Stop(API, "s-3")], "the session of the proposal is followed, not driven"
