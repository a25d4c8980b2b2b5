"""The text of a systemd unit that runs ``cockpit serve`` for one project."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.commands.open_project import WrongUse
from cockpit.core.state_folder import PLACE_VARIABLES

_UNIT = """\
# A unit of your own, not of the system:
#   cockpit serve --systemd > ~/.config/systemd/user/{name}.service
#   systemctl --user enable --now {name}
[Unit]
Description=cockpit over HTTP for {description}

[Service]
Type=exec
WorkingDirectory={folder}
{environment}ExecStart={command}
KillSignal=SIGINT
SuccessExitStatus=130
Restart=on-failure
RestartSec=5
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes

[Install]
WantedBy=default.target
"""


def systemd_unit(folder: Path, options: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a unit that runs ``cockpit serve OPTIONS`` in ``folder``.

    Of ``environment`` it keeps where the state and the configuration are, and never a key or a token. Raises
    ``WrongUse`` for a path that no unit can name.
    """
    kept = {name: environment[name] for name in PLACE_VARIABLES if environment.get(name)}
    for text in (str(folder), *kept.values(), _program()[0]):
        if not text.isprintable():
            raise WrongUse(f"{text!r} has characters that a systemd unit cannot name.")
    lines = [f"Environment={_quoted(f'{name}={value}')}\n" for name, value in kept.items()]
    return _UNIT.format(
        name=f"cockpit-{_plain(folder.name)}",
        description=_percent(folder.name),
        folder=_percent(str(folder)),
        environment="".join(lines),
        command=" ".join(
            _quoted(word).replace("$", "$$") for word in (*_program(), "serve", *options)
        ),
    )


def _program() -> tuple[str, ...]:
    """Return the installed program, else this Python with ``-m cockpit``; both by absolute path."""
    called = Path(sys.argv[0])
    if called.name == "cockpit" and (path := shutil.which(str(called))):
        return (os.path.abspath(path),)  # noqa: PTH100 - a link stays one: it survives an upgrade
    return (sys.executable, "-P", "-m", "cockpit")


def _quoted(word: str) -> str:
    escaped = _percent(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _percent(text: str) -> str:
    """Return ``text`` without specifiers of systemd's."""
    return text.replace("%", "%%")


def _plain(name: str) -> str:
    letters = (letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return "".join(letters).strip("-") or "project"
