"""Search of the project's files for a regular expression, with limits on time and memory.

The expression is Python's. It is matched in a separate process, because some expressions never finish,
unless it is short and repeats nothing and the files are small.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.run_program import run_program
from cockpit.core.secrets import mask
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.project_files import FileEntry, list_files, read_contents
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.sources.search_process import find_matches

TIMEOUT_S = 20.0
MAX_REGEX = 1_000

_MATCHER = Path(__file__).with_name("search_process.py")
_QUICK = re.compile(r"(?:[^\\\[(){}*+?|]|\\[^0-9]){1,200}", re.DOTALL)
"""Without repeats, groups and choices: at each place of a text, each character is compared once at most."""
_QUICK_BYTES = 2_000_000
"""What a thread matches with these in no time. The start of a process takes longer."""
_LINE = 400


class SearchMatches(Struct, frozen=True):
    """Matches by path, in the order of paths: lines as ``(number, text)``, and all counted."""

    lines: dict[str, list[tuple[int, str]]]
    counts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


async def search_text(
    regex: str,
    ground: ProjectSnapshot,
    *,
    glob: str | None = None,
    most: int,
    timeout_s: float = TIMEOUT_S,
) -> SearchMatches:
    """Search the project's text files line by line. Raises :class:`SourceFailed`."""
    if len(regex) > MAX_REGEX:
        raise SourceFailed(f"the expression has {len(regex)} characters; keep it under {MAX_REGEX}")
    files = [entry for entry in await list_files(ground) if matches_glob(entry.path, glob)]
    if not files:
        raise SourceFailed(
            f"no file of the project matches {glob!r}" if glob else "there are no files"
        )
    return await search_files(regex, ground, files, most=most, timeout_s=timeout_s)


async def search_files(
    regex: str,
    ground: ProjectSnapshot,
    files: Sequence[FileEntry],
    *,
    most: int,
    timeout_s: float = TIMEOUT_S,
) -> SearchMatches:
    """Search these files. Raises :class:`SourceFailed` when the time is over."""
    result = SearchMatches({}, {})
    deadline = asyncio.get_running_loop().time() + timeout_s
    async for chunk in read_contents(ground, files):
        left = most - sum(len(lines) for lines in result.lines.values())
        seconds = deadline - asyncio.get_running_loop().time()
        answer = await _ask(regex, ground, chunk, most=left, seconds=max(seconds, 0.1))
        result.lines.update(answer.lines)
        result.counts.update(answer.counts)
    return result


async def _ask(
    regex: str,
    ground: ProjectSnapshot,
    chunk: list[tuple[str, bytes]],
    *,
    most: int,
    seconds: float,
) -> SearchMatches:
    files = [(str(at), content) for at, (_, content) in enumerate(chunk)]
    if _QUICK.fullmatch(regex) and sum(len(content) for _, content in files) <= _QUICK_BYTES:
        answer: Any = await asyncio.to_thread(find_matches, regex, files, most)
    else:
        answer = await _ask_process(regex, ground, files, most=most, seconds=seconds)
    if "error" in answer:
        raise SourceFailed(
            f"{regex!r} is not a regular expression ({answer['error']}); put a backslash before "
            "( ) [ ] { } . * + ? when they are meant as they stand"
        )
    lines = {
        chunk[int(at)][0]: [(number, _shown(text, start)) for number, text, start in hits]
        for at, hits in answer["found"].items()
    }
    return SearchMatches(
        lines, {chunk[int(at)][0]: count for at, count in answer["counts"].items()}
    )


async def _ask_process(
    regex: str,
    ground: ProjectSnapshot,
    files: list[tuple[str, bytes]],
    *,
    most: int,
    seconds: float,
) -> Any:
    request = {
        "regex": regex,
        "files": [[at, len(content)] for at, content in files],
        "most": most,
    }
    stdin = b"".join([json.dumps(request).encode(), b"\n", *(content for _, content in files)])
    done = await run_program(
        (sys.executable, "-I", "-S", str(_MATCHER)),
        cwd=ground.root,
        timeout_s=seconds,
        max_bytes=64_000_000,
        stdin=stdin,
    )
    if done.timed_out:
        raise SourceFailed(
            f"searching for {regex!r} takes too long; make it simpler "
            "(nested repeats like (a+)+ are slow) or name fewer files with `in GLOB`"
        )
    if not done.ok:
        raise SourceFailed(f"searching for {regex!r} needed too much memory; make it simpler")
    return json.loads(done.stdout)


def _shown(line: str, start: int) -> str:
    """The line, cut around the match if it is very long. It is masked before it is cut, because half a
    secret would not be recognised."""
    masked = mask(line)
    if len(masked) <= _LINE:
        return masked
    begin = max(0, min(start, len(masked) - _LINE) - _LINE // 4)
    return f"{'…' if begin else ''}{masked[begin : begin + _LINE]}…"
