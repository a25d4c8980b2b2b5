"""Archives of pruned rows: compressed JSON lines, complete and on disk before a row is deleted.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import StoreError, StoreUnwritable

Line = tuple[str, dict[str, Any]]
"""A table's name and one of its rows by column."""


def write_archive(folder: Path, name: str, lines: Iterable[Line]) -> Path:
    """Write the complete archive ``name`` in ``folder``: a private file, synced with its folder.

    Raises :class:`StoreUnwritable`; then no archive of that name exists.
    """
    target = folder / f"{name}.jsonl.gz"
    part = target.with_suffix(".part")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
                for table, row in lines:
                    file.write(f"{canonical_json({'table': table, 'row': row})}\n".encode())
            raw.flush()
            os.fsync(raw.fileno())
        part.rename(target)
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)
    except OSError as error:
        if folder.is_dir():
            part.unlink(missing_ok=True)
        raise StoreUnwritable(
            f"The archive {target} cannot be written: {error.strerror or error}. Nothing was deleted."
        ) from error
    return target


def read_archive(archive: Path) -> list[Line]:
    """Read an archive. Raises :class:`StoreError` for a file that is none, or a part of one."""
    try:
        with gzip.open(archive, "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [(str(line["table"]), dict(line["row"])) for line in lines]
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise StoreError(f"{archive} is not a complete archive of cockpit: {error}.") from error


def select_lines(
    connection: sqlite3.Connection, table: str, where: str, values: tuple[Any, ...]
) -> Iterator[Line]:
    """Yield a table's rows; ``where`` is a condition of ours, never text from outside."""
    rows = connection.execute(f"SELECT * FROM {table} WHERE {where}", values)  # noqa: S608 - ours
    names = [column[0] for column in rows.description]
    for row in rows:
        yield table, dict(zip(names, row, strict=True))
