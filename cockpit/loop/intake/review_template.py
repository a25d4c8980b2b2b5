"""The values of the review template, from a pull request or from a range.

See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import code_span, fence_text
from cockpit.core.secrets import mask

DIFF_MAX = 51_200
"""Bytes of UTF-8 that a diff may take in the first message: 50 KiB."""

DIFF_NOTICE = "[Diff truncated at 50KB. Use 'read <path>' for specific files.]"

FILES_MAX = 500
"""Paths listed at most: the message is pinned, and must fit the packet."""

# Everything that can steer a terminal or reorder what is read: C0 without tab and newline, DEL, C1,
# and the bidirectional controls.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class OpeningFailed(CockpitError):
    """A task cannot start, and nothing of its context is used. The message says what to do."""

    code = "opening_failed"


class ChangedFile(Struct, frozen=True):
    """One changed file: ``path`` now, ``was`` before a rename, lines in and out, and what else."""

    path: str
    insertions: int = 0
    deletions: int = 0
    was: str = ""
    note: str = ""


class ReviewContext(Struct, frozen=True):
    """The deterministic context of a review. ``linked`` are (reference, title, URL); ``rev`` is the
    commit that files are read at, or None for the worktree; ``notice`` is for the user."""

    title: str
    author: str
    state: str
    body: str
    diff: str
    files: tuple[ChangedFile, ...]
    linked: tuple[tuple[str, str, str], ...] = ()
    rev: str | None = None
    notice: str = ""

    def values(self) -> dict[str, str]:
        """Return the values of the review template, made safe to show and masked.

        What others have written is fenced, or one line: no words of theirs stand where the task's own do.
        """
        body = mask(visible(self.body)).strip("\n")
        whole = mask(visible(self.diff))
        diff = cut(whole)
        cut_off = f"\n{DIFF_NOTICE}" if diff != whole else ""
        diff = diff.removesuffix(f"{DIFF_NOTICE}\n") if cut_off else diff
        linked = [
            f"- {ref}: {code_span(_line(title))} ({_line(url)})" for ref, title, url in self.linked
        ]
        return {
            "title": code_span(title) if (title := _line(self.title)) else "(no title)",
            "author": code_span(author) if (author := _line(self.author)) else "(unknown)",
            "state": _line(self.state),
            "body": fence_text(body, "markdown") if body else "(no description)",
            "linked_issues": "\n".join(linked) or "- None",
            "files_changed": summary(self.files),
            "file_list": listing(self.files),
            "diff": fence_text(diff, "diff") + cut_off if diff else "(no difference)",
        }


def visible(text: str) -> str:
    """``text`` with control characters spelled out (``⟦U+001B⟧``), so that nothing in a change can
    steer a terminal or hide from a reader. Tab and newline stay; ``\\r`` at a line's end is ``␍``."""
    marked = re.sub(r"\r(?=\n|\Z)", "␍", _SURROGATE.sub("\ufffd", text))
    return _CONTROL.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", marked)


def cut(diff: str, limit: int = DIFF_MAX) -> str:
    """``diff`` in at most ``limit`` bytes of UTF-8, whole lines only, and the notice if cut."""
    raw = diff.encode()
    if len(raw) <= limit:
        return diff
    end = raw.rfind(b"\n", 0, limit)
    head = raw[: end + 1].decode()
    return f"{head}{DIFF_NOTICE}\n"


def summary(files: Sequence[ChangedFile]) -> str:
    """``3 files changed, 10 insertions, 1 deletion``."""
    counts = (
        (len(files), "file", " changed"),
        (sum(file.insertions for file in files), "insertion", ""),
        (sum(file.deletions for file in files), "deletion", ""),
    )
    # As git writes them, which is what readers of the first message look for.
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}{end}" for n, word, end in counts)


def listing(files: Sequence[ChangedFile]) -> str:
    """One path a line, with what a line count does not tell."""
    lines = []
    for file in files[:FILES_MAX]:
        notes = [f"renamed from {code_span(_line(file.was))}"] if file.was else []
        notes += [file.note] if file.note else []
        lines.append(
            f"- {code_span(_line(file.path))}" + (f" ({'; '.join(notes)})" if notes else "")
        )
    if len(files) > FILES_MAX:
        lines.append(f"- … and {len(files) - FILES_MAX} more")
    return "\n".join(lines)


def _line(text: str) -> str:
    return mask(visible(text).replace("\n", "⟦U+000A⟧")).strip()
