"""A small agent: does and says what its scenario (a JSON list) tells it, one step after the other.

Started as ``agent.py SCENARIO [WORD...]``. It knows nothing of cockpit.
"""

from __future__ import annotations

# ruff: noqa: PTH109 -- what few steps need takes longer to import than all the rest
import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(words: list[str]) -> int:
    """Play the scenario; returns the exit code."""
    prompt = "" if sys.stdin.isatty() else sys.stdin.read()
    for step in json.loads(read(words[0])):
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
            write(path, text)
        case {"replace": path, "old": old, "new": new}:
            write(path, read(path).replace(old, new))
        case {"run": argv}:
            import subprocess

            subprocess.run(argv, check=True, capture_output=True)
        case {"tell": path}:
            told = {
                "prompt": prompt, "words": words, "env": dict(os.environ), "cwd": os.getcwd(),
            }  # fmt: skip
            write(path, json.dumps(told))
        case {"copy": source, "to": target}:
            write(target, read(source))
        case {"child": path}:
            import subprocess

            sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            write(path, str(sleeper.pid))
        case {"hang": marker}:
            write(marker, "")
            signal.pause()
        case {"exit": code}:
            return int(code)
        case _:
            raise ValueError(f"no such step: {step}")
    return None


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
