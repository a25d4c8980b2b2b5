"""A stand-in for ``gh``: a program on PATH that replays recorded answers and notes its calls.

The answers are a JSON file: the arguments joined by blanks to ``{"out", "err", "code"}``. What is
not recorded fails as gh does for an unknown command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python} -I
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
asked = " ".join(sys.argv[1:])
with open(os.path.join(here, "calls.jsonl"), "a", encoding="utf-8") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
with open(os.path.join(here, "answers.json"), encoding="utf-8") as file:
    answers = json.load(file)
answer = answers.get(asked)
if answer is None:
    sys.stderr.write("unknown command: " + asked + "\\n")
    sys.exit(1)
sys.stdout.buffer.write(answer.get("out", "").encode("utf-8", "surrogateescape"))
sys.stderr.write(answer.get("err", ""))
sys.exit(answer.get("code", 0))
"""


class GhStandIn:
    """Installed in ``directory``; put that in front of PATH."""

    def __init__(self, directory: Path, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.answers = dict(answers)
        self._write()
        program = directory / "gh"
        program.write_text(_PROGRAM.format(python=sys.executable))
        program.chmod(0o755)

    def answer(self, asked: str, out: str = "", err: str = "", code: int = 0) -> None:
        self.answers[asked] = {"out": out, "err": err, "code": code}
        self._write()

    def calls(self) -> list[list[str]]:
        log = self.directory / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def _write(self) -> None:
        (self.directory / "answers.json").write_text(json.dumps(self.answers))
