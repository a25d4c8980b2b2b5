"""A project that tries to make every read run or write something, and the table of commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("commands.txt")
_NEWLINE = re.compile(r"(?<!%s)\\n")
_IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
_TRAP = '#!/bin/sh\necho ran >> "$(dirname "$0")/../ran"\n'


@dataclass(frozen=True)
class Row:
    """A command and whether it is a read."""

    is_read: bool
    command: str
    why: str


def rows() -> Iterator[Row]:
    """Yield the rows of the table."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("# "):
            verdict, rest = line.split(" | ", 1)
            command, why = rest.rsplit(" | ", 1)
            yield Row({"read": True, "no": False}[verdict], _NEWLINE.sub("\n", command), why)


def make_project(top: Path) -> tuple[Path, str]:
    """Make the project ``top/shop`` and return it with the ``PATH`` to judge with."""
    shop = top / "shop"
    for folder in ("src/sub", "config", "bin"):
        (shop / folder).mkdir(parents=True)
    files = {
        "README.md": "# Shop\n\na shop with abc\n\nlast\n",
        "package.json": '{"scripts": {"test": "touch ran"}}\n',
        "src/a.py": "def main():\n    x = 1\n    return x\n",
        "src/b.py": "import a\n",
        "src/data.csv": "a,1\nb,2\n",
        ".env": "API_KEY=not-so-secret\n",
        "id_rsa": "a key\n",
        "config/prod.env": "TOKEN=x\n",
        "config/site.pem": "a key\n",
        "script": "w ran\n",
        ".gitattributes": "*.py diff=hostile filter=hostile merge=hostile\n*.md diff=hostile\n",
        ".ripgreprc": "--pre=./x\n",
        ".ackrc": "--pager=./x\n",
        "conftest.py": "open('ran', 'w')\n",
        "json.py": "open('ran', 'w')\n",
        "Makefile": "x := $(shell touch ran)\nall:\n\ttouch ran\n",
        "--pre=x": "",
        "-o": "",
        "--output=ran": "",
    }
    for name, text in files.items():
        (shop / name).write_text(text, encoding="utf-8")
    for name in ("ls", "git", "cat", "x", "src/ls", "bin/planted", "sh"):
        plant(shop / name)
    (shop / "notes").symlink_to(".env")
    (top / "secret").write_text("outside\n", encoding="utf-8")
    elsewhere = top / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    (elsewhere.parent / "secret").write_text("outside\n", encoding="utf-8")
    (shop / "away").symlink_to(elsewhere.parent)
    (shop / "src" / "up").symlink_to(elsewhere)
    os.mkfifo(shop / "pipe")
    git(shop, "init", "-q", "-b", "main")
    git(shop, "add", "README.md", "src/a.py", "src/b.py", ".gitattributes")
    git(shop, "commit", "-q", "-m", "Open")
    (shop / "README.md").write_text(files["README.md"] + "more\n", encoding="utf-8")
    git(shop, "add", "README.md", "package.json", "src/data.csv")
    git(shop, "commit", "-q", "-m", "Grow")
    git(shop, "tag", "v1")
    (shop / "src" / "a.py").write_text("def main():\n    return 2\n", encoding="utf-8")
    for hook in ("pre-commit", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        plant(shop / ".git" / "hooks" / hook)
    links = top / "links"
    links.mkdir()
    (links / "linked").symlink_to(shop / "bin" / "planted")
    system = "/usr/bin:/bin"
    # Programs that this machine may not have: the verdict does not depend on what they do here.
    for name in (
        *("rg", "fd", "tree", "gawk", "column", "jq", "file", "xxd", "hexdump", "strings", "node"),
    ):
        if shutil.which(name, path=system) is None:
            (links / name).symlink_to("/bin/true")
    return shop, f"{shop / 'bin'}:{system}:{links}"


def plant(path: Path) -> None:
    """Write a program that leaves a trace when it runs."""
    path.write_text(_TRAP, encoding="utf-8")
    path.chmod(0o755)


def git(shop: Path, *words: str) -> None:
    """Run git in the project, with none of the machine's own settings."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(shop.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    environment |= {
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }
    subprocess.run(["git", *_IDENTITY, *words], cwd=shop, env=environment, check=True)
