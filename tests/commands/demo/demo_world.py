"""Samples made once for many tests, and ways to look into them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from state_for_tests import kept_variables

MAIN = "582795e1016cd833ff7e35dff813b00fa50df9cb"
BRANCH = "9eb58d336b957220963730f8269afcdba9294356"
NAME = "feature/retry-backoff"
PATIENCE_S = 120


def git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def bare_environment(home: Path, **extra: str) -> dict[str, str]:
    """An environment in which nobody has told git or cockpit anything."""
    home.mkdir(parents=True, exist_ok=True)
    kept = kept_variables()
    config = home / "cockpit"
    return {**kept, "HOME": str(home), "COCKPIT_CONFIG_DIR": str(config), **extra}
