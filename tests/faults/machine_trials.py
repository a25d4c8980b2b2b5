"""A session on a machine with faults of its own: a torn log, a full or read-only disk.

The clock jumps in ``simulation.py``.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from faults.injected_faults import Fault
from faults.session_trials import Child, Verdict, World, judge, make_world, run_session

from cockpit.core.project_paths import locate_project

FRAME = 4096 + 24
"""Bytes of a page in SQLite's log, with its header."""


def try_torn_log(world: World, folder: Path, moments: int, seed: int) -> Verdict:
    """Kill a session at a random moment, tear its log as a machine without power does, and go on.

    What was not synced is torn: part of a page that was never committed stands behind the log's end, or the
    last bytes of it are of another time.
    """
    chance = random.Random(seed)
    copy = world.copy(folder)
    fault = Fault("kill", chance.randint(60, moments))
    Child.start(copy, lambda: run_session(copy), fault).wait()
    copy.use_state()
    log = locate_project(copy.root).database.with_name("cockpit.db-wal")
    if log.exists():
        with log.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            end = file.tell()
            # A frame that begins, with the salt of those before it and no right sum.
            file.seek(max(0, end - FRAME))
            header = file.read(24)
            file.seek(0, os.SEEK_END)
            file.write(header + chance.randbytes(chance.randint(0, FRAME)))
    shared = log.with_name("cockpit.db-shm")
    if chance.random() < 0.5:
        shared.unlink(missing_ok=True)
    code, words, _ = Child.start(copy, lambda: run_session(copy)).wait()
    verdict = judge(copy) if code == 0 else Verdict(stranded=[f"going on: {code}: {words}"])
    shutil.rmtree(folder)
    return verdict


def try_disk(folder: Path, seed: int, *, read_only: bool) -> Verdict:
    """Run a session on a small disk that is full, or read-only, for a while; only in its own namespace."""
    chance = random.Random(seed)
    world = make_world(folder / "world")
    filler = folder / "filler"
    if read_only:
        # Nothing can make a disk read-only while a file on it is open for writing.
        Child.start(world, lambda: run_session(world), Fault("kill", chance.randint(1, 900))).wait()
        _remount(folder, "ro")
    else:
        _fill(filler, leave=chance.randint(0, 4_000_000))
    code, words, _ = Child.start(world, lambda: run_session(world)).wait()
    verdict = Verdict()
    if code not in (0, 1):
        verdict.stranded.append(f"the disk ended it with {code}: {words}")
    if read_only:
        _remount(folder, "rw")
    else:
        filler.unlink()
    code, words, _ = Child.start(world, lambda: run_session(world)).wait()
    if code == 0:
        after = judge(world)
        verdict = Verdict(after.lost, after.doubled, verdict.stranded + after.stranded)
    else:
        verdict.stranded.append(f"going on ended with {code}: {words}")
    shutil.rmtree(world.folder)
    return verdict


def _fill(filler: Path, *, leave: int) -> None:
    """Fill the disk but for ``leave`` bytes."""
    with filler.open("wb", buffering=0) as file:
        block = b"\0" * 65_536
        while True:
            try:
                file.write(block)
            except OSError:
                break
        file.truncate(max(0, file.tell() - leave))


def _remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


def in_small_disk(arguments: list[str], folder: Path) -> str:
    """Run ``chaos.py ARGUMENTS`` where ``folder`` is a disk of 24 MB; returns what it prints.

    The disk is mounted in a namespace of its own: nothing of this machine changes.
    """
    folder.mkdir()
    script = 'mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@"'
    chaos = Path(__file__).with_name("chaos.py")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder)]
    return subprocess.run(
        [*command, sys.executable, str(chaos), *arguments], stdout=subprocess.PIPE, text=True
    ).stdout
