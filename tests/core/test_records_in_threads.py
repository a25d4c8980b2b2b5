"""A record may be read by two threads at once, also for the first time."""

from __future__ import annotations

import subprocess
import sys

READS = """
import json, sys, threading
sys.setswitchinterval(1e-6)
from cockpit.core.read_record import convert, decode_json
SOURCE = '''
from __future__ import annotations
import msgspec
class Part(msgspec.Struct, frozen=True):
    number: int = 0
    names: tuple[str, ...] = ()
class Whole(msgspec.Struct, frozen=True):
    name: str
    parts: tuple[Part, ...] = ()
    counts: dict[str, int | None] | None = None
'''
import types
for number in range(100):
    module = sys.modules[f"module_{number}"] = types.ModuleType(f"module_{number}")
    exec(SOURCE, module.__dict__)
    ready = threading.Barrier(2)
    def read(reader, value):
        ready.wait()
        assert reader(value, module.Whole).parts[0].number == 3
    value = {"name": "a", "parts": [{"number": 3}]}
    threads = [threading.Thread(target=read, args=each)
               for each in ((decode_json, json.dumps(value)), (convert, value))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("read")
"""


def test_two_threads_read_a_new_record_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", READS], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("read\n", 0), done.stderr[-2000:]
