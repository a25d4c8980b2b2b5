"""``file:PATH[:A-B]``: a text file, or some of its lines; ``file:GLOB`` estimates them all."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.confined_paths import PathRefused
from cockpit.access.secret_files import is_sensitive
from cockpit.core.secrets import mask, mask_key_blocks
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import estimate_bytes, estimate_lines
from cockpit.observe.expand_globs import match_glob
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.outline import outline, text_lines
from cockpit.observe.preview_cost import Preview, band_for, estimate_level, estimate_preview
from cockpit.observe.project_files import MAX_FILE_BYTES, FileEntry, find_blob, read_blob
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sensitive_files import list_setting_names, why_by_reference
from cockpit.store.context.facts import Fact

MAX_SLICED_BYTES = 64_000_000
"""Largest file of which some lines may be asked for."""

_SNIFF = 8_000


class FileSource(Struct, frozen=True):
    """Reads files from the disk, or from the reviewed revision."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By size alone (and the first 8 KB, to tell text from binary)."""
        files = await match_glob(item, ground)
        if files is not None:
            return _estimated_all(item, files)
        entry = await _entry(item, ground)
        _check_size(item, entry)
        await _check_text(entry, ground)
        note = why_by_reference(entry.path, entry.size if item.lines is None else 0)
        if note and item.level == "full":
            tokens = estimate_level("outline", estimate_bytes(entry.size))
            return Preview(item, tokens, band_for(item.kind), note=note)
        if item.lines is None:
            return estimate_preview(item, estimate_bytes(entry.size), note=f"{entry.size:,} bytes")
        lines = item.lines[1] - item.lines[0] + 1
        tokens = min(estimate_lines(lines), estimate_bytes(entry.size))
        return estimate_preview(item, tokens, note=pluralize(lines, "line"))

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact. Its provenance has the path, the revision, the lines that it holds, how many
        the file has, and the SHA-256 of the whole file. A glob is expanded before (:mod:`.expand`)."""
        if await match_glob(item, ground) is not None:
            raise SourceFailed(f"{item.ref!r} names many files; they are read one by one")
        if ground.rev is None:
            return [await asyncio.to_thread(_fact_on_disk, item, ground)]
        entry = await _entry(item, ground)
        _check_size(item, entry)
        content = await read_blob(ground, entry, entry.size)
        return [await asyncio.to_thread(_fact, item, entry.path, content, ground.rev)]


def _estimated_all(item: ScopeItem, files: Sequence[FileEntry]) -> Preview:
    """What a glob's files would cost together, by their sizes alone."""
    readable = [entry for entry in files if item.lines or entry.size <= MAX_FILE_BYTES]
    tokens = 0
    for entry in readable:
        full = estimate_bytes(entry.size)
        if item.lines is not None:
            full = min(full, estimate_lines(item.lines[1] - item.lines[0] + 1))
        brief = item.level == "full" and why_by_reference(
            entry.path, 0 if item.lines else entry.size
        )
        tokens += estimate_level("outline" if brief else item.level, full)
    size = sum(entry.size for entry in readable)
    too_large = len(files) - len(readable)
    over = f"; {pluralize(too_large, 'file')} too large to read whole" if too_large else ""
    note = f"{pluralize(len(readable), 'file')}, {size:,} bytes{over}"
    return Preview(item, tokens, band_for(item.kind), note=note)


def _fact(item: ScopeItem, path: str, content: bytes, rev: str | None, leads_to: str = "") -> Fact:
    """``leads_to`` is the file that a link of this path leads to: its name counts as well."""
    if b"\0" in content[:_SNIFF]:
        raise SourceFailed(f"{path!r} is binary")
    sha256 = hashlib.sha256(content).hexdigest()
    lines = text_lines(mask_key_blocks(content.decode("utf-8", "replace")))
    first, last = _held(item, path, len(lines))
    text = mask("".join(lines[first - 1 : last])) if lines else ""
    if len(text) > MAX_FILE_BYTES:
        raise SourceFailed(f"{path!r}: these lines hold {len(text):,} characters; ask for fewer")
    named = ScopeItem("file", path, item.lines and (first, last), level=item.level)
    whole = item.lines is None
    named_for = leads_to if is_sensitive(leads_to) else path
    kept_back = why_by_reference(named_for, len(text.encode("utf-8", "replace")))
    shape = (
        list_setting_names(text) if is_sensitive(named_for) else outline(path, text, first=first)
    )
    return make_fact(
        named,
        text,
        outline=shape,
        by_reference=bool(kept_back),
        reference=(
            f"{path}{'' if whole else f' lines {first}-{last}'}"
            f" ({pluralize(len(lines), 'line')} in all, sha256 {sha256[:12]})"
        ),
        provenance={
            "path": path,
            "rev": rev,
            "lines": [first, last],
            "total_lines": len(lines),
            "sha256": sha256,
        },
        key=path if whole else f"{path}:{first}-{last}",
    )


def _held(item: ScopeItem, path: str, total: int) -> tuple[int, int]:
    if item.lines is None:
        return (1, total) if total else (0, 0)
    if item.lines[0] > total:
        raise SourceFailed(
            f"{path!r} has {pluralize(total, 'line')}; line {item.lines[0]} is past it"
        )
    return item.lines[0], min(item.lines[1], total)


async def _entry(item: ScopeItem, ground: ProjectSnapshot) -> FileEntry:
    if ground.rev is not None:
        return await find_blob(ground, ground.rev, item.ref)
    return await asyncio.to_thread(_on_disk, item.ref, ground)


def _on_disk(ref: str, ground: ProjectSnapshot) -> FileEntry:
    path = ground.confined.relative(ref)
    with _opened(path, ground) as file:
        return FileEntry(path, os.fstat(file.fileno()).st_size)


def _fact_on_disk(item: ScopeItem, ground: ProjectSnapshot) -> Fact:
    """Opened once, in one go on one thread: there may be thousands."""
    path = ground.confined.relative(item.ref)
    with _opened(path, ground) as file:
        _check_size(item, FileEntry(path, os.fstat(file.fileno()).st_size))
        content = _bytes(path, file, MAX_SLICED_BYTES + 1)
    if len(content) > MAX_SLICED_BYTES:
        raise SourceFailed(f"{path!r} grew too large while it was read")
    leads_to = ground.confined.inside(path).relative_to(ground.confined.root)
    return _fact(item, path, content, None, leads_to.as_posix())


def _opened(path: str, ground: ProjectSnapshot) -> BinaryIO:
    try:
        return ground.confined.open_read(path)
    except PathRefused as refused:
        if ground.confined.inside(path).is_dir():
            raise SourceFailed(
                f"{path!r} is a directory; ask for tree:{path}, or file:{path}/** for its files"
            ) from refused
        raise


def _check_size(item: ScopeItem, entry: FileEntry) -> None:
    if item.lines is None and entry.size > MAX_FILE_BYTES:
        raise SourceFailed(
            f"{entry.path!r} has {entry.size:,} bytes, too many to read whole; "
            f"ask for lines: {replace(item, ref=entry.path, lines=(1, 400))}"
        )
    if entry.size > MAX_SLICED_BYTES:
        raise SourceFailed(f"{entry.path!r} has {entry.size:,} bytes, too many to read from")


async def _check_text(entry: FileEntry, ground: ProjectSnapshot) -> None:
    if entry.oid:
        content = await read_blob(ground, entry, entry.size)
        start = content[:_SNIFF]
    else:
        start = await asyncio.to_thread(_read, entry, ground, _SNIFF)
    if b"\0" in start:
        raise SourceFailed(f"{entry.path!r} is binary")


def _read(entry: FileEntry, ground: ProjectSnapshot, most: int) -> bytes:
    with _opened(entry.path, ground) as file:
        return _bytes(entry.path, file, most)


def _bytes(path: str, file: BinaryIO, most: int) -> bytes:
    try:
        return file.read(most)
    except OSError as error:
        raise SourceFailed(f"{path!r} cannot be read: {error.strerror}") from error
