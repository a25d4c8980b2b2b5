"""Run a command in the sandbox and keep its output."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.run_program import Finished
from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded, tail
from cockpit.act.named_scripts import digest_tree, why_changed
from cockpit.act.sandbox.find_planted_repos import mark_repository, set_aside_planted
from cockpit.act.sandbox.git_view import ViewRefused, changes_repository, run_in_view
from cockpit.act.sandbox.project_view import TooLarge
from cockpit.act.sandbox.reading_sandbox import MAX_OUTPUT as MAX_READ
from cockpit.act.sandbox.reading_sandbox import find_refusal, run_reading, why_no_reading
from cockpit.act.sandbox.run_confined import ConfinedRun, run_confined
from cockpit.act.workspace import Workspace
from cockpit.core.errors import find_full_disk, read_machine_fault
from cockpit.core.read_record import convert

READING = "reading"
"""In a receipt: the command ran in the reading sandbox, and its output is a read."""
MACHINE = "machine"
"""In a receipt: the fault of the machine that the command met. It is not run again by itself."""
MAX_OUTPUT = 4 * 1024 * 1024
"""A command whose output passes this many bytes is ended."""

_SUMMARY = re.compile(
    r"^=*[ \t]*((?:\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|warnings?|deselected|rerun)"
    r"(?:, )?)+|no tests ran) in [\d.]+s\b.*$",
    re.MULTILINE,
)
_COUNT = re.compile(
    r"(?<!\d)(\d++) (passed|failed|error|skipped|xfailed|xpassed|warning|deselected)"
)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\s+(OK|FAILED)(?: \(([^)]*)\))?", re.MULTILINE)


class _Payload(Struct, frozen=True):
    argv: tuple[str, ...]
    timeout_s: int
    sandboxed: bool
    reading: bool = False
    """Whether it runs in the reading sandbox."""
    scripts: tuple[dict[str, str], ...] = ()
    """Files that the command runs, with the digests of what was shown."""
    tree: str = ""
    """The digest of the project's files, where it runs what they say."""


class CommandAdapter:
    """Performs ``run``.

    The effect of a command cannot be probed, so a started command never runs again without the user.
    """

    ends_when_cancelled = True

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Run it. An exit status other than 0 is a permanent failure with its output."""
        request = convert(payload, _Payload)
        if request.sandboxed and not ground.sandbox.works:
            return failed(
                "conflict",
                f"It was shown as running in a sandbox, but {ground.sandbox.missing}; it was not run.",
            )
        argv = request.argv
        if request.reading:
            return await _read(request, ground)
        changed = await asyncio.to_thread(why_changed, request.scripts, ground.confined)
        if not changed and request.tree:
            now = await asyncio.to_thread(digest_tree, str(ground.root))
            changed = (
                "" if now == request.tree else "the project's files changed since it was shown"
            )
        if changed:
            return failed("conflict", f"{shlex.join(argv)[:80]}: {changed}. It was not run.")
        options: dict[str, Any] = {
            "timeout_s": request.timeout_s,
            "max_bytes": MAX_OUTPUT,
            "on_output": ground.on_output,
        }
        place = (argv, ground.root, ground.environment)
        if not request.sandboxed:
            # As it was shown, also where there is a sandbox by now; the limits hold all the same.
            ended = await run_confined(replace(ground.sandbox, bwrap=None), *place, **options)
            outcome = await asyncio.to_thread(_outcome, argv, request.timeout_s, ended, ground.root)
            return replace(outcome, summary=f"{outcome.summary} It ran without a sandbox.")
        before = await asyncio.to_thread(mark_repository, ground.root)
        left: tuple[str, ...] = ()
        try:
            if changes_repository(argv):
                ended, taken = await run_in_view(ground.sandbox, *place, **options)
                left = taken.left
            else:
                ended = await run_confined(ground.sandbox, *place, **options)
        except ViewRefused as error:
            return failed("permanent", f"{shlex.join(argv)[:80]}: {error}", argv=list(argv))
        finally:
            planted = await asyncio.to_thread(set_aside_planted, ground.root, before)
        return await asyncio.to_thread(
            _outcome, argv, request.timeout_s, ended, ground.root, planted, left
        )

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Return unknown; in the reading sandbox there is no effect, and it may run again."""
        return "not_done" if payload.get("reading") else "unknown"


async def _read(request: _Payload, ground: Workspace) -> Outcome:
    """Run a command in the reading sandbox. What that refuses to it is no result of the command."""
    short = shlex.join(request.argv)[:80]
    if why := await why_no_reading(ground.sandbox, ground.root):
        return failed(
            "conflict",
            f"It was shown as running in the reading sandbox, but {why}; it was not run.",
        )
    try:
        ended = await run_reading(
            ground.sandbox,
            request.argv,
            ground.root,
            ground.environment,
            timeout_s=request.timeout_s,
            on_output=ground.on_output,
        )
    except TooLarge as error:
        why = f"the project cannot be shown without its secrets: {error}"
        return failed("refused", f"{short}: {why}.", sandbox=READING, refused=why)
    if refused := find_refusal(ended):
        return failed(
            "refused",
            f"{short}: the reading sandbox refused a write, a connection or a place: {refused}",
            sandbox=READING,
            refused=refused,
        )
    outcome = await asyncio.to_thread(
        _outcome, request.argv, request.timeout_s, ended, ground.root, most=MAX_READ
    )
    return replace(outcome, detail={**outcome.detail, "sandbox": READING})


def _outcome(
    argv: tuple[str, ...],
    timeout_s: int,
    ended: ConfinedRun,
    root: Path,
    planted: tuple[str, ...] = (),
    left: tuple[str, ...] = (),
    *,
    most: int = MAX_OUTPUT,
) -> Outcome:
    finished = ended.finished
    line = shlex.join(argv)
    short = line if len(line) <= 80 else f"{line[:79]}…"
    tests = test_counts(finished.text[-100_000:] + "\n" + finished.error_text[-100_000:])
    detail: dict[str, Any] = {
        "argv": list(argv),
        "exit_code": finished.code,
        "stdout": tail(finished.stdout),
        "stderr": tail(finished.stderr),
        "duration_ms": finished.duration_ms,
    }
    if tests:
        detail["tests"] = tests
    if finished.code and (fault := _find_fault(finished, root)):
        detail[MACHINE] = fault
    if planted:
        detail["set_aside"] = list(planted)
        return failed(
            "permanent",
            f"{short}: it made a .git, whose settings could run programs with your rights. It is now "
            f"{', '.join(planted)}: look at it, and rename it to .git if you want it.",
            **detail,
        )
    if ended.passed:
        return failed("permanent", f"{short}: ended, {ended.passed}.", **detail)
    if finished.timed_out:
        words = f"{short}: ended after {timeout_s} s. What it had done by then stays."
        return Outcome("timeout", words, "permanent", detail)
    if finished.truncated:
        return failed(
            "permanent",
            f"{short}: ended, its output passed {most // 1024 // 1024} MiB.",
            **detail,
        )
    if left:
        detail["left"] = list(left)
        return failed("permanent", f"{short}: {'; '.join(left)}.", **detail)
    counts = f": {_counts(tests)}" if tests else ""
    if finished.code == 0:
        return succeeded(f"{short}: exit 0{counts}.", **detail)
    number = finished.code - 128 if finished.code > 128 else -finished.code
    how = f"exit {finished.code}" + (f" (signal {number})" if 0 < number < 65 else "")
    return failed("permanent", f"{short}: {how}{counts}.", **detail)


def _find_fault(finished: Finished, root: Path) -> str:
    """Return the fault of the machine that a command met: a full disk, or no room for its sandbox."""
    errors = finished.error_text
    if errors.startswith("bwrap: ") and (fault := read_machine_fault(errors)):
        return fault
    return find_full_disk(f"{finished.text[-100_000:]}\n{errors[-100_000:]}", root)


def test_counts(output: str) -> dict[str, int]:
    """Return the counts that a test runner (pytest, unittest) prints; empty when none is recognised."""
    summaries = list(_SUMMARY.finditer(output))
    if summaries:
        counts = {kind: int(number) for number, kind in _COUNT.findall(summaries[-1].group(1))}
        return counts or {"passed": 0}
    ran = list(_UNITTEST.finditer(output))
    if not ran:
        return {}
    total, _, rest = ran[-1].groups()
    bad = {
        name.strip(): int(number)
        for name, _, number in (part.partition("=") for part in (rest or "").split(","))
        if number.isdigit()
    }
    failures, errors, skipped = (bad.get(name, 0) for name in ("failures", "errors", "skipped"))
    counts = {
        "passed": int(total) - failures - errors - skipped,
        "failed": failures,
        "error": errors,
        "skipped": skipped,
    }
    return {name: number for name, number in counts.items() if number or name == "passed"}


def _counts(tests: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in tests.items())
