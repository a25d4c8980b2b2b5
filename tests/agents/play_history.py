"""Plays the agent of a recorded history: ``play_history.py HISTORY COUNTER``; further words are ignored.

It says what the agent said, changes the files that the agent changed, and ends with 3 when cockpit does not
say what it said then. ``COUNTER`` counts the starts: each plays what followed the start of that number.
Standard library alone, so that it starts in no time.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDS_WITH_AGENT = 3


def main(history: str, counter: str) -> int:
    """Play one start; returns the exit code."""
    number = count_start(counter)
    entries = read_start(history, number)
    heard: list[Any] = []
    numbers: dict[Any, Any] = {}
    for entry in entries:
        if "client" in entry:
            message = hear(entry["client"], heard)
            if message is None:
                complain(counter, entry["client"], heard)
                return _ENDS_WITH_AGENT
            if "method" in message and "id" in message:
                numbers[json.dumps(entry["client"]["id"])] = message["id"]
        elif "agent" in entry:
            message = entry["agent"]
            if isinstance(message, dict) and "method" not in message and "id" in message:
                message = {**message, "id": numbers.get(json.dumps(message["id"]), message["id"])}
            say(message)
        else:
            change_files(entry["wrote"])
    while line := sys.stdin.readline():
        heard.append(json.loads(line))
    if heard:
        complain(counter, None, heard)
    return 0


def count_start(counter: str) -> int:
    """Count this start; returns its number, from 1."""
    with open(counter, "a+") as file:
        file.seek(0)
        number = len(file.read()) + 1
        file.write(".")
    return number


def read_start(history: str, number: int) -> list[Any]:
    """Return the entries between this start and the next one."""
    entries: list[Any] = []
    seen = 0
    with open(history, encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line.replace("{root}", json.dumps(os.getcwd())[1:-1]))  # noqa: PTH109
            if "start" in entry:
                seen += 1
            elif seen == number:
                entries.append(entry)
    return entries


def hear(expected: Any, heard: list[Any]) -> Any:
    """Return the message of cockpit's that is the expected one; None when that cannot come any more."""
    while True:
        for message in heard:
            if is_same(expected, message):
                heard.remove(message)
                return message
        line = sys.stdin.readline()
        if not line:
            return None
        heard.append(json.loads(line))
        method = expected.get("method")
        if method and heard[-1].get("method") == method and not is_same(expected, heard[-1]):
            return None  # it will not come any more


def is_same(expected: Any, message: Any) -> bool:
    """Whether the message says the same; the numbers of requests, and what varies by machine, may differ."""
    if isinstance(expected, dict):
        return (
            isinstance(message, dict)
            and expected.keys() == message.keys()
            and all(
                is_same(value, message[name])
                for name, value in expected.items()
                if name != "id" or "method" not in expected
            )
        )
    if isinstance(expected, list):
        return (
            isinstance(message, list)
            and len(expected) == len(message)
            and all(map(is_same, expected, message))
        )
    return bool(expected == message or expected == "{any}")


def say(message: Any) -> None:
    text = message["text"] if isinstance(message, dict) and [*message] == ["text"] else None
    sys.stdout.write((json.dumps(message) if text is None else text) + "\n")
    sys.stdout.flush()


def change_files(texts: dict[str, str | None]) -> None:
    for path, text in texts.items():
        if text is None:
            os.unlink(path)  # noqa: PTH108
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def complain(counter: str, expected: Any, heard: list[Any]) -> None:
    """Write down what was not said, and what was said in its place."""
    with open(f"{counter}.wrong", "a", encoding="utf-8") as file:
        file.write(f"expected {json.dumps(expected)}\nheard {json.dumps(heard)}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
