"""The librarian of one project: opens the index, brings it up to date, and searches it.

The index is a file of its own in the project's state folder. It is derived: a damaged one is rebuilt. See
``docs/reference/knowledge.md``.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from cockpit.access.confined_paths import Confined
from cockpit.core.clock import format_time
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.skills.skill import Skill
from cockpit.loop.knowledge import knowledge_settings
from cockpit.loop.knowledge.changed_documents import MOST_NAMED, find_documents
from cockpit.loop.knowledge.follow_files import FileFollower
from cockpit.loop.knowledge.knowledge_settings import KnowledgeSettings
from cockpit.loop.knowledge.skill_routes import compare_routes, describe_routes
from cockpit.observe.knowledge import embed_text
from cockpit.observe.knowledge.index_store import (
    IndexBusy,
    IndexCounts,
    IndexUnusable,
    KnowledgeIndex,
    remove_index,
)
from cockpit.observe.knowledge.nearest_chunks import NearestChunks
from cockpit.observe.knowledge.passage import FILE_KINDS, KINDS, ROUTE, Passage
from cockpit.observe.knowledge.refresh_index import (
    LONG_REST_S,
    MAX_DOCUMENTS,
    SHORT_REST_S,
    Refreshed,
    StoredDocument,
    refresh_files,
    refresh_paths,
    refresh_stored,
)
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.sources.stored_records import select_notes
from cockpit.store.db.database import Store
from cockpit.store.notes import notes

if TYPE_CHECKING:
    from cockpit.loop.runtime_settings import RuntimeSettings

INDEX_FILE = "knowledge.db"
STORED_KINDS = tuple(kind for kind in KINDS if kind not in FILE_KINDS)
_ROOT = "root"
LEAST_PRIORITY = 15
"""The priority of the process that embeds: neither a screen nor a wave waits for it."""
EMBED_BATCH = 8
"""Texts that are embedded before their vectors are stored."""

embed_texts = embed_text.embed_texts
"""Vectors of texts, each of length 1; None without the extra ``vector``. Blocks."""


class IndexState(Struct, frozen=True):
    """The index of a project as a user looks at it."""

    path: Path
    counts: IndexCounts
    has_vectors: bool
    """Whether the extra ``vector`` is installed."""
    notice: str = ""
    is_following: bool = False
    """Whether this process indexes files as they change."""
    looked_at: str = ""
    """When this process compared all files with the index last; empty: not yet."""
    problem: str = ""
    """Why files are not followed; empty where they are, or where that was not tried."""


@contextmanager
def open_librarian(
    place: ProjectPaths, settings: RuntimeSettings, store: Store | None
) -> Iterator[Librarian]:
    """Open the librarian of a project outside of a runtime."""
    from cockpit.loop.skills.project_skills import open_project_skills

    project_skills = open_project_skills(place, settings.user_dir, settings.environment)
    librarian = Librarian(
        place,
        settings.knowledge,
        store,
        lambda: project_skills.refresh().skills.values(),
    )
    try:
        yield librarian
    finally:
        librarian.close()


def index_path(place: ProjectPaths) -> Path:
    """Return the file of the index of this worktree: each has documents of its own."""
    if place.root == place.home:
        return place.state / INDEX_FILE
    name = sha256(str(place.root).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return place.state / f"knowledge-{name}.db"


class Librarian(Struct):
    """The index of one worktree. Create one for a process; close it with :meth:`close`."""

    place: ProjectPaths
    settings: KnowledgeSettings
    store: Store | None = None
    """The project's store, whose notes and handoffs are indexed; None leaves them out."""
    read_skills: Callable[[], Iterable[Skill]] = tuple
    _index: KnowledgeIndex | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    notice: str = ""
    """Why the index was rebuilt; empty when it was not."""
    is_beside_screen: bool = False
    """Whether a screen is drawn by this process: then indexing leaves it more of the time."""
    _has_skills: object = None
    """The state of the index in which it had exactly these skills."""
    _background: subprocess.Popen[bytes] | None = None
    _follower: FileFollower | None = None
    looked_at: str = ""
    """When this process compared all files with the index last, as the store writes times; empty: not yet."""

    @property
    def limit(self) -> int:
        """The most passages of a search that asks for no other number."""
        return self.settings.limit

    @property
    def threshold(self) -> float:
        """The score that a passage needs, in every search."""
        return self.settings.threshold

    async def find(
        self,
        query: str,
        *,
        kinds: Sequence[str] = KINDS,
        limit: int | None = None,
        threshold: float | None = None,
    ) -> tuple[Passage, ...]:
        """Bring the index up to date and search it: one limit and one threshold, wherever it is asked.

        None: those of the user's settings. Raises ``CockpitError``.
        """
        await self.refresh()
        try:
            return await self.search(query, kinds=kinds, limit=limit, threshold=threshold)
        except IndexBusy:
            raise
        except IndexUnusable:
            await self.rebuild("was damaged")
            return await self.search(query, kinds=kinds, limit=limit, threshold=threshold)

    async def search(
        self,
        query: str,
        *,
        kinds: Sequence[str] = KINDS,
        limit: int | None = None,
        threshold: float | None = None,
    ) -> tuple[Passage, ...]:
        """Search the index as it is."""

        def run(index: KnowledgeIndex) -> tuple[Passage, ...]:
            return search_passages(
                index,
                query,
                kinds=kinds,
                limit=self.limit if limit is None else limit,
                threshold=self.threshold if threshold is None else threshold,
                nearest=_find_nearest(index),
            )

        return await asyncio.to_thread(lambda: run(self._open()))

    async def compare_skills(self, words: str, *, indexes: bool = False) -> dict[str, float]:
        """Return how near each skill is to ``words`` by vectors, from 0 to 1, by name.

        Empty without the extra, and where nothing has vectors yet: :meth:`embed_in_background` makes them, of
        the skills that are indexed then. ``indexes`` has them indexed where nothing has vectors.
        """
        if not embed_text.is_installed():
            return {}

        def run() -> dict[str, float]:
            index = self._open()
            if not indexes and not index.has_vectors(embed_text.MODEL):
                return {}
            self._refresh_routes(index)
            nearest = _find_nearest(index)
            return {} if nearest is None else compare_routes(index, nearest, words)

        try:
            async with self._lock:
                return await asyncio.to_thread(run)
        except IndexUnusable:
            return {}  # the next search rebuilds it; until then words alone choose

    async def refresh(self) -> Refreshed:
        """Index what changed since the last time. Raises ``CockpitError``."""
        async with self._lock:
            try:
                return await self._refresh()
            except IndexBusy:
                raise
            except IndexUnusable:
                # It was damaged while it was open; whatever it had is in the project.
                await asyncio.to_thread(self._rebuild, "was damaged")
                return await self._refresh()

    async def refresh_changed(self, paths: Iterable[str]) -> Refreshed:
        """Index again the files at ``paths``, as a watcher reports them."""
        ground = ProjectSnapshot(Confined(self.place.root))
        async with self._lock:
            return await asyncio.to_thread(lambda: refresh_paths(self._open(), ground, paths))

    async def rebuild(self, why: str = "") -> Refreshed:
        """Delete the index and build it again; ``why`` becomes the notice."""
        async with self._lock:
            await asyncio.to_thread(self._rebuild, why)
            return await self._refresh()

    async def embed(self, most: int = EMBED_BATCH) -> int:
        """Give vectors to up to ``most`` chunks without; returns how many. 0 without the extra."""
        return await asyncio.to_thread(self._embed, most)

    async def read_state(self) -> IndexState:
        """Return what the index contains."""
        counts = await asyncio.to_thread(lambda: self._open().count())
        return IndexState(
            index_path(self.place),
            counts,
            embed_text.is_installed(),
            self.notice,
            self._follower is not None and self._follower.is_following,
            self.looked_at,
            "" if self._follower is None else self._follower.problem,
        )

    async def list_documents(self, kind: str, most: int) -> list[tuple[str, int]]:
        """Return the names of up to ``most`` documents of a kind, each with its number of chunks."""
        return await asyncio.to_thread(lambda: self._open().list_documents(kind, most))

    async def follow_in_background(self) -> None:
        """Index files as they change from now on, and embed chunks where the extra is installed.

        Files are followed by a thread of this process; chunks are embedded by a process of the least
        priority, which is started while some need vectors. Both end with :meth:`close`.
        """
        if not knowledge_settings.BACKGROUND:
            return
        if self._follower is None:
            self._follower = FileFollower(self.place.root, self._take_changes)
            self._follower.start()
        await self.embed_in_background()

    async def _take_changes(self, paths: set[Path]) -> None:
        documents = await find_documents(self.place.root, paths)
        if len(documents) > MOST_NAMED:
            await self.refresh()
        elif documents:
            await self.refresh_changed(documents)
        else:
            return
        await self.embed_in_background()

    async def embed_in_background(self) -> None:
        """Start the process that embeds, where chunks need vectors and the extra is installed."""
        if knowledge_settings.BACKGROUND and embed_text.is_installed():
            await asyncio.to_thread(self._start_background)

    def _start_background(self) -> None:
        running = self._background is not None and self._background.poll() is None
        if running or not self._open().list_unembedded(1):
            return
        self._background = subprocess.Popen(
            (sys.executable, "-P", "-m", "cockpit", "knowledge", "--index"),
            cwd=self.place.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(OSError):  # it has ended, or the system allows no change
            os.setpriority(os.PRIO_PROCESS, self._background.pid, LEAST_PRIORITY)

    def _end_background(self) -> None:
        process, self._background = self._background, None
        if process is not None:
            process.kill()  # everything that it wrote is committed
            process.wait()

    def close(self) -> None:
        """Close the index, and end what runs in the background."""
        if self._follower is not None:
            self._follower.stop()
            self._follower = None
        self._end_background()
        self._close_index()

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    async def _refresh(self) -> Refreshed:
        ground = ProjectSnapshot(Confined(self.place.root))

        index = await asyncio.to_thread(self._open)
        rest_s = LONG_REST_S if self.is_beside_screen else SHORT_REST_S
        files = await refresh_files(index, ground, rest_s=rest_s)

        def run() -> Refreshed:
            stored = [] if self.store is None else self.store.read_now(read_notes)
            kept = refresh_stored(index, STORED_KINDS, stored)
            self._refresh_routes(index)
            return Refreshed(
                files.looked_at + kept.looked_at,
                files.changed + kept.changed,
                files.dropped + kept.dropped,
                files.is_complete,
            )

        done = await asyncio.to_thread(run)
        if self.store is not None:
            self.looked_at = format_time(self.store.clock.now())
        return done

    def _open(self) -> KnowledgeIndex:
        index = self._index
        if index is not None and index.is_current():
            return index
        if index is not None:
            index.close()  # another process rebuilt the file
        self.place.prepare()
        path = index_path(self.place)
        if not path.exists():
            self._begin_with_copy(path)
        index = self._index = KnowledgeIndex.open(path)
        index.write_about(_ROOT, str(self.place.root))
        self.notice = index.notice or self.notice
        return index

    def _begin_with_copy(self, path: Path) -> None:
        """Begin a worktree's index with the main checkout's: most of its documents are the same.

        Those of worktrees that are gone are removed.
        """
        main = self.place.state / INDEX_FILE
        if path == main:
            return
        for old in self.place.state.glob("knowledge-*.db"):
            if not _has_worktree(old):
                remove_index(old)
        if not main.exists():
            return
        try:
            with closing(sqlite3.connect(main)) as source, closing(sqlite3.connect(path)) as copy:
                source.backup(copy)
        except sqlite3.Error:
            remove_index(path)  # it is built from the files instead

    def _refresh_routes(self, index: KnowledgeIndex) -> None:
        """Index the lines of skills that vectors compare; without the extra nothing would read them."""
        if not embed_text.is_installed():
            return
        skills = list(self.read_skills())
        if self._has_skills != (index, index.revision(), skills):
            refresh_stored(index, (ROUTE,), describe_routes(skills))
            self._has_skills = (index, index.revision(), skills)

    def _rebuild(self, why: str) -> None:
        self._end_background()
        self._close_index()
        remove_index(index_path(self.place))
        self.notice = f"The knowledge index {why} and is rebuilt from the project." if why else ""

    def _embed(self, most: int) -> int:
        embedder = embed_text.load_embedder()
        if embedder is None:
            return 0
        index = self._open()
        index.set_model(embed_text.MODEL)
        rows = [
            (key, embed_text.pack_vector(embedder.embed(text)))
            for key, text in index.list_unembedded(most)
        ]
        if rows:
            index.put_vectors(rows)
        else:
            index.drop_unused_vectors()
        return len(rows)


def _has_worktree(path: Path) -> bool:
    """Whether the worktree that an index is of is still there, as far as the index says."""
    try:
        # Read without locks: those of a reader would stay beside the file.
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
            row = connection.execute("SELECT value FROM about WHERE name=?", (_ROOT,)).fetchone()
    except sqlite3.Error:
        return True  # another process begins it
    return row is None or Path(str(row[0])).is_dir()


def read_notes(connection: sqlite3.Connection) -> list[StoredDocument]:
    """Read handoffs, work in progress, and the notes that the user keeps, as documents."""
    records = [
        StoredDocument(
            "handoff" if record.kind == "handoff" else "note",
            f"{record.kind}:{record.task_id}",
            record.text.split("\n", 1)[0],
            record.text,
        )
        for record in select_notes(connection)
        if record.kind in ("handoff", "wip")
    ]
    kept = [
        StoredDocument("note", f"note:{note.note_id}", f"{note.kind}: {note.subject}", note.text)
        for note in notes.select(connection, ("kept",), MAX_DOCUMENTS)
    ]
    return [*records, *kept]


def _find_nearest(index: KnowledgeIndex) -> NearestChunks | None:
    """Return the search by vectors, where the index has some and the model is there."""
    if not embed_text.is_installed() or not index.has_vectors(embed_text.MODEL):
        return None
    embedder = embed_text.load_embedder()
    return None if embedder is None else NearestChunks(embedder)
