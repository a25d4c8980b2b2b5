"""The manual page: every command and option is on it, and the programs that read such pages accept it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
from test_cli_help import TREE

from cockpit.cli import root
from cockpit.commands.exit_codes import EXIT_MEANINGS, Exit
from cockpit.commands.setup.manual import manual_page

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"
MACROS = {"TH", "SH", "SS", "TP", "PP", "br", "BR", "nf", "fi", "RS", "RE"}


def test_the_page_has_every_command_option_and_exit_code() -> None:
    page = manual_page(root)
    plain = page.replace("\\-", "-").replace("\\e", "\\")
    for name, command in TREE:
        if name:
            assert f"\n.SS cockpit {name}\n" in plain
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(word in plain for word in option.opts), (name, option.opts)
    assert set(EXIT_MEANINGS) == set(Exit)
    reference = REFERENCE.read_text(encoding="utf-8")
    for code, meaning in EXIT_MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in reference


def test_the_page_is_plain_roff(tmp_path: Path) -> None:
    page = manual_page(root) + "\n"
    assert page.isascii()
    for line in page.splitlines():
        if line.startswith((".", "'")):
            assert line[1:].split()[0] in MACROS, line
        assert not re.search(r"(?<!\\)-", line) or line.startswith((".TH", ".BR")), line
        assert re.fullmatch(r"(?:[^\\]|\\[-e&]|\\f[BIR]|\\\[u[0-9A-F]{4,}\])*", line), line
    file = tmp_path / "cockpit.1"
    file.write_text(page, encoding="ascii")
    checks = [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint", "-W", "error"]]
    for argv in checks:
        if shutil.which(argv[0]):
            ended = subprocess.run([*argv, str(file)], capture_output=True, text=True, timeout=60)
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
