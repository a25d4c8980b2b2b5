"""A shared repository that cannot be reached for a while, or by one machine alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tasks.taskrun_world import git, repository

from cockpit.chains.remote.shared_repository import TRIES, ask_shared
from cockpit.core.clock import FixedClock
from cockpit.tasks.git import WorktreeError


class Waits(FixedClock):
    """Counts waits; the repository is there again after some."""

    def __init__(self, away: Path, place: Path, after: int) -> None:
        super().__init__()
        self._away, self._place, self._after = away, place, after
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if len(self.waits) == self._after:
            self._away.rename(self._place)


async def test_a_repository_that_comes_back_is_asked_again(tmp_path: Path):
    root = repository(tmp_path)
    place, away = tmp_path / "shared.git", tmp_path / "away.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(root), str(away))
    clock = Waits(away, place, after=2)
    push = ("push", "--quiet", str(place), "HEAD:refs/heads/made")
    await ask_shared(clock, root, *push)
    assert clock.waits == [1.0, 2.0]
    assert git(place, "rev-parse", "made") == git(root, "rev-parse", "HEAD")
    # What git refuses is not asked again.
    git(root, "commit", "--quiet", "--amend", "--allow-empty", "-m", "Another one")
    with pytest.raises(WorktreeError, match="failed to push"):
        await ask_shared(clock, root, *push)
    assert len(clock.waits) == 2
    place.rename(away)
    clock.waits = [0.0] * 10
    with pytest.raises(WorktreeError):
        await ask_shared(clock, root, *push)
    assert len(clock.waits) == 10 + TRIES - 1
