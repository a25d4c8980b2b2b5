"""Real git repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+01:00",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+01:00",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Project:
    """A directory that is worked on with git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def git(self, *args: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            env=ENV,
            input=stdin.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    def git_init(self) -> Project:
        self.git("init", "-q", "-b", "main")
        return self

    def write(self, path: str, content: str | bytes) -> Project:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()
