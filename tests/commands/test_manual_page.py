"""The manual page: every command and option is on it, and the programs that read such pages accept it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
from test_cli_help import ROOT, list_commands

from cockpit.cli import root
from cockpit.commands.exit_codes import EXIT_MEANINGS, Exit
from cockpit.commands.setup.manual import manual_page


def test_the_page_has_every_command_option_and_exit_code(tmp_path: Path) -> None:
    page = manual_page(root)
    assert page.isascii()
    plain = page.replace("\\-", "-").replace("\\e", "\\")
    for name, command in list_commands():
        assert not name or f"\n.SS cockpit {name}\n" in plain
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(word in plain for word in option.opts), (name, option.opts)
    assert set(EXIT_MEANINGS) == set(Exit)
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in reference
    file = tmp_path / "cockpit.1"
    file.write_text(page + "\n", encoding="ascii")
    for argv in (["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint", "-W", "error"]):
        if shutil.which(argv[0]):
            ended = subprocess.run([*argv, str(file)], capture_output=True, text=True, timeout=60)
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
