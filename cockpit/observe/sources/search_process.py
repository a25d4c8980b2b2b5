"""Match a regular expression against files; as a process, against those of standard input.

An expression may take exponential time. A separate process can be killed without harm, and its memory
is limited. Input: a JSON line ``{"regex", "files": [[path, size]…], "most"}``, then the
bytes of the files one after another. Output: one JSON object with what :func:`find_matches` returns.
Nothing but the standard library's lightest modules is imported: it starts for every search.
"""

from __future__ import annotations

import json
import re
import sys
import warnings

_MEMORY = 1_500_000_000
_LINE = 20_000
_SNIFF = 8_000


def find_matches(regex: str, files: list[tuple[str, bytes]], most: int) -> dict[str, object]:
    """Lines that match, by path in the order given: at most ``most``, counted all.

    ``found`` has ``(number, text, start of the match in it)`` by path, ``counts`` numbers. Binary
    files (a NUL in the first 8,000 bytes) are passed over. Only ``error``, words, for an expression that
    is none.
    """
    try:
        return _find_matches(re.compile(regex), files, most)
    except (re.error, RecursionError, OverflowError) as error:
        return {"error": str(error) or type(error).__name__}


def _find_matches(
    pattern: re.Pattern[str], files: list[tuple[str, bytes]], most: int
) -> dict[str, object]:
    search = pattern.search
    lines_by_path: dict[str, list[tuple[int, str, int]]] = {}
    counts: dict[str, int] = {}
    left = most
    for path, content in files:
        if b"\0" in content[:_SNIFF]:
            continue
        hits: list[tuple[int, str, int]] = []
        count = 0
        lines = content.decode("utf-8", "replace").split("\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            match = search(line.removesuffix("\r"))
            if match is not None:
                count += 1
                if left > 0:
                    left -= 1
                    begin = max(0, match.start() - _LINE // 2) if len(line) > _LINE else 0
                    text = line[begin : begin + _LINE].rstrip()
                    hits.append((number, text, match.start() - begin))
        if count:
            counts[path] = count
            if hits:
                lines_by_path[path] = hits
    return {"found": lines_by_path, "counts": counts}


def main() -> int:
    """Read the request and the files; write the result to standard output."""
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ValueError, OSError):
        sys.stderr.write("memory is not limited on this system\n")
    source = sys.stdin.buffer
    request = json.loads(source.readline())
    files = [(path, source.read(size)) for path, size in request["files"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = find_matches(request["regex"], files, request["most"])
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
