"""Stands between cockpit and an agent and writes down what both say: ``record_agent.py HISTORY -- COMMAND``.

One JSON object a line: ``start`` when the agent is started, ``client`` and ``agent`` with a message of
either, ``wrote`` with files of the working directory that changed before the agent's next message.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

_SKIPPED = frozenset((".git", ".cockpit"))
_LARGEST = 10_000


class Recorder:
    """The file of one history, which both directions append to."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._lock = threading.Lock()
        self._files = read_files()

    def write(self, **entry: Any) -> None:
        with self._lock, self._history.open("a", encoding="utf-8") as file:
            # What cockpit itself writes for the agent is there when the agent speaks next.
            files = read_files() if "agent" in entry else self._files
            wrote = {
                path: files.get(path)
                for path in {*files, *self._files}
                if files.get(path) != self._files.get(path)
            }
            self._files = files
            if wrote:
                file.write(json.dumps({"wrote": wrote}) + "\n")
            file.write(json.dumps(entry) + "\n")

    def relay(self, source: IO[bytes], target: IO[bytes], side: str) -> None:
        """Pass lines on, each after it is written down; the source's end is the target's."""
        for line in source:
            self.write(**{side: parse(line)})
            try:
                target.write(line)
                target.flush()
            except OSError:
                break
        target.close()


def read_files() -> dict[str, str]:
    """Return the texts of the small files of the working directory."""
    texts = {}
    for path in sorted(Path.cwd().rglob("*")):
        inside = path.relative_to(Path.cwd())
        is_plain = path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
        if _SKIPPED.isdisjoint(inside.parts) and is_plain and path.stat().st_size <= _LARGEST:
            texts[str(inside)] = path.read_text(encoding="utf-8", errors="replace")
    return texts


def parse(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").rstrip("\n")
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}


def main(words: list[str]) -> int:
    """Run the agent until it ends; returns its exit code."""
    split = words.index("--")
    recorder = Recorder(Path(words[0]))
    command = words[split + 1 :]
    recorder.write(start=Path(command[0]).name)
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None and agent.stdout is not None
    # It ends with its agent, and with its process group.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    client = (sys.stdin.buffer, agent.stdin, "client")
    threading.Thread(target=recorder.relay, args=client, daemon=True).start()
    recorder.relay(agent.stdout, sys.stdout.buffer, "agent")
    return agent.wait()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
