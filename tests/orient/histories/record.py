"""Record the histories again: their facts, and the packets that the compiler makes of them now.

    PYTHONPATH=tests python tests/orient/histories/record.py

Run it when the compiler's results are meant to change, and its ``ALGORITHM`` has a new name.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from orient.replay_cases import compiled

from cockpit.core.canonical_json import canonical_json


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("*.json.gz")):
        history = json.loads(gzip.decompress(path.read_bytes()))
        packet = compiled(history)
        history |= {"packet": canonical_json(packet.body()), "digest": packet.digest}
        path.write_bytes(gzip.compress(json.dumps(history, indent=0).encode(), mtime=0))
        print(path.name, packet.digest[:12], packet.facts, dict(packet.drops))


if __name__ == "__main__":
    main()
