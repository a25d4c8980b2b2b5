"""A stand-in for ``gh``: a program on PATH that replays recorded answers and notes its calls.

The answers are by the arguments joined by blanks: ``{"out", "err", "code"}``. A ``*`` stands for any others,
and the first that fits counts. What is not recorded fails as gh does for an unknown command. It is a shell
script, which starts in a tenth of an interpreter's time.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_END = "\x1f"
"""What ends an argument in the log; a sign alone ends a call."""
_CALL = f"\x1e{_END}"


class GhStandIn:
    """Installed in ``directory``; put that in front of PATH."""

    def __init__(self, directory: Path, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.answers = dict(answers)
        self._log = directory / "calls"
        self._write()

    def answer(self, asked: str, out: str = "", err: str = "", code: int = 0) -> None:
        self.answers[asked] = {"out": out, "err": err, "code": code}
        self._write()

    def calls(self) -> list[list[str]]:
        noted = self._log.read_text().split(_CALL)[:-1] if self._log.exists() else []
        return [call.split(_END)[:-1] for call in noted]

    def _write(self) -> None:
        cat = shutil.which("cat")
        lines = [
            "#!/bin/sh",
            f"printf '%s{_END}' \"$@\" '{_CALL[0]}' >> {shlex.quote(str(self._log))}",
            'case "$*" in',
        ]
        for number, (asked, answer) in enumerate(self.answers.items()):
            lines.append(
                "*".join(shlex.quote(part) if part else "" for part in asked.split("*")) + ")"
            )
            for stream, text in ((1, answer.get("out")), (2, answer.get("err"))):
                if text:
                    kept = self.directory / f"answer-{number}-{stream}"
                    kept.write_bytes(text.encode("utf-8", "surrogateescape"))
                    lines.append(f"{cat} {shlex.quote(str(kept))} >&{stream}")
            lines.append(f"exit {answer.get('code', 0)};;")
        lines += ["esac", "printf 'unknown command: %s\\n' \"$*\" >&2", "exit 1", ""]
        program = self.directory / "gh.new"
        program.write_text("\n".join(lines))
        program.chmod(0o755)
        program.rename(self.directory / "gh")
