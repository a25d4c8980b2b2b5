"""What every run of pytest loads, for the warm server to load before it forks such runs."""

from __future__ import annotations

import importlib
import pkgutil

import _pytest
import pytest


def load_pytest() -> None:
    """Import pytest with all of its own plugins."""
    assert pytest.main
    for module in pkgutil.walk_packages(_pytest.__path__, "_pytest."):
        importlib.import_module(module.name)
