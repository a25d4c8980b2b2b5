"""What the tests of widgets share."""

from __future__ import annotations

from typing import Any

import pytest
from stage import staged


@pytest.fixture(scope="session")
def stage() -> Any:
    """The context manager that puts widgets on a screen."""
    return staged
