"""Patches, taken apart file by file."""

from __future__ import annotations

import re

from msgspec import Struct

from cockpit.observe.preview_cost import printable_path

MAX_PATCH = 200_000
"""Most characters of one file's patch; the rest is cut at a line."""

_HUNK = re.compile(r"@@ -[0-9]+(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@")
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "\\": "\\",
}  # fmt: skip


class FilePatch(Struct, frozen=True):
    """One file's part of a patch. ``old_path`` differs from ``path`` for renames and copies."""

    path: str
    old_path: str
    status: str
    added: int
    removed: int
    text: str

    @property
    def title(self) -> str:
        """``src/a.py modified +3 −1``."""
        moved = f" (was {printable_path(self.old_path)})" if self.old_path != self.path else ""
        return f"{printable_path(self.path)}{moved} {self.status} +{self.added} −{self.removed}"

    @property
    def hunks(self) -> list[str]:
        """The hunks' header lines."""
        return [line for line in self.text.split("\n") if _HUNK.match(line)]


def split_patch(patch: str) -> list[FilePatch]:
    """The files of a patch in git's format, in its order.

    Lines of content always begin with a space, ``+``, ``-`` or a backslash, so that a line that
    begins with ``diff --git`` is the start of a file whatever the files hold.
    """
    parts: list[list[str]] = []
    for line in patch.split("\n"):
        if line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
            parts.append([])
        if parts:
            parts[-1].append(line)
    return [_file(lines) for lines in parts]


def cut_patch(text: str) -> str:
    """``text`` without what is past :data:`MAX_PATCH`, ended at a line, with a notice."""
    if len(text) <= MAX_PATCH:
        return text
    at = text.rfind("\n", 0, MAX_PATCH) + 1 or MAX_PATCH
    more = text.count("\n", at)
    return f"{text[:at]}… {more} more lines of this file's diff are not shown\n"


def _file(lines: list[str]) -> FilePatch:
    old, new, status = "", "", "modified"
    added = removed = 0
    in_hunk = False
    for line in lines:
        if line.startswith("@@"):
            in_hunk = True
        elif in_hunk:
            added += line.startswith("+")
            removed += line.startswith("-")
        elif line.startswith("--- "):
            old = old or _side(line[4:], "a/")
        elif line.startswith("+++ "):
            new = new or _side(line[4:], "b/")
        elif line.startswith(("rename from ", "copy from ")):
            status = "renamed" if line.startswith("rename") else "copied"
            old = _unquoted(line.split(" from ", 1)[1])
        elif line.startswith(("rename to ", "copy to ")):
            new = _unquoted(line.split(" to ", 1)[1])
        elif line.startswith("new file mode"):
            status = "added"
        elif line.startswith("deleted file mode"):
            status = "deleted"
        elif line.startswith("old mode"):
            status = "mode changed"
        elif line.startswith(("Binary files", "GIT binary patch")):
            status = f"binary, {status}"
    if not old and not new:
        old = new = _from_header(lines[0])
    if status == "mode changed" and in_hunk:
        status = "modified"
    text = "\n".join(lines)
    return FilePatch(new or old, old or new, status, added, removed, text.rstrip("\n") + "\n")


def _side(text: str, prefix: str) -> str:
    name = _unquoted(text.split("\t", 1)[0] if not text.startswith('"') else text)
    return "" if name == "/dev/null" else name.removeprefix(prefix)


def _from_header(line: str) -> str:
    """The path when both sides have the same, as they do where nothing else names them."""
    rest = line.removeprefix("diff --git ").removeprefix("diff --cc ")
    if rest.startswith('"'):
        end = re.match(r'"(?:[^"\\]|\\.)*"', rest)
        return _unquoted(end[0] if end else rest).removeprefix("a/")
    half = (len(rest) - 1) // 2
    return rest[:half].removeprefix("a/") if rest[half : half + 1] == " " else rest


def _unquoted(text: str) -> str:
    """A path as git writes it: as it is, or in C quotes with octal bytes."""
    text = text.rstrip("\t")
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    out = bytearray()
    for token in re.findall(r"\\[0-7]{3}|\\.|[^\\]+", text[1:-1]):
        if not token.startswith("\\"):
            out += token.encode("utf-8", "surrogateescape")
        elif token[1] in "01234567":
            out.append(int(token[1:], 8) & 0xFF)
        else:
            out += _ESCAPES.get(token[1], token[1]).encode()
    return out.decode("utf-8", "replace")
