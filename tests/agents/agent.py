"""A small agent: does and says what its scenario (a JSON list) tells it, one step after the other.

Started as ``agent.py SCENARIO [WORD...]``. It knows nothing of cockpit.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(words: list[str]) -> int:
    """Play the scenario; returns the exit code."""
    prompt = "" if sys.stdin.isatty() else sys.stdin.read()
    for step in json.loads(Path(words[0]).read_text(encoding="utf-8")):
        code = play(step, prompt, words[1:])
        if code is not None:
            return code
    return 0


def play(step: dict[str, Any], prompt: str, words: list[str]) -> int | None:
    """One step; a number ends the program with it."""
    match step:
        case {"say": body}:
            print(json.dumps(body), flush=True)
        case {"raw": text}:
            sys.stdout.buffer.write(text.encode("latin-1"))
            sys.stdout.buffer.flush()
        case {"times": text, "count": count}:
            sys.stdout.write(text * count)
            sys.stdout.flush()
        case {"complain": text}:
            print(text, file=sys.stderr, flush=True)
        case {"write": path, "text": text}:
            Path(path).write_text(text, encoding="utf-8")
        case {"replace": path, "old": old, "new": new}:
            before = Path(path).read_text(encoding="utf-8")
            Path(path).write_text(before.replace(old, new), encoding="utf-8")
        case {"run": argv}:
            subprocess.run(argv, check=True, capture_output=True)
        case {"tell": path}:
            told = {
                "prompt": prompt,
                "words": words,
                "env": dict(os.environ),
                "cwd": str(Path.cwd()),
            }
            Path(path).write_text(json.dumps(told), encoding="utf-8")
        case {"copy": source, "to": target}:
            Path(target).write_text(Path(source).read_text(encoding="utf-8"), encoding="utf-8")
        case {"child": path}:
            sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(path).write_text(str(sleeper.pid), encoding="ascii")
        case {"hang": marker}:
            Path(marker).touch()
            signal.pause()
        case {"exit": code}:
            return int(code)
        case _:
            raise ValueError(f"no such step: {step}")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
