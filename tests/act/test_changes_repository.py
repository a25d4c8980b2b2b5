"""Which commands get a view of the repository, because they change it."""

from __future__ import annotations

import pytest

from cockpit.act.sandbox.git_view import changes_repository


@pytest.mark.parametrize(
    ("argv", "changes"),
    [
        (("git", "add", "x"), True),
        (("git", "-C", "sub", "commit", "-m", "x"), True),
        (("sh", "-c", "make && git stash"), True),
        (("git", "status"), False),
        (("git", "rebase", "main"), False),
        (("sh", "-c", "git add x; git rebase main"), False),
        (("git", "stash", "pop"), False),
        (("make", "commit"), False),
    ],
)
def test_which_commands_get_a_view(argv: tuple[str, ...], changes: bool) -> None:
    assert changes_repository(argv) is changes
