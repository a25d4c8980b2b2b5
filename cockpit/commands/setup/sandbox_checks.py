"""Which protections of the sandbox hold on this machine: each is tried, in one short run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cockpit.act.sandbox.bubblewrap import Extra, Sandbox, detect
from cockpit.act.sandbox.reading_sandbox import why_no_reading
from cockpit.act.sandbox.run_confined import run_confined
from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.confine.agent_sandbox import why_unconfined
from cockpit.commands.setup.doctor_check import Check
from cockpit.loop.runtime_settings import RunnerSettings

_SCRIPT = r"""
while read -r name value rest; do
  case $name in CapEff:|NoNewPrivs:|Seccomp:) echo "$name$value" ;; esac
done </proc/self/status
set -- /proc/[0-9]*; echo "processes:$#"
networks=0; while read -r line; do case $line in lo:*) ;; *:*) networks=1 ;; esac; done </proc/net/dev
echo "networks:$networks"
for place in "$HOME"/* /tmp/* /run/*; do [ -e "$place" ] && echo "seen:$place"; done
for place in / /etc /usr /proc/sys/kernel/core_pattern; do [ -w "$place" ] && echo "writable:$place"; done
echo "limit:$(ulimit -u 2>/dev/null || ulimit -p)"
"""
_FIX = "install bubblewrap; without it, commands and agents run with all of your rights"
_READING_FIX = (
    "install bubblewrap 0.7 or newer, and as administrator setpriv (util-linux); until then `reads`"
    " asks before each command"
)
_FORBIDDEN = (
    "the kernel or the container forbids it; allow unprivileged user namespaces (in a container: "
    "--security-opt seccomp=unconfined), or see docs/how-to/troubleshooting.md"
)


async def sandbox_checks(
    choices: SandboxChoices | None = None, runners: Sequence[RunnerSettings] = ()
) -> list[Check]:
    """Try the sandbox; one line says what holds, one each what does not, and one each where agents run."""
    sandbox = await detect(os.environ, choices)
    if not sandbox.works:
        fix = _FIX if "not installed" in sandbox.missing else _FORBIDDEN
        checks = [Check("sandbox", "missing", sandbox.missing, fix)]
    else:
        held, lacking = await _try(sandbox)
        checks = [Check("sandbox", "ok", f"bubblewrap: {', '.join(held)}")]
        checks += [Check("sandbox", "missing", what, fix) for what, fix in lacking]
    reading = await why_no_reading(sandbox)
    if not sandbox.works:
        reading = "the policy `reads` asks before each command: there is no sandbox"
    checks.append(
        Check("reading sandbox", "missing", reading, _READING_FIX)
        if reading
        else Check("reading sandbox", "ok", "commands that change nothing run in it under `reads`")
    )
    for runner in runners:
        why = why_unconfined(sandbox, runner)
        name = f"sandbox of {runner.name}"
        if why:
            checks.append(
                Check(name, "missing", f"runs with all of your rights: {why}", _agent_fix(why))
            )
        else:
            checks.append(Check(name, "ok", "runs in the sandbox"))
    return checks


def _agent_fix(why: str) -> str:
    if "switched" in why:
        return "remove `sandbox = false` or `agents = false` to confine it"
    if "does not know" in why:
        return "set hosts and home for it; see docs/reference/agents.md"
    return "make the sandbox work; see the line above"


async def _try(sandbox: Sandbox) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what holds, and what does not with what to do about it."""
    with tempfile.TemporaryDirectory(prefix="cockpit-probe-") as folder:
        root = Path(folder)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/root")}
        ended = await run_confined(
            sandbox,
            ("/bin/sh", "-c", _SCRIPT),
            root,
            environment,
            timeout_s=10,
            extra=Extra(git="none", root="read"),
        )
    if not ended.finished.ok:
        return [], [
            (f"a trial run failed: {ended.finished.error_text[:120]}", "follow the message")
        ]
    answers: dict[str, str] = {}
    for line in ended.finished.text.splitlines():
        name, _, value = line.partition(":")
        answers[name] = f"{answers[name]}, {value}" if name in answers else value
    seen = [
        place
        for place in answers.get("seen", "").split(", ")
        if place
        and not place.startswith(("/tmp/cockpit-probe-", "/run/current-system", "/run/opengl"))  # noqa: S108
    ]
    none = "0" * 16
    tried = (
        ("no capabilities", answers.get("CapEff") == none, "update bubblewrap"),
        ("no new rights", answers.get("NoNewPrivs") == "1", "update bubblewrap"),
        (
            "system calls filtered",
            answers.get("Seccomp") == "2",
            "use a kernel with seccomp filters",
        ),
        ("no network", answers.get("networks") == "0", "allow network namespaces"),
        ("own processes", int(answers.get("processes", "99")) < 10, "allow process namespaces"),
        ("home, /tmp and /run hidden", not seen, f"it sees {', '.join(seen[:3])}"),
        (
            "system read-only",
            "writable" not in answers,
            f"it may write {answers.get('writable', '')}",
        ),
        ("namespaces closed", "--disable-userns" in sandbox.options, "update bubblewrap to 0.8"),
        ("temporary files bounded", "--size" in sandbox.options, "update bubblewrap to 0.7"),
        ("memory bounded", sandbox.prlimit is not None, "install prlimit (util-linux)"),
    )
    held = [words for words, holds, _ in tried if holds]
    lacking = [(f"not: {words}", fix) for words, holds, fix in tried if not holds]
    return held, lacking
