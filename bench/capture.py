"""How much of an agent's work is captured from its commands, against labels made by hand.

The commands are those of recorded runs of mini-swe-agent on real bug reports (SWE-agent/mini-swe-agent,
MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez): the folder that ``COCKPIT_BENCH_DATA`` names holds
them under ``agent-traces``, a file a run, a line an action. Without it there is nothing to measure.

``data/capture-labels.jsonl`` labels every fifth action of all of them, every fifth from the third on,
and of every fifth from the fifth on those that did more than read; each was read with its output and,
where it ran a script, with that. ``edits`` are the files of the project that the action changed (build
products and bytecode aside), ``tests`` says that it ran tests: a runner, however begun, or a program
named as tests are; ``error`` that a program in it failed, whether or not the exit code of the whole
told; a search without a hit and an exception that a program caught itself have not failed.

The rules were made with the first part in view. Of the second, unseen, they found 0.95 of the edits, all
test runs and 0.97 of the errors; its faults were mended, and of the third, unseen then, they found all
edits and errors and 0.97 of the test runs. Nothing was told in either that was not so.
"""

from __future__ import annotations

import gzip
import json
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Row, row

from cockpit.access.shell_commands import list_commands
from cockpit.learn.capture_wip import ToolUse, capture_tool_use

BAR = 0.95
ROOT = "/testbed"
LABELS = Path(__file__).resolve().parent / "data" / "capture-labels.jsonl"
_CODE = re.compile(r"^<returncode>-?\d+</returncode>\n?")
_OUTPUT = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)


def rows() -> list[Row]:
    """Recall of files changed, test runs and errors, with how much of what was told is so."""
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    traces = Path(data) / "agent-traces"
    if not data or not traces.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return []
    labels = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    found = {
        name: dict(_captured(traces / f"{name}.jsonl.gz"))
        for name in {one["trace"] for one in labels}
    }
    counts = {name: [0, 0, 0] for name in ("edits", "tests", "error")}
    for label in labels:
        patch = found[label["trace"]][label["action"]]
        told = {
            "edits": set(patch.get("files_modified", ())),
            "tests": {True} if "test_results" in patch else set(),
            "error": {True} if "errors" in patch else set(),
        }
        for name, count in counts.items():
            so = set(label[name]) if name == "edits" else {True} if label[name] else set()
            count[0] += len(so & told[name])
            count[1] += len(so)
            count[2] += len(told[name])
    made = [row("actions with labels", len(labels), "", least=200)]
    for name, words in (("edits", "files changed"), ("tests", "test runs"), ("error", "errors")):
        hits, so, said = counts[name]
        made.append(row(f"{words}: recall of {so}", hits / so, "", least=BAR))
        made.append(row(f"{words}: precision of {said}", hits / said if said else 0.0, ""))
    return made


def _captured(trace: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The patch of each action; what was written as a here-document can be read back, as on a disk."""
    disk: dict[str, str] = {}
    with gzip.open(trace, "rt", encoding="utf-8") as lines:
        next(lines)
        for place, line in enumerate(lines):
            action = json.loads(line)
            command = action["command"] or ""
            for one in list_commands(command, ROOT):
                if one.stdin:
                    disk |= {
                        posixpath.normpath(posixpath.join(one.cwd, path)): one.stdin
                        for path in one.writes
                    }
            output = _CODE.sub("", action["output"] or "")
            inner = _OUTPUT.search(output)
            use = ToolUse(
                "Bash",
                {"command": command},
                inner[1] if inner else output,
                action["returncode"],
                ROOT,
            )
            yield place, capture_tool_use(use, disk.get)
