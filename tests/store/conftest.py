"""Stores of these tests are migrated in full."""

from __future__ import annotations

from collections.abc import Iterator

import new_stores
import pytest


@pytest.fixture(autouse=True)
def no_copies() -> Iterator[None]:
    new_stores.uninstall()
    yield
    new_stores.install()
