"""A stand-in for ``gh``: posts into a JSON file beside it, reads from there, fails on request.

The file's ``fail`` is a list, one entry a run that writes: '' (works), 'before:WORDS' (fails with
WORDS, nothing posted), 'after:WORDS' (posts, then fails with WORDS), 'hang' (posts, then never ends).
"""

import json
import os
import pathlib
import signal
import sys

WORLD = pathlib.Path(__file__).with_name("github.json")
argv = sys.argv[1:]
world = json.loads(WORLD.read_text())


def value(flag):
    return argv[argv.index(flag) + 1] if flag in argv else None


if argv[1] in {"view", "list"}:
    if world.get("offline"):
        sys.exit("error connecting to api.github.com")
    entries = world["entries"]
    if value("--json") == "state":
        print(json.dumps({"state": world.get("state", "OPEN")}))
    elif argv[1] == "list":
        print(json.dumps([{"number": 1, "body": entry["body"]} for entry in entries]))
    else:
        print(json.dumps({"comments": entries, "reviews": []}))
    sys.exit(0)

world["runs"] += 1
how = world["fail"].pop(0) if world["fail"] else ""
if how.startswith("before:"):
    WORLD.write_text(json.dumps(world))
    sys.exit(how.partition(":")[2])
if argv[1] == "merge":
    world["state"] = "MERGED"
else:
    body = sys.stdin.read() if "--body-file" in argv else value("--body")
    world["entries"].append({"argv": argv, "body": body})
WORLD.write_text(json.dumps(world))
if how == "hang":
    partial = WORLD.with_name("posting")
    partial.write_text(str(os.getpid()))
    partial.rename(WORLD.with_name("posted"))
    signal.pause()
if how.startswith("after:"):
    sys.exit(how.partition(":")[2])
print("https://github.com/acme/api/pull/24#issuecomment-1")
