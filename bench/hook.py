"""What a hook call costs an agent: over an empty Python process, in one run, taking turns.

Wall time is a ratio to the empty process: on a loaded machine both wait, and a difference of seconds
would measure the load. On an idle one the bar is about 40 ms. CPU is what the call's own process used.
The process behind the hooks works later and beside it; what it takes for an event is told apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from cold_start import measured
from measure import Row, row

from cockpit.backlog import service
from cockpit.core.project_paths import locate_project
from cockpit.hook.ingest import ingest_all
from cockpit.store.db.database import Store

RUNS = 31
MOST_S = 0.040
MOST_RATIO = 3.5
BURST = 40
GUARDED = "before a reading command, with the guard"
AFTER = "after a reading command, with the guard"
AGAIN = "before the same one again, with the guard"
WITH_GUARD = (GUARDED, AFTER, AGAIN)


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        environment = measured(top)
        environment.pop("CLAUDE_PROJECT_DIR", None)
        project, other = top / "project", top / "other"
        prepare(project)
        other.mkdir()
        edit = {"tool_name": "Edit", "tool_input": {"file_path": str(project / "a.py")}}
        tests = {
            "tool_name": "Bash",
            "tool_input": {"command": "pytest"},
            "tool_response": {"stdout": "." * 3_000 + "\n3000 passed in 1.20s", "stderr": ""},
        }
        suspect = {**tests, "tool_response": {"stdout": "token: x\n" * 300, "stderr": ""}}
        asks = {"tool_name": "Bash", "tool_input": {"command": "git push"}}
        reads = {"tool_name": "Bash", "tool_input": {"command": "sed -n 1,40p a.py"}}
        printed = {"stdout": "".join(f"x = {number}\n" for number in range(40)), "stderr": ""}
        calls = {
            # First, when nothing waits: what happened between two starts is mostly absorbed by then.
            "the start of a session": payload(project, "SessionStart", source="compact"),
            "an edit": payload(project, "PostToolUse", **edit),
            "a test run": payload(project, "PostToolUse", **tests),
            "an output that may hold secrets": payload(project, "PostToolUse", **suspect),
            "before a command": payload(project, "PreToolUse", **asks),
            "before a reading command": payload(project, "PreToolUse", **reads),
            # What this one reads is never recorded, so that it is new each time.
            GUARDED: payload(project, "PreToolUse", session_id="new", **reads),
            AFTER: payload(project, "PostToolUse", **reads, tool_response=printed),
            AGAIN: payload(project, "PreToolUse", **reads),
            "after a reading command": payload(
                project, "PostToolUse", **reads, tool_response=printed
            ),
            "a permission": payload(project, "PermissionRequest", **asks),
            "a folder that is not a project": payload(other, "PostToolUse", **edit),
        }
        empty, took = taken(calls, environment, project)
        burst = absorbing(project, environment, calls["an edit"])
    table = [row("empty Python process, wall", empty[0], "s"), row("… CPU", empty[1], "s")]
    for name in WITH_GUARD:
        without = took["after a reading command" if name == AFTER else "before a reading command"]
        table.append(row(f"{name}, CPU over without it", took[name][1] / without[1], "×"))
    for name, (wall, processor) in took.items():
        # The guard is off until asked for: what it costs is told, without a bar.
        most = (None, None) if name in WITH_GUARD else (MOST_RATIO, MOST_S)
        table += [
            row(f"{name}, wall over an empty Python", wall / empty[0], "×", most=most[0]),
            row(f"{name}, CPU over an empty Python", processor - empty[1], "s", most=most[1]),
        ]
    return [*table, row(f"behind the hooks, CPU an event (burst of {BURST})", burst, "s")]


def prepare(project: Path) -> None:
    """A project with one task in progress."""
    project.mkdir()
    place = locate_project(project)
    place.prepare()
    (project / "a.py").write_text("".join(f"x = {number}\n" for number in range(80)))
    with Store.open(place.database) as store:
        store.write_now(lambda tx: service.create_task(tx, title="Measure", by="person"))
        store.write_now(lambda tx: service.set_status(tx, "T-1", "in_progress", by="person"))


def payload(folder: Path, event: str, **told: object) -> bytes:
    """A hook event as an agent writes it."""
    body = {"session_id": "bench", "cwd": str(folder), "hook_event_name": event} | told
    return json.dumps(body).encode()


def taken(
    calls: dict[str, bytes], environment: dict[str, str], project: Path
) -> tuple[tuple[float, float], dict[str, tuple[float, float]]]:
    """Median (wall, CPU) seconds of an empty Python and of each call.

    Nothing absorbs meanwhile: the lease is held here.
    """
    nothing = [sys.executable, "-c", "pass"]
    hook = [str(Path(sys.executable).with_name("cockpit")), "hook", "--agent", "claude"]
    kinds = {
        "": (nothing, b""),
        **{n: ([*hook, "--guard"] if n in WITH_GUARD else hook, told) for n, told in calls.items()},
    }
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for turn in range(RUNS + 1):
        lease(project)
        for name, (argv, told) in kinds.items():
            one = once(argv, told, environment)
            if turn:  # the first of each compiles
                seen[name].append(one)
    middle = {
        name: (median(wall for wall, _ in found), median(used for _, used in found))
        for name, found in seen.items()
    }
    return middle.pop(""), middle


def once(argv: list[str], told: bytes, environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one process, which must end well."""
    started = time.perf_counter()
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    )
    assert process.stdin is not None
    process.stdin.write(told)
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - started, used.ru_utime + used.ru_stime


def absorbing(project: Path, environment: dict[str, str], told: bytes) -> float:
    """CPU seconds that the process behind the hooks takes for each event of a burst."""
    hook = [str(Path(sys.executable).with_name("cockpit")), "hook", "--agent", "claude"]
    behind = [sys.executable, "-P", "-m", "cockpit.hook.ingest_worker", str(project)]
    lease(project)
    for _ in range(BURST):
        once(hook, told, environment)
    return once(behind, b"", environment)[1] / BURST


def lease(project: Path) -> None:
    """Absorb what waits, then take the right to absorb, for as long as it lasts at most."""
    place = locate_project(project)
    with Store.open(place.database) as store:
        ingest_all(store, place.state)
        until = int((time.time() + 59) * 1000)
        store.write_now(lambda tx: tx.execute("UPDATE hook_absorber SET leased_until=?", (until,)))
