"""The difference between two texts, as a prompt shows it in place of the newer one.

See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import difflib

MAX_LINES = 6_000
"""Longer texts are not compared: the newer one is shown whole."""
_CONTEXT = 2
_NO_NEWLINE = "\\ No newline at end of file\n"


def describe_change(before: str, after: str) -> str | None:
    """Return the unified diff that makes ``before`` into ``after``; None where they are not compared.

    Equal texts give a line that says so.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return None
    lines = list(difflib.unified_diff(old, new, n=_CONTEXT))[2:]
    if not lines:
        return "(the same text)"
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines
    ).removesuffix("\n")
