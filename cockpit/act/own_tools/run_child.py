"""Start the child process that loads a tool's file, in the sandbox and nowhere else.

See ``docs/reference/tools.md``, calls.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.own_tools import child
from cockpit.act.own_tools.tool_files import ToolFile
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.run_confined import run_confined
from cockpit.act.sandbox.sandbox_settings import ProcessLimits
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import InvalidRecord, parse_object

MAX_OUTPUT = 4 * 1024 * 1024
"""A tool whose output, its result included, passes this many bytes is ended."""
MAX_RESULT = 1024 * 1024
"""The most characters of a result."""
DESCRIBE_TIMEOUT_S = 60
_MEGABYTE = 1024**2


class NoSandbox(CockpitError):
    """There is no sandbox on this machine, and tools run nowhere else."""

    code = "no_sandbox"


class ChildAnswer(Struct, frozen=True):
    """What the child answered. ``error`` is empty where it has a ``result``."""

    result: Any = None
    error: str = ""
    printed: bytes = b""
    """What the tool printed, and the trace of an error."""
    duration_ms: int = 0
    timed_out: bool = False
    needs: tuple[str, ...] = ()
    """Scope items that the tool says it lacks, unchecked."""


async def run_child(
    file: ToolFile,
    request: Mapping[str, Any],
    sandbox: Sandbox,
    root: Path,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    writes: bool,
) -> ChildAnswer:
    """Run the child with the sources of ``file``; ``writes`` lets it write in the project ``root``.

    Raises :class:`NoSandbox`, and what ``run_confined`` raises; nothing ran then.
    """
    require_sandbox(sandbox)
    body = {
        **request,
        "folder": str(file.folder.path),
        "main": file.name,
        "sources": {path: data.decode("utf-8", "replace") for path, data in file.files.items()},
    }
    ended = await run_confined(
        limit_sandbox(sandbox),
        (_find_interpreter(), "-I", "-B", child.__file__),
        root,
        {**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout_s=timeout_s,
        max_bytes=MAX_OUTPUT,
        stdin=json.dumps(body).encode(),
        extra=Extra(read=_python_places(), root="write" if writes else "read"),
    )
    finished = ended.finished
    answer = ChildAnswer(printed=finished.stderr, duration_ms=finished.duration_ms)
    if ended.passed:
        return replace(answer, error=f"It was ended, {ended.passed}.")
    if finished.timed_out:
        return replace(answer, error=f"It was ended after {timeout_s:g} s.", timed_out=True)
    if finished.truncated:
        limit = MAX_OUTPUT // _MEGABYTE
        return replace(answer, error=f"It was ended: its output passed {limit} MiB.")
    return _read_answer(answer, finished.code, finished.stdout)


def _read_answer(answer: ChildAnswer, code: int, output: bytes) -> ChildAnswer:
    if len(output) > MAX_RESULT:
        limit = MAX_RESULT // 1024
        return replace(answer, error=f"Its result is larger than {limit} KiB; return less.")
    try:
        body = parse_object(output, name="The answer", max_characters=MAX_RESULT)
    except InvalidRecord as error:
        how = f"exit {code}" if code >= 0 else f"signal {-code}"
        return replace(answer, error=f"It ended without a result ({how}). {error}"[:600])
    if set(body) == {"result"}:
        return replace(answer, result=body["result"])
    trace = str(body.get("trace", "")).encode("utf-8", "replace")
    named = body.get("needs")
    return replace(
        answer,
        needs=tuple(str(item) for item in named) if isinstance(named, list) else (),
        error=str(body.get("error") or "It answered neither a result nor an error."),
        printed=answer.printed + trace,
    )


def require_sandbox(sandbox: Sandbox) -> None:
    """Raise :class:`NoSandbox` where nothing can be confined."""
    if not sandbox.works:
        raise NoSandbox(
            f"Tools run in the sandbox only, and {sandbox.missing}. Nothing was run. `cockpit doctor` says"
            " how to get one."
        )


def limit_sandbox(sandbox: Sandbox) -> Sandbox:
    """Return the sandbox with the limits of one tool: those of commands, where these are not lower."""
    limits = sandbox.choices.limits
    lower = ProcessLimits(
        processes=min(limits.processes, 256),
        memory_bytes=min(limits.memory_bytes, 2048 * _MEGABYTE),
        process_bytes=min(limits.process_bytes, 2048 * _MEGABYTE),
        written_bytes=min(limits.written_bytes, 1024 * _MEGABYTE),
        temporary_bytes=min(limits.temporary_bytes, 512 * _MEGABYTE),
    )
    return replace(sandbox, choices=replace(sandbox.choices, limits=lower))


@cache
def _find_interpreter() -> str:
    """Return this environment's Python: what started this process may be a wrapper of it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in (version, "python3"):
        program = Path(sys.prefix, "bin", name)
        if program.exists():
            return str(program)
    return sys.executable


@cache
def _python_places() -> tuple[tuple[Path, Path], ...]:
    """Return the places of this Python, its packages and the child, to be read in the sandbox."""
    places = {Path(child.__file__).parents[2]}
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}:
        places |= {Path(prefix, name) for name in ("bin", "lib", "lib64", "pyvenv.cfg")}
    for package in ("pydantic", "pydantic_core"):
        spec = find_spec(package)  # only located: it is imported in the child
        if spec is not None and spec.origin is not None:
            places.add(Path(spec.origin).parents[1])
    places.add(Path(os.path.realpath(_find_interpreter())))
    shown = [
        place
        for place in sorted(places)
        if place.exists() and not place.is_relative_to("/usr") and place.parent != Path("/")
    ]
    outermost = [
        place
        for place in shown
        if not any(place != other and place.is_relative_to(other) for other in shown)
    ]
    return tuple((place, place) for place in outermost)
