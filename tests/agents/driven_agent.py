"""A small agent that asks over Claude Code's own protocol, as its scenario (a JSON list) says.

Started as ``driven_agent.py SCENARIO HEARD``; what it is told goes to ``HEARD``, one JSON object a line.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any


def hear(log: Path) -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    with log.open("a", encoding="utf-8") as file:
        file.write(line)
    heard: dict[str, Any] = json.loads(line)
    return heard


def main(scenario: Path, log: Path) -> None:
    for step in json.loads(scenario.read_text(encoding="utf-8")):
        match step:
            case {"say": body}:
                print(json.dumps(body), flush=True)
            case {"raw": text}:
                print(text, flush=True)
            case {"hear": count}:
                for _ in range(count):
                    hear(log)
            case {"obey": count}:
                for _ in range(count):
                    decision = hear(log)["response"]["response"]
                    given = decision.get("updatedInput", {})
                    if "content" in given:
                        Path(given["file_path"]).write_text(given["content"], encoding="utf-8")
            case {"hang": marker}:
                Path(marker).write_text("", encoding="utf-8")
                signal.pause()
    while True:
        hear(log)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
