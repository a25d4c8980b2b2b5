"""Retrieval: does the librarian find a document that answers, how fast, and what does it delay?

The labelled set is sierra-research/tau2-bench's knowledge base of a bank (MIT, © 2025 Sierra Research): the
folder that ``COCKPIT_BENCH_DATA`` names holds its documents and queries in ``retrieval``. Each query is asked
as it stands, a page of text. Nothing was fitted to the set, but none of it is unseen either: how far long
questions are shortened was chosen for the time that it takes, with the hits of all queries in sight. The rows
of the two halves show how much a figure of so few queries varies.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measure import Row, at, row

from cockpit.access.confined_paths import Confined
from cockpit.loop.knowledge.knowledge_settings import KnowledgeSettings
from cockpit.observe.knowledge import embed_text
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.nearest_chunks import NearestChunks
from cockpit.observe.knowledge.refresh_index import refresh_files, refresh_paths
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.project_snapshot import ProjectSnapshot

NEAR = 3
SECTIONS = 5_000


def rows() -> Iterator[Row]:
    """Yield hits among the first three documents, times of searches, and what indexing delays."""
    with tempfile.TemporaryDirectory() as made:
        yield from _measure_indexing(Path(os.path.realpath(made)))
    yield from _measure_answers()
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data, "retrieval")
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with retrieval")
        return
    yield from _measure_searches(folder)


def _measure_searches(folder: Path) -> Iterator[Row]:
    documents, queries = _read(folder / "docs.jsonl"), _read(folder / "queries.jsonl")
    index = KnowledgeIndex.open(None)
    names = {}
    for number, document in enumerate(documents):
        name = f"doc-{number:04}.md"
        names[name] = document["id"]
        text = f"# {document['title']}\n\n{document['content']}\n"
        index.put_document("docs", name, "", text)
    print(f"  {len(documents)} documents, {index.count().chunks:,} chunks, {len(queries)} queries")
    keyword = yield from _ask("keyword", index, names, queries, None)
    embedder = embed_text.load_embedder()
    if embedder is None:
        print("  hybrid: skipped, the extra 'vector' is not installed")
        return
    started = time.process_time()
    count = _embed_all(index, embedder)
    took = time.process_time() - started
    yield row("vectors: chunks embedded", count / took, "/s CPU")
    hybrid = yield from _ask("hybrid", index, names, queries, NearestChunks(embedder))
    yield row("hybrid beyond keyword alone", hybrid - keyword, "of 1", least=0)


def _ask(
    kind: str,
    index: KnowledgeIndex,
    names: dict[str, str],
    queries: list[dict[str, Any]],
    nearest: NearestChunks | None,
) -> Iterator[Row]:
    hits: list[bool] = []
    waits, spent = list[float](), list[float]()
    search_passages(index, queries[0]["query"], limit=9, nearest=nearest)  # warm
    for query in queries:
        started, cpu = time.perf_counter(), time.process_time()
        passages = search_passages(index, query["query"], limit=9, nearest=nearest)
        waits.append(1000 * (time.perf_counter() - started))
        spent.append(1000 * (time.process_time() - cpu))
        shown = list(dict.fromkeys(names[passage.ref] for passage in passages))[:NEAR]
        hits.append(bool(set(shown) & set(query["relevant"])))
    share = sum(hits) / len(hits)
    least = 0.60 if nearest is not None else None
    yield row(f"{kind}: a relevant document in the first {NEAR}", share, "of 1", least=least)
    yield row(f"{kind}: of the queries of even number", sum(hits[::2]) / len(hits[::2]), "of 1")
    yield row(f"{kind}: of the queries of odd number", sum(hits[1::2]) / len(hits[1::2]), "of 1")
    yield row(f"{kind}: a query, p50", at(0.5, spent), "ms CPU", most=50)
    yield row(f"{kind}: a query, p99", at(0.99, spent), "ms CPU", most=100)
    yield row(f"{kind}: a query, p50, waiting", at(0.5, waits), "ms")
    yield row(f"{kind}: a query, p99, waiting", at(0.99, waits), "ms")
    return share


def _measure_answers() -> Iterator[Row]:
    """Ask real documentation what it answers and what it does not, at the default limit and threshold.

    The questions on Mercurial's help texts (development dependency ``mercurial``) carry the bars. The way of
    scoring was chosen with both sets in sight; no weight and no question was changed for a single one.
    """
    repository = Path(__file__).resolve().parent.parent
    sets = {"cockpit's pages": ("project_questions.json", repository, "docs/**/*.md", None)}
    found = find_spec("mercurial")
    if found is None or found.submodule_search_locations is None:
        print("  Mercurial's help texts: skipped, the package mercurial is not installed")
    else:
        helptext = Path(found.submodule_search_locations[0], "helptext")
        sets["Mercurial's help"] = ("mercurial_questions.json", helptext, "**/*.txt", 0.9)
    embedder = embed_text.load_embedder()
    for name, (file, root, pattern, least) in sets.items():
        questions = json.loads((repository / "bench/data" / file).read_text("utf-8"))
        index = KnowledgeIndex.open(None)
        for page in sorted(root.glob(pattern)):
            index.put_document(
                "docs", page.relative_to(root).as_posix(), "", page.read_text("utf-8")
            )
        print(
            f"  {name}: {index.count().chunks:,} chunks, {len(questions['answered'])} questions with an"
            f" answer, {len(questions['unanswered'])} without"
        )
        yield from _judge(f"{name}, by words", index, questions, None, least)
        if embedder is not None:
            _embed_all(index, embedder)
            higher = None if least is None else 0.95
            nearest = NearestChunks(embedder)
            yield from _judge(f"{name}, with vectors", index, questions, nearest, higher)


def _judge(
    name: str,
    index: KnowledgeIndex,
    questions: dict[str, Any],
    nearest: NearestChunks | None,
    least: float | None,
) -> Iterator[Row]:
    settings = KnowledgeSettings()

    def ask(question: str) -> list[str]:
        passages = search_passages(
            index, question, limit=settings.limit, threshold=settings.threshold, nearest=nearest
        )
        return [passage.ref for passage in passages]

    answered = [bool(set(ask(question)) & set(pages)) for question, pages in questions["answered"]]
    silent = [not ask(question) for question in questions["unanswered"]]
    yield row(f"{name}: hit@{NEAR}", sum(answered) / len(answered), "of 1", least=least)
    yield row(f"{name}: silent without an answer", sum(silent) / len(silent), "of 1", least=1.0)


def _embed_all(index: KnowledgeIndex, embedder: embed_text.Embedder) -> int:
    count = 0
    while texts := index.list_unembedded(64):
        index.put_vectors(
            [(key, embed_text.pack_vector(embedder.embed(text))) for key, text in texts]
        )
        count += len(texts)
    return count


def _measure_indexing(root: Path) -> Iterator[Row]:
    """Index a project of 5,000 sections as a wave does; ``knowledge_frames`` does it beside a screen."""
    project = root / "project"
    project.mkdir()
    for number in range(SECTIONS // 10):
        parts = [
            f"## Part {number}.{part}\n\nWhat {number} and {part} have in common, in {part} lines.\n"
            for part in range(10)
        ]
        (project / f"doc-{number:04}.md").write_text("\n".join(parts), "utf-8")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    index = KnowledgeIndex.open(root / "again.db")
    ground = ProjectSnapshot(Confined(project))
    started = time.perf_counter()
    asyncio.run(refresh_files(index, ground))
    yield row("in a wave: 5,000 chunks indexed the first time", time.perf_counter() - started, "s")
    (project / "doc-0007.md").write_text("# Changed\n\nA new word: zebra.\n", "utf-8")
    yield row(
        "one changed file, reported",
        _time(lambda: refresh_paths(index, ground, ["doc-0007.md"])),
        "s",
        most=1,
    )
    (project / "doc-0008.md").write_text("# Changed\n\nA new word: giraffe.\n", "utf-8")
    yield row(
        "one changed file, looked for",
        _time(lambda: asyncio.run(refresh_files(index, ground))),
        "s",
        most=1,
    )
    index.close()


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
