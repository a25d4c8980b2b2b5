"""A finding of a rule: a place, a grade, a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Grade = Literal["blocking", "question", "nit", "praise"]
"""``blocking`` must change before a merge, ``question`` wants an answer, ``nit`` is take-or-leave,
``praise`` is what works well."""


class Finding(Struct, frozen=True, order=True):
    """One remark about ``path:line`` (line 0: the file as a whole). ``rule`` names who says so."""

    path: str
    line: int
    rule: str
    grade: Grade
    text: str

    @property
    def place(self) -> str:
        """``src/app.py:12``, as it is cited."""
        return cite(self.path, self.line)


def cite(path: str, line: int) -> str:
    """Return a place in a file as it is cited; line 0 is the file as a whole."""
    return f"{path}:{line}" if line else path


def quote_names(names: Sequence[str], most: int = 4) -> str:
    """Return names as code, the first ``most`` of them, and how many more there are."""
    listed = ", ".join(f"`{name}`" for name in names[:most])
    return listed + (f" and {len(names) - most} more" if len(names) > most else "")
