"""The file of the knowledge index: documents in chunks, their words for keyword search, and their vectors.

``knowledge.db`` is derived from the project and its store: it can be deleted at any time. A damaged file, and
one of another version, is rebuilt. Text is masked before it is stored. See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask, mask_key_blocks
from cockpit.observe.knowledge.chunk_document import chunk_document
from cockpit.observe.knowledge.passage import KINDS, ROUTE, Chunk
from cockpit.store.db.word_stems import TOKENIZER

VERSION = 2
"""The version of the file's tables and of how documents are cut; another one is rebuilt."""
MAX_DOCUMENT_CHARS = 1_000_000
"""Characters of a document; the rest of a longer one is left out."""
MAX_CHUNKS = 100_000
"""Chunks of one index; documents past it are left out, and :meth:`KnowledgeIndex.count` says so."""
BUSY_TIMEOUT_S = 10.0
_MODEL = "model"

_TABLES = f"""
CREATE TABLE documents (
  document_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, ref TEXT NOT NULL, title TEXT NOT NULL,
  digest TEXT NOT NULL, stamp TEXT NOT NULL, UNIQUE (kind, ref));
CREATE TABLE chunks (
  chunk_id INTEGER PRIMARY KEY, document_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
  first_line INTEGER NOT NULL, last_line INTEGER NOT NULL, digest TEXT NOT NULL, embedded TEXT NOT NULL);
CREATE INDEX chunks_by_document ON chunks (document_id);
CREATE INDEX chunks_by_embedded ON chunks (embedded);
CREATE VIRTUAL TABLE words USING fts5(title, text, ref, tokenize='{TOKENIZER}');
CREATE VIRTUAL TABLE terms USING fts5vocab(words, 'row');
CREATE TABLE vectors (embedded TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

P = ParamSpec("P")
T = TypeVar("T")


class IndexUnusable(CockpitError):
    """The index cannot be opened, or was damaged while it was open; the message says what happened."""

    code = "knowledge_unusable"


class IndexBusy(IndexUnusable):
    """Another process writes the index for longer than one waits. Nothing is wrong with the file."""

    code = "knowledge_busy"


class _Unfit(Exception):
    """A file that is not an index of this version; the message goes on from its name."""


class IndexCounts(Struct, frozen=True):
    """What an index contains."""

    documents: Mapping[str, int]
    """Documents by kind."""
    chunks: int
    vectors: int
    """Chunks that have a vector."""
    bytes: int
    """The size of the file."""
    is_full: bool
    """Whether it has reached :data:`MAX_CHUNKS`."""


class ReadyDocument(Struct, frozen=True):
    """A document as the index has it, its secrets masked."""

    kind: str
    ref: str
    title: str
    text: str
    digest: str
    """Of title and text."""

    @property
    def key(self) -> tuple[str, str]:
        """What it is indexed under."""
        return self.kind, self.ref


class StoredChunk(Struct, frozen=True):
    """A chunk of the index, as a search reads it."""

    chunk_id: int
    kind: str
    ref: str
    start: int
    end: int
    title: str
    text: str
    digest: str


def _translated(call: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Hold the index's lock, and report SQLite's errors as :class:`IndexUnusable`."""

    @wraps(call)
    def run(index: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with index.lock:
            try:
                return call(index, *args, **kwargs)
            except sqlite3.Error as error:
                if index.connection.in_transaction:
                    index.connection.execute("ROLLBACK")
                if _is_busy(error):
                    raise _busy(index.path) from error
                raise IndexUnusable(
                    f"The knowledge index {index.path} cannot be used ({error}). Run `cockpit knowledge"
                    " --index --rebuild`, which builds it again from the project."
                ) from error

    return run


class KnowledgeIndex:
    """An open index. Its methods block and may be called from any thread.

    Open it with :meth:`open`, and close it with :meth:`close`.
    """

    def __init__(self, path: Path | None, connection: sqlite3.Connection, notice: str) -> None:
        self.path = path
        self.connection = connection
        self.notice = notice
        """Why the file was rebuilt; empty when it was not."""
        self.lock = threading.RLock()
        self.cached: dict[str, object] = {}
        """What searches keep of this index, by name; see :meth:`revision`."""
        self._inode = _inode(path)

    @classmethod
    def open(cls, path: Path | None) -> KnowledgeIndex:
        """Open the file at ``path``, created where it is missing; None: an index in memory.

        A damaged file, and one of another version, is replaced by an empty one. Raises
        :class:`IndexUnusable` where the file cannot be written.
        """
        notice = ""
        try:
            try:
                connection = _connect(path)
            except _Unfit as error:
                remove_index(path)
                notice = f"The knowledge index {error} and is rebuilt from the project."
                connection = _connect(path)
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.Error) and _is_busy(error):
                raise _busy(path) from error
            raise IndexUnusable(
                f"The knowledge index {path} cannot be opened: {error}. Check its folder."
            ) from error
        return cls(path, connection, notice)

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.connection.close()

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that is open."""
        return _inode(self.path) == self._inode

    def revision(self) -> tuple[int, int]:
        """Return a value that differs after every change, by this process or another."""
        with self.lock:
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
            return version, self.connection.total_changes

    def put_document(self, kind: str, ref: str, title: str, text: str, *, stamp: str = "") -> bool:
        """Index a document, replacing what is indexed under its kind and ``ref``.

        ``stamp`` is kept with it, for :meth:`list_stamps`. Secrets are masked. Returns whether the text
        differs from what was indexed. Raises ``ValueError`` for a kind that is not one of ``KINDS``.
        """
        return self.put_ready(prepare_document(kind, ref, title, text), stamp)

    @_translated
    def put_ready(self, ready: ReadyDocument, stamp: str) -> bool:
        """Index a document as :meth:`put_document` does."""
        row = self.connection.execute(
            "SELECT document_id, digest, stamp FROM documents WHERE kind=? AND ref=?", ready.key
        ).fetchone()
        if row is not None and row[1] == ready.digest:
            if row[2] != stamp:  # an update waits for other writers even where it changes nothing
                self.connection.execute(
                    "UPDATE documents SET stamp=? WHERE document_id=?", (stamp, row[0])
                )
            return False
        chunks = chunk_document(ready.kind, ready.ref, ready.title, ready.text)
        self.connection.execute("BEGIN IMMEDIATE")
        self._delete(ready.kind, ready.ref)
        if not self._is_full(len(chunks)):
            self._insert(ready, stamp, chunks)
        self.connection.execute("COMMIT")
        return True

    @_translated
    def drop_document(self, kind: str, ref: str) -> bool:
        """Remove a document; returns whether it was indexed."""
        self.connection.execute("BEGIN IMMEDIATE")
        dropped = self._delete(kind, mask(ref))
        self.connection.execute("COMMIT")
        return dropped

    def list_stamps(self, kinds: Sequence[str] = KINDS) -> dict[tuple[str, str], str]:
        """Return the stamp of every document of these kinds, by kind and ``ref``."""
        return self._list_column("stamp", kinds)

    def list_digests(self, kinds: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the digest of every document of these kinds, by kind and ``ref``."""
        return self._list_column("digest", kinds)

    @_translated
    def _list_column(self, name: str, kinds: Sequence[str]) -> dict[tuple[str, str], str]:
        marks = ", ".join("?" * len(kinds))
        rows = self.connection.execute(
            f"SELECT kind, ref, {name} FROM documents WHERE kind IN ({marks})",  # noqa: S608 - marks and a column
            tuple(kinds),
        )
        return {(kind, ref): value for kind, ref, value in rows}

    @_translated
    def list_documents(self, kind: str, most: int) -> list[tuple[str, int]]:
        """Return up to ``most`` documents of a kind by name, each with its number of chunks."""
        return self.connection.execute(
            "SELECT ref, count(chunk_id) FROM (SELECT document_id, ref FROM documents WHERE kind=?"
            " ORDER BY ref LIMIT ?) LEFT JOIN chunks USING(document_id) GROUP BY document_id ORDER BY ref",
            (kind, most),
        ).fetchall()

    @_translated
    def count(self) -> IndexCounts:
        """Count what the index contains."""
        by_kind = dict(
            self.connection.execute("SELECT kind, count(*) FROM documents GROUP BY kind").fetchall()
        )
        chunks, vectors = self.connection.execute(
            "SELECT count(*), count(vectors.embedded) FROM chunks LEFT JOIN vectors USING(embedded)"
        ).fetchone()
        size = 0
        if self.path is not None and self.path.exists():
            size = self.path.stat().st_size
        return IndexCounts(
            {kind: by_kind[kind] for kind in KINDS if kind in by_kind},
            chunks, vectors, size, chunks >= MAX_CHUNKS,
        )  # fmt: skip

    @_translated
    def load_chunks(self, chunk_ids: Iterable[int]) -> dict[int, StoredChunk]:
        """Read chunks by id; those that are gone meanwhile are missing."""
        ids = list(chunk_ids)
        marks = ", ".join("?" * len(ids))
        rows = self.connection.execute(  # the marks are question marks
            "SELECT chunks.chunk_id, documents.kind, documents.ref, first_line, last_line, words.title,"  # noqa: S608
            " words.text, chunks.digest FROM chunks JOIN documents USING(document_id)"
            f" JOIN words ON words.rowid=chunks.chunk_id WHERE chunk_id IN ({marks})",
            ids,
        )
        return {row[0]: StoredChunk(*row) for row in rows}

    @_translated
    def read_about(self, name: str) -> str:
        """Return what the index keeps about itself under ``name``; empty where it keeps nothing."""
        row = self.connection.execute("SELECT value FROM about WHERE name=?", (name,)).fetchone()
        return str(row[0]) if row else ""

    @_translated
    def write_about(self, name: str, value: str) -> None:
        """Keep ``value`` under ``name``."""
        if self.read_about(name) != value:
            self.connection.execute("REPLACE INTO about VALUES (?, ?)", (name, value))

    # Vectors

    @_translated
    def has_vectors(self, model: str) -> bool:
        """Whether any chunk has a vector of this model."""
        row = self.connection.execute("SELECT 1 FROM vectors LIMIT 1").fetchone()
        return row is not None and self.read_about(_MODEL) == model

    @_translated
    def set_model(self, model: str) -> None:
        """Forget the vectors of any other embedding model than ``model``."""
        if self.read_about(_MODEL) == model:
            return
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("DELETE FROM vectors")
        self.connection.execute("REPLACE INTO about VALUES (?, ?)", (_MODEL, model))
        self.connection.execute("COMMIT")

    @_translated
    def list_unembedded(self, most: int) -> list[tuple[str, str]]:
        """Return up to ``most`` texts without a vector, the oldest chunks first: key and text."""
        return self.connection.execute(
            "SELECT DISTINCT chunks.embedded, words.title || char(10) || words.text FROM chunks"
            " JOIN words ON words.rowid=chunks.chunk_id LEFT JOIN vectors USING(embedded)"
            " WHERE vectors.embedded IS NULL ORDER BY chunks.chunk_id LIMIT ?",
            (most,),
        ).fetchall()

    @_translated
    def put_vectors(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Store the vectors of texts by the keys of :meth:`list_unembedded`."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        self.connection.execute("COMMIT")

    @_translated
    def drop_unused_vectors(self) -> None:
        """Delete the vectors of texts that no document has any more."""
        self.connection.execute(
            "DELETE FROM vectors WHERE embedded NOT IN (SELECT embedded FROM chunks)"
        )

    @_translated
    def load_vectors(self) -> list[tuple[int, str, bytes]]:
        """Read every chunk's id, kind and vector, in the order of ids."""
        return self.connection.execute(
            "SELECT chunk_id, kind, vector FROM chunks JOIN vectors USING(embedded)"
            " JOIN documents USING(document_id) ORDER BY chunk_id"
        ).fetchall()

    def _is_full(self, more: int) -> bool:
        (chunks,) = self.connection.execute("SELECT count(*) FROM chunks").fetchone()
        return bool(chunks + more > MAX_CHUNKS)

    def _insert(self, ready: ReadyDocument, stamp: str, chunks: Sequence[Chunk]) -> None:
        document_id = self.connection.execute(
            "INSERT INTO documents(kind, ref, title, digest, stamp) VALUES (?,?,?,?,?)",
            (*ready.key, ready.title, ready.digest, stamp),
        ).lastrowid
        for chunk in chunks:
            embedded = text_digest(f"{chunk.title}\n{chunk.text}")
            chunk_id = self.connection.execute(
                "INSERT INTO chunks(document_id, first_line, last_line, digest, embedded)"
                " VALUES (?,?,?,?,?)",
                (document_id, chunk.start, chunk.end, text_digest(chunk.text), embedded),
            ).lastrowid
            self.connection.execute(
                "INSERT INTO words(rowid, title, text, ref) VALUES (?,?,?,?)",
                (chunk_id, chunk.title, chunk.text, ready.ref),
            )

    def _delete(self, kind: str, ref: str) -> bool:
        row = self.connection.execute(
            "SELECT document_id FROM documents WHERE kind=? AND ref=?", (kind, ref)
        ).fetchone()
        if row is None:
            return False
        self.connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT chunk_id FROM chunks WHERE document_id=?)",
            row,
        )
        self.connection.execute("DELETE FROM chunks WHERE document_id=?", row)
        self.connection.execute("DELETE FROM documents WHERE document_id=?", row)
        return True


def prepare_document(kind: str, ref: str, title: str, text: str) -> ReadyDocument:
    """Mask a document's secrets. Raises ``ValueError`` for a kind that is not one of ``KINDS``."""
    if kind not in (*KINDS, ROUTE):
        raise ValueError(f"{kind!r} is not a kind of document; the kinds are {', '.join(KINDS)}")
    safe, name = prepare_text(text), mask(" ".join(title.split()))
    return ReadyDocument(kind, mask(ref), name, safe, text_digest(f"{name}\n{safe}"))


def prepare_text(text: str) -> str:
    """Mask secrets and make lines what editors count; the number of each line stays."""
    # A text of an old Mac ends its lines with \r alone; elsewhere a lone one is a slip within a line.
    lone = " " if "\n" in text else "\n"
    lines = text.replace("\r\n", "\n").replace("\r", lone).replace("\0", "\ufffd")
    return mask(mask_key_blocks(lines))[:MAX_DOCUMENT_CHARS]


def remove_index(path: Path | None) -> None:
    """Delete the files of an index. Raises :class:`IndexUnusable`."""
    if path is not None:
        try:
            for end in ("", "-wal", "-shm", "-journal"):
                Path(f"{path}{end}").unlink(missing_ok=True)
        except OSError as error:
            raise IndexUnusable(
                f"The knowledge index {path} cannot be removed: {error.strerror or error}. Remove it"
                " yourself; it is built again from the project."
            ) from error


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        # SQLite would create it readable by others, as far as the folder lets them.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path or ":memory:", timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        # Derived data: a power cut may cost the newest rows, which are indexed again.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")
        if problem := _find_problem(connection):
            raise _Unfit(problem)
        _create_tables(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        if _is_busy(error):
            raise
        raise _Unfit(f"was damaged ({error})") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _find_problem(connection: sqlite3.Connection) -> str:
    """Return why the file cannot be used; empty for a new one and a good one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version == VERSION:
        connection.execute("SELECT count(*) FROM documents, about LIMIT 1").fetchone()
        connection.execute("SELECT rowid FROM words LIMIT 1").fetchone()
        return ""
    if not version and not tables:
        return ""
    return f"is of version {version}, and this cockpit's is {VERSION},"


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _is_busy(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _busy(path: Path | None) -> IndexBusy:
    return IndexBusy(
        f"Another process writes the knowledge index {path} for more than {BUSY_TIMEOUT_S:g} s. Nothing"
        " was changed; try again."
    )


def _inode(path: Path | None) -> int:
    try:
        return 0 if path is None else path.stat().st_ino
    except OSError:
        return -1
