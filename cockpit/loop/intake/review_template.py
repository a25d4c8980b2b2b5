"""The values of the review template, from a pull request or from a range.

See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import code_span, fence_text, make_visible
from cockpit.core.secrets import mask

FILES_MAX = 500
"""Paths listed at most: the message is pinned, and must fit the packet."""
DIFF_MAX = 51_200
"""Bytes of UTF-8 that a diff may take in the first message: 50 KiB."""

DIFF_NOTICE = "[Diff truncated at 50KB. Use 'read <path>' for specific files.]"


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
    """The deterministic context of a review."""

    title: str
    author: str
    state: str
    body: str
    diff: str
    files: tuple[ChangedFile, ...]
    linked: tuple[tuple[str, str, str], ...] = ()
    """Reference, title and URL of each linked issue."""
    rev: str | None = None
    """The commit that files are read at; None for the worktree."""
    notice: str = ""
    """A notice for the user."""

    def values(self) -> dict[str, str]:
        """Return the values of the review template, made safe to show and masked.

        What others have written is fenced, or one line: no words of theirs stand where the task's own do.
        """
        body = mask(make_visible(self.body)).strip("\n")
        whole = mask(make_visible(self.diff))
        diff = _cut_diff(whole)
        cut_off = f"\n{DIFF_NOTICE}" if diff != whole else ""
        linked = [
            f"- {ref}: {code_span(_line(title))} ({_line(url)})" for ref, title, url in self.linked
        ]
        return {
            "title": code_span(title) if (title := _line(self.title)) else "(no title)",
            "author": code_span(author) if (author := _line(self.author)) else "(unknown)",
            "state": _line(self.state),
            "body": fence_text(body, "markdown") if body else "(no description)",
            "linked_issues": "\n".join(linked) or "- None",
            "files_changed": summarize_files(self.files),
            "file_list": list_files(self.files),
            "diff": fence_text(diff, "diff") + cut_off if diff else "(no difference)",
        }


def summarize_files(files: Sequence[ChangedFile]) -> str:
    """Return ``3 files changed, 10 insertions, 1 deletion``, as git writes it."""
    counts = (
        (len(files), "file", " changed"),
        (sum(file.insertions for file in files), "insertion", ""),
        (sum(file.deletions for file in files), "deletion", ""),
    )
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}{end}" for n, word, end in counts)


def list_files(files: Sequence[ChangedFile]) -> str:
    """Return one line for each path, with its rename and note; at most :data:`FILES_MAX` lines."""
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
    return mask(make_visible(text).replace("\n", "⟦U+000A⟧")).strip()


def _cut_diff(diff: str) -> str:
    """Return the whole lines of ``diff`` that fit :data:`DIFF_MAX` bytes of UTF-8."""
    raw = diff.encode()
    return diff if len(raw) <= DIFF_MAX else raw[: raw.rfind(b"\n", 0, DIFF_MAX) + 1].decode()
