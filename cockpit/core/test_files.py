"""Which files are tests, by what naming conventions call them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_NAME = re.compile(
    r"(?:^|[._-])(?:tests?|specs?)(?:[._-]|\Z)|(?:Test|Tests|Spec)\Z|\Aconftest\Z", re.ASCII
)
_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__", "testing"})


def is_test(path: str) -> bool:
    """Whether the file at ``path`` is a test, by its name or its folder."""
    pure = PurePosixPath(path)
    return bool(_FOLDERS & set(pure.parts[:-1]) or _NAME.search(pure.stem))
