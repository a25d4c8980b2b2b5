"""Record histories of the algorithm in use: the facts of the others, and the packets compiled from them.

    PYTHONPATH=tests python tests/orient/histories/record.py

writes every history whose file is not there yet. A recorded file is never written again: when the
compiler's results are meant to change, its ``ALGORITHM`` gets a new name, and new histories join the
old ones.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from orient.replay_cases import compiled

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.compile_packet import ALGORITHM


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("*.json.gz")):
        scene = path.name.partition(".")[0]
        target = path.with_name(f"{scene}.{ALGORITHM.replace('/', '-')}.json.gz")
        if target.exists():
            continue
        history = json.loads(gzip.decompress(path.read_bytes()))
        packet = compiled(history, algorithm=ALGORITHM)
        history |= {"packet": canonical_json(packet.body()), "digest": packet.digest}
        target.write_bytes(gzip.compress(json.dumps(history, indent=0).encode(), mtime=0))
        print(target.name, packet.digest[:12], packet.facts, dict(packet.drops))


if __name__ == "__main__":
    main()
