"""``cockpit`` run in a folder as a person runs it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import run_cockpit
from state_for_tests import kept_variables

PATIENCE_S = 90


@dataclass(frozen=True)
class Project:
    """A folder in which ``cockpit`` runs as a person runs it."""

    root: Path

    def run(
        self, *words: str, expect: int = 0, stdin: str = "", **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``cockpit`` to its end, which must be ``expect``."""
        kept = kept_variables()
        home = str(self.root.parent / "home")
        env = {**kept, "HOME": home, "COCKPIT_CONFIG_DIR": f"{home}/config", **extra}
        done = run_cockpit.run(words, cwd=self.root, env=env, stdin=stdin, patience_s=PATIENCE_S)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done
