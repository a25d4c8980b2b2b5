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
from cockpit.observe.expand_globs import match_glob
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.outline import MOST_ENTRIES, outline, text_lines
from cockpit.observe.preview_cost import Preview, band_for, choose_sample, estimate_sum
from cockpit.observe.project_files import (
    MAX_FILE_BYTES,
    FileEntry,
    find_blob,
    read_blob,
    read_contents,
)
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.rendered_cost import sum_costs
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sensitive_files import list_setting_names, why_by_reference
from cockpit.store.context.facts import Fact

MAX_SLICED_BYTES = 64_000_000
"""Largest file of which some lines may be asked for."""

_SNIFF = 8_000
_START_BYTES = 64_000
"""Of a longer file, an estimate measures this much and infers the rest."""
_START_IN_GLOB = 16_000


class _FileText(Struct, frozen=True):
    """A text file, or its first bytes; ``size`` are the bytes of all of it.

    ``leads_to`` is the file that a link of this path leads to: its name counts as well.
    """

    path: str
    content: bytes
    size: int
    leads_to: str = ""

    @property
    def name(self) -> str:
        """The name that says whether the file holds secrets."""
        return self.leads_to if is_sensitive(self.leads_to) else self.path


class FileSource(Struct, frozen=True):
    """Reads files from the disk, or from the reviewed revision."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """By measuring its start, or those of a sample of the files; what is read is discarded."""
        files = await match_glob(item, ground)
        if files is not None:
            return await _estimate_all(item, files, ground)
        file = await _read(item, ground, _START_BYTES)
        tokens = await asyncio.to_thread(_estimate, item, file, ground.rev)
        note = "" if item.level != "full" else _why_by_reference(item, file)
        if not note and item.lines is None:
            note = f"{file.size:,} bytes"
        elif not note and item.lines is not None:
            note = pluralize(item.lines[1] - item.lines[0] + 1, "line")
        return Preview(item, tokens, band_for(item.kind), note=note)

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """One fact. Its provenance has the path, the revision, the lines that it holds, how many
        the file has, and the SHA-256 of the whole file. A glob is expanded before (:mod:`.expand`)."""
        if await match_glob(item, ground) is not None:
            raise SourceFailed(f"{item.ref!r} names many files; they are read one by one")
        if ground.rev is None:
            return [await asyncio.to_thread(_fact_on_disk, item, ground)]
        file = await _read(item, ground, MAX_SLICED_BYTES)
        return [await asyncio.to_thread(_fact, item, file, ground.rev)]


async def _estimate_all(
    item: ScopeItem, files: Sequence[FileEntry], ground: ProjectSnapshot
) -> Preview:
    """Estimate what a glob's files cost together."""
    readable = [entry for entry in files if item.lines or entry.size <= MAX_FILE_BYTES]
    tokens = await _estimate_sample(item, readable, ground)
    size = sum(entry.size for entry in readable)
    too_large = len(files) - len(readable)
    over = f"; {pluralize(too_large, 'file')} too large to read whole" if too_large else ""
    note = f"{pluralize(len(readable), 'file')}, {size:,} bytes{over}"
    return Preview(item, tokens, band_for(item.kind), note=note)


async def _estimate_sample(
    item: ScopeItem, files: Sequence[FileEntry], ground: ProjectSnapshot
) -> int:
    sizes = [entry.size for entry in files]
    starts: dict[str, bytes] = {}
    if ground.rev is not None:
        sample = [files[place] for place, _ in choose_sample(sizes)]
        async for chunk in read_contents(ground, sample):
            starts.update((path, content[:_START_IN_GLOB]) for path, content in chunk)

    def cost_at(place: int) -> int:
        entry = files[place]
        try:
            if ground.rev is None:
                inner = replace(item, ref=entry.path)
                file = _read_on_disk(inner, ground, _START_IN_GLOB)
            else:
                file = _FileText(entry.path, starts.get(entry.path, b""), entry.size)
            return _estimate(replace(item, ref=entry.path), file, ground.rev)
        except (SourceFailed, PathRefused):
            return 0  # it fails when it is read, too, and the outcome says why

    return await asyncio.to_thread(estimate_sum, sizes, cost_at)


def _estimate(item: ScopeItem, file: _FileText, rev: str | None) -> int:
    """Count what a packet spends on the file; from a start of it, infer the rest."""
    held = len(text_lines(file.content.decode("utf-8", "replace")))
    if len(file.content) >= file.size or (item.lines is not None and item.lines[1] < held):
        return sum_costs([_fact(item, file, rev)])
    fact = _fact(replace(item, lines=None), file, rev)
    ratio = file.size / len(file.content)
    if item.level == "outline" or _why_by_reference(item, file):
        ratio = min(ratio, MOST_ENTRIES / (1 + fact.full.text.count("\n")))
    elif item.lines is not None:
        ratio = min(ratio, (item.lines[1] - item.lines[0] + 1) / held)
    if item.level == "reference":
        ratio = 1.0
    return sum_costs([fact]) + int(fact.full.tokens * (ratio - 1))


def _why_by_reference(item: ScopeItem, file: _FileText) -> str:
    return why_by_reference(file.name, file.size if item.lines is None else 0)


def _fact(item: ScopeItem, file: _FileText, rev: str | None) -> Fact:
    path, content = file.path, file.content
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
    size = file.size if whole else len(text.encode("utf-8", "replace"))
    shape = (
        list_setting_names(text) if is_sensitive(file.name) else outline(path, text, first=first)
    )
    return make_fact(
        named,
        text,
        outline=shape,
        by_reference=bool(why_by_reference(file.name, size)),
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


async def _read(item: ScopeItem, ground: ProjectSnapshot, most: int) -> _FileText:
    if ground.rev is None:
        return await asyncio.to_thread(_read_on_disk, item, ground, most)
    entry = await find_blob(ground, ground.rev, item.ref)
    _check_size(item, entry)
    content = await read_blob(ground, entry, entry.size)
    return _FileText(entry.path, content[:most], entry.size)


def _fact_on_disk(item: ScopeItem, ground: ProjectSnapshot) -> Fact:
    """Opened once, in one go on one thread: there may be thousands."""
    file = _read_on_disk(item, ground, MAX_SLICED_BYTES + 1)
    if len(file.content) > MAX_SLICED_BYTES:
        raise SourceFailed(f"{file.path!r} grew too large while it was read")
    return _fact(item, file, None)


def _read_on_disk(item: ScopeItem, ground: ProjectSnapshot, most: int) -> _FileText:
    path = ground.confined.relative(item.ref)
    with _opened(path, ground) as opened:
        size = os.fstat(opened.fileno()).st_size
        _check_size(item, FileEntry(path, size))
        content = _bytes(path, opened, most)
    if len(content) < most:
        size = len(content)
    leads_to = ground.confined.inside(path).relative_to(ground.confined.root)
    return _FileText(path, content, size, leads_to.as_posix())


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


def _bytes(path: str, file: BinaryIO, most: int) -> bytes:
    try:
        return file.read(most)
    except OSError as error:
        raise SourceFailed(f"{path!r} cannot be read: {error.strerror}") from error
