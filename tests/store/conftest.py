"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator

import new_stores
import pytest


@pytest.fixture
def migrated_in_full() -> Iterator[None]:
    """Let stores of the test be opened as those of a user are: migrated, and safe on the disk."""
    new_stores.uninstall()
    yield
    new_stores.install()
