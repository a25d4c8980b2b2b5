"""What a command uses up: bounded for all of its processes together, and nothing of it is left.

Every attack here is small itself, so that it ends also where its limit is taken out.
"""

from __future__ import annotations

import errno
import fcntl

import pytest
from adversarial.sandbox.sandbox_world import answer, attack, limited

from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

MEGABYTE = 1024**2
SLEEP = "signal.sigtimedwait([signal.SIGUSR1], 20)"
MULTIPLY = f"""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
number = 0
for _ in range(int(sys.argv[1])):
    try:
        if os.fork() == 0:
            os.setsid(); {SLEEP}; os._exit(0)
        number += 1
    except OSError as error:
        print("refused", error.errno); break
print(number, flush=True)
if sys.argv[2] == "stay": {SLEEP}
"""
FILL = f"""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(60 * 1024**2)
        for at in range(0, len(kept), 4096): kept[at] = 1
        {SLEEP}; os._exit(0)
print('began', flush=True)
if sys.argv[1] == "stay": {SLEEP}
"""
WRITE = f"""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for number in range(24):
    with open(f"file-{{number}}", "wb") as file:
        file.write(os.urandom(4 * 1024**2)); file.flush(); os.fsync(file.fileno())
print("written", flush=True)
if sys.argv[1] == "stay": {SLEEP}
"""


async def test_a_fork_bomb_is_ended(ground: Workspace) -> None:
    assert await answer(ground, MULTIPLY, 100, "go") == "100"
    small = limited(ground, processes=50)
    ended = await attack(small, MULTIPLY, 400, "stay")
    # The kernel refuses the next process to a user; an administrator's sandbox is ended as a whole.
    refused = ended.finished.text.startswith(f"refused {errno.EAGAIN}")
    assert refused or "processes, more than 50" in ended.passed


async def test_memory_of_all_processes_is_bounded(ground: Workspace) -> None:
    assert await answer(ground, FILL, "go") == "began"
    ended = await attack(limited(ground, memory_bytes=150 * MEGABYTE), FILL, "stay")
    assert ended.passed == "it used more memory than 150 MiB"


async def test_what_is_written_to_disk_is_bounded(ground_on_disk: Workspace) -> None:
    assert await answer(ground_on_disk, WRITE, "go") == "written"
    ended = await attack(limited(ground_on_disk, written_bytes=20 * MEGABYTE), WRITE, "stay")
    assert ended.passed == "it wrote more than 20 MiB"


async def test_files_and_temporary_places_are_bounded(ground: Workspace) -> None:
    huge = """
try:
    with open("huge", "wb") as file: file.seek(3 * 1024**3); file.write(b"x")
    print("written")
except OSError as error: print(error.errno)
"""
    ignored = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + huge
    assert await answer(ground, ignored) == str(errno.EFBIG)
    fill = """
import os
for place in ("/tmp", "/dev/shm", os.environ["HOME"], "/var/tmp"):
    try:
        with open(f"{place}/fill", "wb") as file: file.write(bytes(12 * 1024**2))
        print("written")
    except OSError as error: print(error.errno)
"""
    assert set((await answer(ground, fill)).split()) == {"written"}
    small = limited(ground, temporary_bytes=4 * MEGABYTE)
    if "--size" in ground.sandbox.options:
        assert set((await answer(small, fill)).split()) == {str(errno.ENOSPC)}


async def test_who_ignores_the_end_is_ended_with_all_that_it_left(ground: Workspace) -> None:
    script = """
import fcntl, os, signal, sys
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
first, second = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    for each in (0, 1, 2): os.close(each)
    file = open("held", "w"); fcntl.flock(file, fcntl.LOCK_EX)
    os.write(second, b"x")
    while True: signal.pause()
os.read(first, 1)
print("held", flush=True)
if sys.argv[1] == "stay":
    while True: signal.pause()
"""
    for ends in ("go", "stay"):
        ended = await attack(ground, script, ends, timeout_s=60 if ends == "go" else 4)
        assert ended.finished.text == "held\n"
        assert ended.finished.timed_out == (ends == "stay")
        with (ground.root / "held").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while the other lives


async def test_endless_output_is_cut(ground: Workspace) -> None:
    ended = await attack(ground, "while True: print('x' * 10_000)")
    assert ended.finished.truncated and len(ended.finished.stdout) <= 4 * MEGABYTE
